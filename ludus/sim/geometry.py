"""Shapes and noise that games share: plain scalar functions, to be called from rules."""

import math

import numpy as np
from numpy import float32, int64

from ludus.sim import random

FAR = 1e9

_SKEW = 0.5 * (math.sqrt(3.0) - 1.0)
_UNSKEW = (3.0 - math.sqrt(3.0)) / 6.0
_GRADIENT_X = np.array([1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0], np.float32)
_GRADIENT_Y = np.array([1, 1, -1, -1, 0, 0, 0, 0, 1, -1, 1, -1], np.float32)
_WORD = 0xFFFFFFFF


def floor_int(x):
    """The largest integer not above x, as an integer on every device (on CUDA, math.floor gives a
    float)."""
    return int64(math.floor(x))


def wrap_angle(angle):
    """An angle in [-pi, pi), by arithmetic: a loop would never end for a NaN."""
    return angle - 2.0 * math.pi * float32(floor_int((angle + math.pi) / (2.0 * math.pi)))


def clamp(x, low, high):
    """x, but at least low and at most high; a NaN becomes low, so that no index is ever computed
    from one."""
    if not x > low:
        return low
    return high if x > high else x


def _corner(key, i, j, x, y):
    """What one corner of the simplex adds at the offset (x, y) from it."""
    t = 0.5 - x * x - y * y
    if t < 0.0:
        return float32(0.0)
    gradient = random.integer(key, i & _WORD, j & _WORD, 12)
    return t * t * t * t * (_GRADIENT_X[gradient] * x + _GRADIENT_Y[gradient] * y)


def simplex2(key, x, y):
    """Simplex noise in the plane: smooth, about [-1, 1], another pattern for every key."""
    s = (x + y) * _SKEW
    i, j = floor_int(x + s), floor_int(y + s)
    t = float32(i + j) * _UNSKEW
    x0, y0 = x - (float32(i) - t), y - (float32(j) - t)
    across = 1 if x0 > y0 else 0
    x1, y1 = x0 - float32(across) + _UNSKEW, y0 - float32(1 - across) + _UNSKEW
    x2, y2 = x0 - 1.0 + 2.0 * _UNSKEW, y0 - 1.0 + 2.0 * _UNSKEW
    total = _corner(key, i, j, x0, y0)
    total += _corner(key, i + across, j + 1 - across, x1, y1)
    total += _corner(key, i + 1, j + 1, x2, y2)
    return 70.0 * total


def cast_columns(blocks, env, width, top, ox, oy, oz, dx, dy, dz, far):
    """The first block a ray meets in a world of columns: (distance, x, y, z) of the block, or (far,
    -1, -1, -1).

    `blocks[env, x, z]` has bit y set where a block stands (31 layers), with a solid layer 0 and
    nothing from layer `top` up. The direction has length 1 and the origin lies inside the world.
    One turn of the loop crosses a whole column.
    """
    x, z = int(ox), int(oz)
    step_x, step_z = 1 if dx > 0.0 else -1, 1 if dz > 0.0 else -1
    per_x = 1.0 / abs(dx) if abs(dx) > 1e-6 else float32(FAR)
    per_z = 1.0 / abs(dz) if abs(dz) > 1e-6 else float32(FAR)
    next_x = (float32(x + 1) - ox if dx > 0.0 else ox - float32(x)) * per_x
    next_z = (float32(z + 1) - oz if dz > 0.0 else oz - float32(z)) * per_z
    t, layer = float32(0.0), int(oy)
    while t < far and (layer < top or dy < 0.0):
        leave = min(next_x, next_z, far)
        layer_out = int(oy + dy * leave)
        low, high = max(min(layer, layer_out), 0), min(max(layer, layer_out), 30)
        if high >= low and blocks[env, x, z] & (((2 << (high - low)) - 1) << low) != 0:
            column = blocks[env, x, z]
            if dy > 0.0:
                hit = low
                while (column >> hit) & 1 == 0:
                    hit += 1
                if hit > layer:
                    t = (float32(hit) - oy) / dy
            else:
                hit = high
                while (column >> hit) & 1 == 0:
                    hit -= 1
                if hit < layer:
                    t = (float32(hit + 1) - oy) / dy
            return t, x, hit, z
        t, layer = leave, layer_out
        if next_x < next_z:
            x += step_x
            next_x += per_x
            if x < 0 or x >= width:
                break
        else:
            z += step_z
            next_z += per_z
            if z < 0 or z >= width:
                break
    return far, -1, -1, -1


def box_distance(ox, oy, oz, dx, dy, dz, low_x, low_y, low_z, high_x, high_y, high_z):
    """How far along a ray an upright box is met, or FAR. A ray that starts inside meets it at 0."""
    enter, leave = float32(0.0), float32(FAR)
    if abs(dx) > 1e-6:
        a, b = (low_x - ox) / dx, (high_x - ox) / dx
        enter, leave = max(enter, min(a, b)), min(leave, max(a, b))
    elif ox < low_x or ox > high_x:
        return float32(FAR)
    if abs(dy) > 1e-6:
        a, b = (low_y - oy) / dy, (high_y - oy) / dy
        enter, leave = max(enter, min(a, b)), min(leave, max(a, b))
    elif oy < low_y or oy > high_y:
        return float32(FAR)
    if abs(dz) > 1e-6:
        a, b = (low_z - oz) / dz, (high_z - oz) / dz
        enter, leave = max(enter, min(a, b)), min(leave, max(a, b))
    elif oz < low_z or oz > high_z:
        return float32(FAR)
    return enter if enter <= leave else float32(FAR)
