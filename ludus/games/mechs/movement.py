"""Bodies among voxels: walking, climbing, jets, falling; and where mechs start."""

import math

from ludus.games.mechs.classes import (
    DT,
    HALF,
    JET,
    LEGGED,
    SPEED,
    STEP_SECONDS,
    SUBSTEPS,
    TALL,
    TURN,
)
from ludus.games.mechs.maps import SPAWN_APART, spawn_columns
from ludus.games.mechs.voxels import WET, overlaps
from ludus.sim import float32, geometry, phase, random

GRAVITY, FASTEST_FALL, FASTEST_RISE = 9.81, 15.0, 8.0
STEP_UP = 1.1
WADE = 0.6  # factor on speed in water
PUSH = 2.0  # metres a second at which overlapping mechs move apart
OFF_SEAT, OFF_YAW = 0.45, 0.5
EDGE = 1e-3  # kept between a body and the world's edge

SPAWN_X, SPAWN_Z, SPAWN_YAW = 71, 72, 73  # streams of randomness


def in_floor(bank_floor, bank_ground, position, env, agent, chart):
    """What the mech's feet are in: DRY, WET or MOLTEN."""
    x, z = int(position[env, agent, 0]), int(position[env, agent, 2])
    floor = bank_floor[chart, x, z]
    return floor if position[env, agent, 1] < float32(bank_ground[chart, x, z]) + 0.5 else 0


@phase(lanes="agents", writes="push")
def jostle(env, agent, agents, wreck, kind, position, push):
    """Mechs that overlap are pushed apart."""
    push_x, push_z = float32(0.0), float32(0.0)
    if not wreck[env, agent]:
        half, tall = HALF[kind[agent]], TALL[kind[agent]]
        for other in range(agents):
            dx = position[env, agent, 0] - position[env, other, 0]
            dz = position[env, agent, 2] - position[env, other, 2]
            room = half + HALF[kind[other]]
            if abs(dx) >= room or abs(dz) >= room or other == agent or wreck[env, other]:
                continue
            dy = position[env, agent, 1] - position[env, other, 1]
            if dy >= TALL[kind[other]] or -dy >= tall:
                continue
            d = max(math.sqrt(dx * dx + dz * dz), 0.1)
            push_x += PUSH * dx / d
            push_z += PUSH * dz / d
    push[env, agent, 0] = geometry.clamp(push_x, -PUSH, PUSH)
    push[env, agent, 1] = geometry.clamp(push_z, -PUSH, PUSH)


@phase(
    lanes="agents", writes=("position", "velocity", "yaw", "facing", "fall", "grounded", "jetting")
)
def move(
    env,
    agent,
    world,
    height,
    kind,
    wreck,
    down,
    shut,
    legs,
    chart,
    action_forward,
    action_strafe,
    action_vertical,
    action_turn,
    push,
    bank_floor,
    bank_ground,
    bank_solid,
    patch_solid,
    patch_key,
    touched,
    position,
    velocity,
    yaw,
    facing,
    fall,
    grounded,
    jetting,
):
    """Five sub-steps of walking, jets and falling. `velocity` is what the whole step came to."""
    if wreck[env, agent]:
        return
    what, here = kind[agent], chart[env]
    half, tall = HALF[what], TALL[what]
    forward = geometry.clamp(action_forward[env, agent], -1.0, 1.0)
    strafe = geometry.clamp(action_strafe[env, agent], -1.0, 1.0)
    turn = geometry.clamp(action_turn[env, agent], -1.0, 1.0)
    lift = JET[what] * geometry.clamp(action_vertical[env, agent], 0.0, 1.0)
    pace = SPEED[what] / max(1.0, math.sqrt(forward * forward + strafe * strafe))
    if down[env, agent] > 0.0 or shut[env, agent]:
        pace, turn, lift = float32(0.0), float32(0.0), float32(0.0)
    if legs[env, agent] <= 0.0:
        pace *= LEGGED
    if in_floor(bank_floor, bank_ground, position, env, agent, here) == WET:
        pace *= WADE
    jetting[env, agent] = lift / max(JET[what], 1.0)
    yaw[env, agent] = geometry.wrap_angle(yaw[env, agent] + TURN[what] * turn * STEP_SECONDS)
    ahead_x, ahead_z = math.cos(yaw[env, agent]), math.sin(yaw[env, agent])
    facing[env, agent, 0] = ahead_x
    facing[env, agent, 1] = ahead_z
    move_x = (pace * (forward * ahead_x - strafe * ahead_z) + push[env, agent, 0]) * DT
    move_z = (pace * (forward * ahead_z + strafe * ahead_x) + push[env, agent, 1]) * DT
    low, high = half + EDGE, float32(world) - half - EDGE
    x, y, z = position[env, agent, 0], position[env, agent, 1], position[env, agent, 2]
    speed, stands = fall[env, agent], grounded[env, agent]
    for _ in range(SUBSTEPS):
        for axis in range(2):  # along x, then along z: what is stopped slides
            new_x = geometry.clamp(x + move_x, low, high) if axis == 0 else x
            new_z = geometry.clamp(z + move_z, low, high) if axis == 1 else z
            if new_x == x and new_z == z:
                continue
            up = y
            if overlaps(
                bank_solid,
                patch_solid,
                patch_key,
                touched,
                env,
                here,
                world,
                half,
                tall,
                new_x,
                y,
                new_z,
            ):
                up = float32(int(y + STEP_UP))
                if not stands or up <= y:
                    continue
                if overlaps(
                    bank_solid,
                    patch_solid,
                    patch_key,
                    touched,
                    env,
                    here,
                    world,
                    half,
                    tall,
                    new_x,
                    up,
                    new_z,
                ):
                    continue
            x, y, z = new_x, up, new_z
        speed = geometry.clamp(speed + (lift - GRAVITY) * DT, -FASTEST_FALL, FASTEST_RISE)
        new = min(y + speed * DT, float32(height))
        if overlaps(
            bank_solid, patch_solid, patch_key, touched, env, here, world, half, tall, x, new, z
        ):
            stands = new < y
            if stands:
                y = min(y, float32(int(new) + 1))
            speed = float32(0.0)
        else:
            y, stands = new, False
    velocity[env, agent, 0] = (x - position[env, agent, 0]) / STEP_SECONDS
    velocity[env, agent, 1] = (y - position[env, agent, 1]) / STEP_SECONDS
    velocity[env, agent, 2] = (z - position[env, agent, 2]) / STEP_SECONDS
    position[env, agent, 0] = x
    position[env, agent, 1] = y
    position[env, agent, 2] = z
    fall[env, agent] = speed
    grounded[env, agent] = stands


@phase(
    lanes="agents",
    writes=("position", "velocity", "yaw", "facing", "fall", "grounded", "jetting", "push"),
)
def spawn(
    env,
    agent,
    world,
    per_team,
    key,
    bank_ground,
    chart,
    position,
    velocity,
    yaw,
    facing,
    fall,
    grounded,
    jetting,
    push,
):
    """Team 0 stands in a square at the low corner, team 1 in the same square turned by 180 degrees,
    each a little off its seat.

    Without the offsets two identical teams would mirror each other to the end, and every match
    would be a draw.
    """
    columns = spawn_columns(per_team)
    seat = agent % per_team
    x = (
        SPAWN_APART * (float32(seat // columns) + 0.5)
        + 0.5
        + random.between(key[env], SPAWN_X, agent, -OFF_SEAT, OFF_SEAT)
    )
    z = (
        SPAWN_APART * (float32(seat % columns) + 0.5)
        + 0.5
        + random.between(key[env], SPAWN_Z, agent, -OFF_SEAT, OFF_SEAT)
    )
    angle = 0.25 * math.pi + random.between(key[env], SPAWN_YAW, agent, -OFF_YAW, OFF_YAW)
    if agent >= per_team:
        x, z, angle = float32(world) - x, float32(world) - z, angle - math.pi
    position[env, agent, 0] = x
    position[env, agent, 1] = float32(bank_ground[chart[env], int(x), int(z)])
    position[env, agent, 2] = z
    yaw[env, agent] = angle
    facing[env, agent, 0] = math.cos(angle)
    facing[env, agent, 1] = math.sin(angle)
    for axis in range(3):
        velocity[env, agent, axis] = 0.0
    fall[env, agent] = 0.0
    grounded[env, agent] = True
    jetting[env, agent] = 0.0
    push[env, agent, 0] = 0.0
    push[env, agent, 1] = 0.0
