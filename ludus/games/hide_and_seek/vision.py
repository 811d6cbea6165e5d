"""Who sees whom, and the 64 rays every agent looks along.

Visible means: within range and the field of view, with a clear line from the eye to the head or the
chest. It is decided by that line, not by whether one of the rays happens to meet the other. Leaves
hide nobody.
"""

import math

import numpy as np

from ludus.games.hide_and_seek.observation import RAY_DISTANCE, RAY_KIND
from ludus.games.hide_and_seek.physics import CHEST, EYE, HALF, HEIGHT, STEP_SECONDS
from ludus.games.hide_and_seek.terrain import PLACED, block_kind
from ludus.sim import float32, geometry, phase

RANGE = 32.0
VIEW_ACROSS, VIEW_UP = math.radians(108.0), math.radians(65.0)
EDGE_ACROSS, EDGE_UP = math.tan(VIEW_ACROSS / 2.0), VIEW_UP / 2.0
NEVER = 1e4  # seconds since an opponent was seen, before the first time

ACROSS, DOWN = 8, 8  # rays
_yaws = (np.arange(ACROSS) + 0.5) / ACROSS * VIEW_ACROSS - VIEW_ACROSS / 2.0  # left to right
_pitches = VIEW_UP / 2.0 - (np.arange(DOWN) + 0.5) / DOWN * VIEW_UP  # top to bottom
YAW_COS, YAW_SIN = np.cos(_yaws).astype(np.float32), np.sin(_yaws).astype(np.float32)
PITCH_COS, PITCH_SIN = np.cos(_pitches).astype(np.float32), np.sin(_pitches).astype(np.float32)
BODY_RADIUS = HALF * math.sqrt(2.0)
KIND_OPPONENT, KIND_MATE = 1.0, -1.0  # ray kinds: 0 is air, blocks lie between
KIND_BLOCK = 0.9 / PLACED


def opponents(agent, other, seekers):
    return (agent < seekers) != (other < seekers)


def blind(agent, seekers, step, hide_steps):
    """The seekers see nothing while the others hide."""
    return agent < seekers and step < hide_steps


def clear_line(sight, env, world, top, x, y, z, to_x, to_y, to_z):
    dx, dy, dz = to_x - x, to_y - y, to_z - z
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    if length < 1e-3:
        return True
    t, _, _, _ = geometry.cast_columns(
        sight, env, world, top, x, y, z, dx / length, dy / length, dz / length, length
    )
    return t >= length


def in_view(facing, env, agent, pitch, dx, dy, dz):
    """Is a point at this offset from the eye within range and the field of view?"""
    if dx * dx + dy * dy + dz * dz > RANGE * RANGE:
        return False
    ahead = dx * facing[env, agent, 0] + dz * facing[env, agent, 1]
    right = dz * facing[env, agent, 0] - dx * facing[env, agent, 1]
    if ahead <= 0.0 or abs(right) > EDGE_ACROSS * ahead:
        return False
    return abs(math.atan2(dy, math.sqrt(dx * dx + dz * dz)) - pitch) <= EDGE_UP


def in_line(sight, position, facing, pitch, env, agent, other, world, top, looking):
    """Is the line from the agent's eye to the other's head or chest clear (and, when `looking`,
    inside its view)?"""
    x, y, z = position[env, agent, 0], position[env, agent, 1] + EYE, position[env, agent, 2]
    to_x, to_z = position[env, other, 0], position[env, other, 2]
    for part in range(2):
        to_y = position[env, other, 1] + (EYE if part == 0 else CHEST)
        if looking and not in_view(
            facing, env, agent, pitch[env, agent], to_x - x, to_y - y, to_z - z
        ):
            continue
        if clear_line(sight, env, world, top, x, y, z, to_x, to_y, to_z):
            return True
    return False


def distance(position, env, a, b):
    dx = position[env, a, 0] - position[env, b, 0]
    dy = position[env, a, 1] - position[env, b, 1]
    dz = position[env, a, 2] - position[env, b, 2]
    return math.sqrt(dx * dx + dy * dy + dz * dz)


@phase(lanes="agents", writes=("visible", "nearest", "seen_at", "seen_ago"))
def see(
    env,
    agent,
    agents,
    seekers,
    world,
    step,
    hide_steps,
    alive,
    position,
    facing,
    pitch,
    sight,
    top,
    visible,
    nearest,
    seen_at,
    seen_ago,
):
    """Which opponents are visible, which of them is nearest (-1: none), and where one was seen
    last."""
    if step[env] == 0:
        seen_ago[env, agent] = NEVER
        for axis in range(3):
            seen_at[env, agent, axis] = 0.0
    nearest[env, agent] = -1
    closest = float32(geometry.FAR)
    able = alive[env, agent] and not blind(agent, seekers, step[env], hide_steps[env])
    for other in range(agents):
        visible[env, agent, other] = False
        if able and alive[env, other] and opponents(agent, other, seekers):
            visible[env, agent, other] = in_line(
                sight, position, facing, pitch, env, agent, other, world, top[env], True
            )
            if visible[env, agent, other] and distance(position, env, agent, other) < closest:
                closest = distance(position, env, agent, other)
                nearest[env, agent] = other
    target = nearest[env, agent]
    if target >= 0:
        seen_ago[env, agent] = 0.0
        for axis in range(3):
            seen_at[env, agent, axis] = position[env, target, axis]
    elif seen_ago[env, agent] < NEVER:
        seen_ago[env, agent] += STEP_SECONDS


def body_distance(position, env, other, x, y, z, dx, dy, dz):
    """How far along a ray another agent's body is met, or FAR."""
    ox, oy, oz = position[env, other, 0], position[env, other, 1], position[env, other, 2]
    return geometry.box_distance(
        x, y, z, dx, dy, dz, ox - HALF, oy, oz - HALF, ox + HALF, oy + HEIGHT, oz + HALF
    )


@phase(lanes=("agents", "rays"), writes="observation")
def look(
    env,
    agent,
    ray,
    agents,
    seekers,
    world,
    step,
    hide_steps,
    alive,
    position,
    facing,
    solid,
    sight,
    top,
    placed,
    ground,
    plan,
    lineup,
    controller,
    observation,
):
    """One ray: how far it goes, and what it meets. Bots do without: in training, where lineups are
    drawn, theirs are not cast."""
    observation[env, agent, RAY_DISTANCE + ray] = 1.0
    observation[env, agent, RAY_KIND + ray] = 0.0
    if not alive[env, agent] or blind(agent, seekers, step[env], hide_steps[env]):
        return
    if lineup[env] >= 0 and controller[env, agent] > 0:
        return
    row, column = ray // ACROSS, ray % ACROSS
    ahead_x = facing[env, agent, 0] * YAW_COS[column] - facing[env, agent, 1] * YAW_SIN[column]
    ahead_z = facing[env, agent, 1] * YAW_COS[column] + facing[env, agent, 0] * YAW_SIN[column]
    level = facing[env, agent, 2] * PITCH_COS[row] - facing[env, agent, 3] * PITCH_SIN[row]
    dy = facing[env, agent, 3] * PITCH_COS[row] + facing[env, agent, 2] * PITCH_SIN[row]
    x, y, z = position[env, agent, 0], position[env, agent, 1] + EYE, position[env, agent, 2]
    t, hit_x, hit_y, hit_z = geometry.cast_columns(
        sight, env, world, top[env], x, y, z, ahead_x * level, dy, ahead_z * level, RANGE
    )
    kind = float32(0.0)
    if hit_y >= 0:
        kind = KIND_BLOCK * float32(
            block_kind(solid, sight, placed, ground, plan, env, hit_x, hit_y, hit_z)
        )
    for other in range(agents):
        if other == agent or not alive[env, other]:
            continue
        to_x, to_z = position[env, other, 0] - x, position[env, other, 2] - z
        if abs(to_x * ahead_z - to_z * ahead_x) <= BODY_RADIUS:
            d = body_distance(position, env, other, x, y, z, ahead_x * level, dy, ahead_z * level)
            if d < t:
                t = d
                kind = float32(KIND_OPPONENT if opponents(agent, other, seekers) else KIND_MATE)
    observation[env, agent, RAY_DISTANCE + ray] = t / RANGE
    observation[env, agent, RAY_KIND + ray] = kind
