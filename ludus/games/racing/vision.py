"""What the driver sees: a lidar that feels for the road's edge, or a camera over the ground. One
lane per beam or pixel."""

import math

from ludus.games.racing.car import HEADING, WALL_GAP, X, Y
from ludus.games.racing.observation import BEAMS, LIDAR_0, LIDAR_1, LIDAR_2, LIDAR_3
from ludus.games.racing.track import (
    POINT_X,
    POINT_Y,
    REACH,
    TANGENT_X,
    TANGENT_Y,
    TEXEL,
    TEXELS,
    line_distance,
    to_map,
)
from ludus.sim import float32, geometry, int32, phase

LIDAR_RANGE = 100.0  # metres, and the scale of a beam
OFF_ROAD_RANGE = 30.0  # how far a car beside the road feels for it
SHORTEST_STRIDE = 0.25  # of a beam, in metres

CAMERA_HEIGHT = 3.0
CAMERA_PITCH = math.radians(12.0)  # down
CAMERA_HALF_VIEW = math.tan(math.radians(40.0))
CAMERA_RANGE = 200.0  # the ground beyond is haze
EDGE_LINE = 0.5  # metres of white along either edge of the road
FINE_PER_NODE = 256.0
FINE = FINE_PER_NODE / TEXEL  # units of length in a metre
FINISH_LINE = int(1.5 * FINE)  # of white across it
CAMERA_GRID = 8  # the camera's place is rounded to this many units, 6 cm
HEADINGS = 1024.0  # and its heading to this part of a radian
UNIT_BITS = 14  # of a cosine
UNIT = float(1 << UNIT_BITS)
SKY, GRASS, WALL, ROAD, WHITE = 220, 90, 20, 150, 255  # greys

LENS_AHEAD, LENS_RIGHT = 0, 1
(
    VIEW_X,
    VIEW_Y,
    VIEW_COS,
    VIEW_SIN,
    VIEW_EDGE,
    VIEW_LINE,
    VIEW_WALL,
    VIEW_FINISH,
    VIEW_FINISH_AHEAD,
    VIEW_FINISH_RIGHT,
) = range(10)
VIEW = 10  # entries of `view`


def feel(bank_map, track, half_width, x, y, cos, sin):
    """Metres along a beam to the road's edge; off the road, minus the metres to the road."""
    inside = half_width - line_distance(bank_map, track, to_map(x), to_map(y))
    sign = 1.0 if inside >= 0.0 else -1.0
    far = LIDAR_RANGE if inside >= 0.0 else OFF_ROAD_RANGE
    margin, t = abs(inside), float32(0.0)
    while t < far:
        stride = max(margin, SHORTEST_STRIDE)
        t += stride
        ahead = sign * (
            half_width - line_distance(bank_map, track, to_map(x + t * cos), to_map(y + t * sin))
        )
        if ahead <= 0.0:
            t -= stride * (1.0 - margin / max(margin - ahead, 1e-6))
            break
        margin = ahead
    return sign * geometry.clamp(t, 0.0, far)


@phase(lanes=("agents", "beams"), writes="observation")
def scan(env, agent, beam, step, car, track, bank_half_width, bank_map, observation):
    """The newest scan, and the three before it; a new episode starts with four equal ones."""
    angle = car[env, agent, HEADING] + math.pi * (0.5 - float32(beam) / float32(BEAMS - 1))
    t = feel(
        bank_map,
        track[env],
        bank_half_width[track[env]],
        car[env, agent, X],
        car[env, agent, Y],
        math.cos(angle),
        math.sin(angle),
    )
    felt = t / LIDAR_RANGE
    first = step[env] == 0
    observation[env, agent, LIDAR_3 + beam] = (
        felt if first else observation[env, agent, LIDAR_2 + beam]
    )
    observation[env, agent, LIDAR_2 + beam] = (
        felt if first else observation[env, agent, LIDAR_1 + beam]
    )
    observation[env, agent, LIDAR_1 + beam] = (
        felt if first else observation[env, agent, LIDAR_0 + beam]
    )
    observation[env, agent, LIDAR_0 + beam] = felt


# -- the camera ------------------------------------------------------------------------------------
# Pixels are worked out in whole numbers from a rounded place and heading: where a pixel falls on an
# edge, rounding of
# floats would decide, and devices round differently. Lengths are in 1/256 of the way between nodes
# of the map.


def mark_at(bank_map, track, x, y):
    """The map's mark between its nodes, times 65,536. 0 is REACH metres from the centre line or
    more."""
    column, row = x >> 8, y >> 8
    if column < 0 or row < 0 or column >= TEXELS - 1 or row >= TEXELS - 1:
        return int32(0)
    fx, fy = x & 255, y & 255
    a, b = int32(bank_map[track, row, column]), int32(bank_map[track, row, column + 1])
    c, d = int32(bank_map[track, row + 1, column]), int32(bank_map[track, row + 1, column + 1])
    low, high = (a << 8) + fx * (b - a), (c << 8) + fx * (d - c)
    return (low << 8) + fy * (high - low)


def mark_of(metres):
    """The mark at a distance from the centre line."""
    return geometry.floor_int(255.0 * 65536.0 * max(1.0 - metres / REACH, 0.0))


@phase(lanes=("camera", "camera"), writes="lens")
def grind(env, row, column, camera, lens):
    """Where on the ground each pixel looks, ahead and to the right, once per batch. Nothing ahead:
    sky."""
    right = CAMERA_HALF_VIEW * (float32(2 * column + 1) / float32(camera) - 1.0)
    down = CAMERA_HALF_VIEW * (float32(2 * row + 1) / float32(camera) - 1.0)
    falls = math.sin(CAMERA_PITCH) + down * math.cos(CAMERA_PITCH)
    runs = math.cos(CAMERA_PITCH) - down * math.sin(CAMERA_PITCH)
    lens[row, column, LENS_AHEAD] = 0
    lens[row, column, LENS_RIGHT] = 0
    if falls * CAMERA_RANGE > CAMERA_HEIGHT * runs:
        lens[row, column, LENS_AHEAD] = geometry.floor_int(
            FINE * CAMERA_HEIGHT * runs / falls + 0.5
        )
        lens[row, column, LENS_RIGHT] = geometry.floor_int(
            FINE * CAMERA_HEIGHT * right / falls + 0.5
        )


@phase(lanes="agents", writes="view")
def aim(env, agent, car, track, walled, bank_half_width, bank_line, view):
    """What all pixels of a frame have in common."""
    line, edge = track[env], bank_half_width[track[env]]
    x = CAMERA_GRID * geometry.floor_int(
        to_map(car[env, agent, X]) * FINE_PER_NODE / float32(CAMERA_GRID)
    )
    y = CAMERA_GRID * geometry.floor_int(
        to_map(car[env, agent, Y]) * FINE_PER_NODE / float32(CAMERA_GRID)
    )
    heading = float32(geometry.floor_int(car[env, agent, HEADING] * HEADINGS + 0.5)) / HEADINGS
    cos, sin = (
        geometry.floor_int(UNIT * math.cos(heading) + 0.5),
        geometry.floor_int(UNIT * math.sin(heading) + 0.5),
    )
    view[env, agent, VIEW_X] = x
    view[env, agent, VIEW_Y] = y
    view[env, agent, VIEW_COS] = cos
    view[env, agent, VIEW_SIN] = sin
    view[env, agent, VIEW_EDGE] = mark_of(edge)
    view[env, agent, VIEW_LINE] = mark_of(edge - EDGE_LINE)
    view[env, agent, VIEW_WALL] = mark_of(edge + WALL_GAP) if walled[env] else 0
    finish_x = geometry.floor_int(UNIT * bank_line[line, 0, TANGENT_X] + 0.5)
    finish_y = geometry.floor_int(UNIT * bank_line[line, 0, TANGENT_Y] + 0.5)
    from_x = x - geometry.floor_int(to_map(bank_line[line, 0, POINT_X]) * FINE_PER_NODE)
    from_y = y - geometry.floor_int(to_map(bank_line[line, 0, POINT_Y]) * FINE_PER_NODE)
    view[env, agent, VIEW_FINISH] = (from_x * finish_x + from_y * finish_y) >> UNIT_BITS
    view[env, agent, VIEW_FINISH_AHEAD] = (cos * finish_x + sin * finish_y) >> UNIT_BITS
    view[env, agent, VIEW_FINISH_RIGHT] = (sin * finish_x - cos * finish_y) >> UNIT_BITS


@phase(lanes=("agents", "camera", "camera"), writes="seen_camera")
def expose(env, agent, row, column, lens, view, track, bank_map, seen_camera):
    """One pixel of the newest frame."""
    ahead, right = lens[row, column, LENS_AHEAD], lens[row, column, LENS_RIGHT]
    if ahead <= 0:
        seen_camera[env, agent, row, column] = SKY
        return
    cos, sin = view[env, agent, VIEW_COS], view[env, agent, VIEW_SIN]
    x = view[env, agent, VIEW_X] + ((ahead * cos + right * sin) >> UNIT_BITS)
    y = view[env, agent, VIEW_Y] + ((ahead * sin - right * cos) >> UNIT_BITS)
    mark = mark_at(bank_map, track[env], x, y)
    if mark < view[env, agent, VIEW_EDGE]:
        seen_camera[env, agent, row, column] = WALL if mark < view[env, agent, VIEW_WALL] else GRASS
        return
    beyond = (
        ahead * view[env, agent, VIEW_FINISH_AHEAD] + right * view[env, agent, VIEW_FINISH_RIGHT]
    ) >> UNIT_BITS
    past = view[env, agent, VIEW_FINISH] + beyond
    white = mark < view[env, agent, VIEW_LINE] or (past >= 0 and past < FINISH_LINE)
    seen_camera[env, agent, row, column] = WHITE if white else ROAD
