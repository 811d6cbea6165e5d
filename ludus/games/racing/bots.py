"""Scripted drivers. They know the track and use only the eleven actions."""

import math

from ludus.games.racing.car import (
    AHEAD,
    BRAKE,
    BRAKING,
    GAS,
    GAS_LEFT,
    GAS_RIGHT,
    GRAVITY,
    GRIP_FRONT,
    HEADING,
    NOTHING,
    SLIGHT_LEFT,
    SLIGHT_RIGHT,
    SLOWEST,
    STEER_LEFT,
    STEER_RIGHT,
    WHEELBASE,
    X,
    Y,
    steer_limit,
)
from ludus.games.racing.track import CURVATURE, POINT_X, POINT_Y, POINTS
from ludus.sim import float32, phase

GRIP_SHARE = 0.8  # of the grip the driver uses in curves
LOOK_AHEAD, LOOK_AHEAD_SECONDS = 4.0, 0.35  # it aims at a point this far along the centre line
BRAKE_SHARE = 0.3  # of the strongest braking it counts on
BRAKE_STEER = 0.7  # it brakes only while it need not steer more than this
HORIZON = 120.0  # metres of track it reads for curves


def safe_speed(bank_line, track, at, spacing):
    """The fastest it may go here, so that it can still slow down for every curve ahead."""
    grip = GRIP_SHARE * GRIP_FRONT * GRAVITY
    braking = BRAKE_SHARE * BRAKING
    fastest = float32(1e4)
    for i in range(int(HORIZON / spacing)):
        curvature = max(abs(bank_line[track, (at + i) % POINTS, CURVATURE]), 1e-4)
        fastest = min(fastest, grip / curvature + 2.0 * braking * spacing * float32(i))
    return math.sqrt(fastest)


@phase(lanes="agents", writes="action_drive")
def driver(env, agent, track, at, car, bank_line, bank_length, action_drive):
    """Pure pursuit of a point ahead on the centre line, with the speed that the curves ahead
    allow."""
    spacing = bank_length[track[env]] / float32(POINTS)
    speed = max(car[env, agent, AHEAD], SLOWEST)
    reach = LOOK_AHEAD + LOOK_AHEAD_SECONDS * speed
    target = (at[env, agent] + int(reach / spacing)) % POINTS
    dx = bank_line[track[env], target, POINT_X] - car[env, agent, X]
    dy = bank_line[track[env], target, POINT_Y] - car[env, agent, Y]
    cos, sin = math.cos(car[env, agent, HEADING]), math.sin(car[env, agent, HEADING])
    left = dy * cos - dx * sin
    steer = math.atan(2.0 * WHEELBASE * left / max(dx * dx + dy * dy, 1.0)) / steer_limit(speed)
    limit = safe_speed(bank_line, track[env], at[env, agent], spacing)
    if speed > limit + 1.0:
        action_drive[env, agent] = slow(steer)
    elif speed < limit:
        action_drive[env, agent] = hurry(steer)
    else:
        action_drive[env, agent] = coast(steer)


def hurry(steer):
    if steer > 0.5:
        return GAS_LEFT
    return GAS_RIGHT if steer < -0.5 else GAS


def slow(steer):
    """Braking straight is strongest; where it must steer it lets go."""
    return BRAKE if abs(steer) < BRAKE_STEER else coast(steer)


def coast(steer):
    if abs(steer) < 0.25:
        return NOTHING
    if steer > 0.0:
        return STEER_LEFT if steer > 0.75 else SLIGHT_LEFT
    return STEER_RIGHT if steer < -0.75 else SLIGHT_RIGHT


@phase(lanes="agents", writes="action_drive")
def full_gas(env, agent, action_drive):
    """Straight on."""
    action_drive[env, agent] = GAS
