"""Scripted players. They know of opponents only what their own body sees and has seen; the ground
around them they know.

Frozen: trained agents are measured against them.
"""

import math

from ludus.games.hide_and_seek.physics import CHEST, EYE, HALF, LOOK, TURN, collides
from ludus.games.hide_and_seek.vision import clear_line
from ludus.sim import float32, geometry, phase, random

DIRECTIONS = 16
WAYPOINT, WAYPOINT_Z, DETOUR = 31, 32, 33  # streams of randomness
FREE, STEP_UP, WALL = 0, 1, 2
REMEMBER_HIDER, REMEMBER_SEEKER = 4.0, 5.0  # seconds
COVER = 1.0  # what being out of sight is worth to a hider, in units of 8 metres' distance

# where the actions are in the packed arrays: in the order of the declaration
FORWARD, STRAFE, TURNING, LOOKING = range(4)
JUMP, PLACE, REMOVE = range(3)
WRITES = ("continuous", "binary", "bot_goal", "bot_heading", "bot_timer", "bot_stuck")


def way(solid, env, world, x, y, z):
    """Can a body stand here: yes, after a jump, or not at all?"""
    edge = float32(world) - HALF
    if x < HALF or z < HALF or x > edge or z > edge:
        return WALL
    if not collides(solid, env, world, x, y + 0.01, z):
        return FREE
    return WALL if collides(solid, env, world, x, y + 1.05, z) else STEP_UP


def open_direction(solid, position, bot_heading, env, agent, world, want_x, want_z):
    """The passable direction nearest to the wanted one and to the last: (x, z, whether to jump)."""
    x, y, z = position[env, agent, 0], position[env, agent, 1], position[env, agent, 2]
    best, best_x, best_z, jump = float32(-1e9), want_x, want_z, False
    for k in range(DIRECTIONS + 1):
        dx, dz = want_x, want_z
        if k > 0:
            angle = float32(k) * (2.0 * math.pi / float32(DIRECTIONS))
            dx, dz = math.cos(angle), math.sin(angle)
        score = (
            dx * want_x
            + dz * want_z
            + 0.45 * (dx * bot_heading[env, agent, 0] + dz * bot_heading[env, agent, 1])
        )
        if score <= best:  # what is in the way only takes from it
            continue
        first = way(solid, env, world, x + 0.4 * dx, y, z + 0.4 * dz)
        second = way(solid, env, world, x + 0.9 * dx, y, z + 0.9 * dz)
        third = way(solid, env, world, x + 1.5 * dx, y, z + 1.5 * dz)
        if first == WALL or second == WALL:
            score -= 4.0
        elif third == WALL:
            score -= 0.7
        if score > best:
            best, best_x, best_z = score, dx, dz
            jump = first == STEP_UP or second == STEP_UP
    return best_x, best_z, jump


def towards(angle, aim):
    """The turn in [-1, 1] that brings an angle closer to another."""
    return geometry.clamp(geometry.wrap_angle(aim - angle) / TURN, -1.0, 1.0)


def act(
    env,
    agent,
    world,
    solid,
    position,
    velocity,
    yaw,
    pitch,
    blocked,
    bot_heading,
    bot_stuck,
    key,
    continuous,
    binary,
    go_x,
    go_z,
    view,
    view_up,
    pace,
):
    """Walks towards (go_x, go_z), round what is in the way, while looking at the angles `view` and
    `view_up`."""
    length = math.sqrt(go_x * go_x + go_z * go_z)
    jump = False
    if length > 1e-3 and pace > 0.0:
        want_x, want_z = go_x / length, go_z / length
        moved = abs(velocity[env, agent, 0]) + abs(velocity[env, agent, 2])
        if bot_stuck[env, agent] < 0:  # on a detour: straight on in the direction it was begun
            bot_stuck[env, agent] += 1
            want_x, want_z = bot_heading[env, agent, 0], bot_heading[env, agent, 1]
        elif moved < 0.8:
            bot_stuck[env, agent] += 1
            if bot_stuck[env, agent] > 5:
                angle = random.between(key[env], DETOUR, agent, -math.pi, math.pi)
                bot_stuck[env, agent] = -6
                bot_heading[env, agent, 0], bot_heading[env, agent, 1] = (
                    math.cos(angle),
                    math.sin(angle),
                )
        else:
            bot_stuck[env, agent] = 0
        go_x, go_z, jump = open_direction(
            solid, position, bot_heading, env, agent, world, want_x, want_z
        )
        bot_heading[env, agent, 0], bot_heading[env, agent, 1] = go_x, go_z
        jump = jump or blocked[env, agent, 0] or blocked[env, agent, 1]
    else:
        go_x, go_z = float32(0.0), float32(0.0)
    turned = towards(yaw[env, agent], view)
    facing = yaw[env, agent] + TURN * turned
    continuous[env, agent, TURNING] = turned
    continuous[env, agent, LOOKING] = geometry.clamp(
        (view_up - pitch[env, agent]) / LOOK, -1.0, 1.0
    )
    continuous[env, agent, FORWARD] = geometry.clamp(
        pace * (go_x * math.cos(facing) + go_z * math.sin(facing)), -1.0, 1.0
    )
    continuous[env, agent, STRAFE] = geometry.clamp(
        pace * (go_z * math.cos(facing) - go_x * math.sin(facing)), -1.0, 1.0
    )
    binary[env, agent, JUMP] = 1 if jump else 0
    binary[env, agent, PLACE] = 0
    binary[env, agent, REMOVE] = 0


def look_up_at(position, seen_at, env, agent):
    """The elevation of the place where an opponent was seen."""
    dx = seen_at[env, agent, 0] - position[env, agent, 0]
    dz = seen_at[env, agent, 2] - position[env, agent, 2]
    dy = seen_at[env, agent, 1] + CHEST - position[env, agent, 1] - EYE
    return math.atan2(dy, max(math.sqrt(dx * dx + dz * dz), 0.5))


@phase(lanes="agents", writes=WRITES)
def seeker(
    env,
    agent,
    world,
    key,
    step,
    solid,
    position,
    velocity,
    yaw,
    pitch,
    blocked,
    nearest,
    seen_at,
    seen_ago,
    bot_goal,
    bot_heading,
    bot_timer,
    bot_stuck,
    continuous,
    binary,
):
    """Runs at the hider it sees, else to where it saw one last; then walks from place to place,
    looking left and right."""
    x, z = position[env, agent, 0], position[env, agent, 2]
    view_up, swing, pace = 0.0, 0.0, 1.0
    if bot_timer[env, agent] > 0:
        bot_timer[env, agent] -= 1
    to_x, to_z = bot_goal[env, agent, 0] - x, bot_goal[env, agent, 1] - z
    if nearest[env, agent] >= 0:
        bot_goal[env, agent, 0], bot_goal[env, agent, 1] = (
            seen_at[env, agent, 0],
            seen_at[env, agent, 2],
        )
        bot_timer[env, agent] = 60
        to_x, to_z = bot_goal[env, agent, 0] - x, bot_goal[env, agent, 1] - z
        view_up = look_up_at(position, seen_at, env, agent)
        if to_x * to_x + to_z * to_z < 0.64:
            pace = 0.0
    elif bot_timer[env, agent] == 0 or to_x * to_x + to_z * to_z < 1.5:
        bot_goal[env, agent, 0] = random.between(
            key[env], WAYPOINT, agent, 2.0, float32(world) - 2.0
        )
        bot_goal[env, agent, 1] = random.between(
            key[env], WAYPOINT_Z, agent, 2.0, float32(world) - 2.0
        )
        bot_timer[env, agent] = 50
        if seen_ago[env, agent] < REMEMBER_HIDER:  # lost just now: look for it near by
            bot_goal[env, agent, 0] = geometry.clamp(
                0.7 * x + 0.3 * bot_goal[env, agent, 0], 1.0, float32(world) - 1.0
            )
            bot_goal[env, agent, 1] = geometry.clamp(
                0.7 * z + 0.3 * bot_goal[env, agent, 1], 1.0, float32(world) - 1.0
            )
        to_x, to_z = bot_goal[env, agent, 0] - x, bot_goal[env, agent, 1] - z
    if nearest[env, agent] < 0:
        swing = math.radians(100.0) * math.sin(0.5 * float32(step[env]))
    act(
        env,
        agent,
        world,
        solid,
        position,
        velocity,
        yaw,
        pitch,
        blocked,
        bot_heading,
        bot_stuck,
        key,
        continuous,
        binary,
        to_x,
        to_z,
        math.atan2(to_z, to_x) + swing,
        view_up,
        pace,
    )


def out_of_sight(sight, ground, seen_at, env, agent, world, top, x, z):
    """Is a place hidden from where the seeker was seen?"""
    from_x, from_y, from_z = (
        seen_at[env, agent, 0],
        seen_at[env, agent, 1] + EYE,
        seen_at[env, agent, 2],
    )
    y = float32(ground[env, int(x), int(z)])
    hidden = True
    for part in range(2):
        to_y = y + (EYE if part == 0 else CHEST)
        hidden = hidden and not clear_line(
            sight, env, world, top, from_x, from_y, from_z, x, to_y, z
        )
    return hidden


def openness(seen_at, env, agent, world, x, z):
    """How good a place is but for its cover: far from where the seeker was seen, not in a
    corner."""
    dx, dz = x - seen_at[env, agent, 0], z - seen_at[env, agent, 2]
    edge = min(min(x, z), float32(world) - max(x, z))
    return 0.12 * math.sqrt(dx * dx + dz * dz) - 0.15 * max(4.0 - edge, 0.0)


def choose_hide(sight, solid, ground, position, seen_at, bot_goal, env, agent, world, top):
    """The best of the places around that can be walked towards."""
    x, y, z = position[env, agent, 0], position[env, agent, 1], position[env, agent, 2]
    best = float32(-1e9)
    away_x, away_z = x - seen_at[env, agent, 0], z - seen_at[env, agent, 2]
    away = max(math.sqrt(away_x * away_x + away_z * away_z), 0.1)
    for k in range(DIRECTIONS):
        angle = float32(k) * (2.0 * math.pi / float32(DIRECTIONS))
        dx, dz = math.cos(angle), math.sin(angle)
        if way(solid, env, world, x + 0.8 * dx, y, z + 0.8 * dz) == WALL:
            continue
        for ring in range(1, 4):
            reach = 2.5 * float32(ring)
            to_x = geometry.clamp(x + reach * dx, 0.5, float32(world) - 0.5)
            to_z = geometry.clamp(z + reach * dz, 0.5, float32(world) - 0.5)
            value = openness(seen_at, env, agent, world, to_x, to_z) - 0.05 * reach
            towards_it = -(dx * away_x + dz * away_z) / away
            if away < 8.0 and towards_it > 0.3:
                value -= 1.5 * towards_it
            # lines of sight cost most: they are looked along only where cover would make the place
            # the best
            if value + COVER > best and out_of_sight(
                sight, ground, seen_at, env, agent, world, top, to_x, to_z
            ):
                value += COVER
            if value > best:
                best = value
                bot_goal[env, agent, 0], bot_goal[env, agent, 1] = to_x, to_z


@phase(lanes="agents", writes=WRITES)
def hider(
    env,
    agent,
    world,
    key,
    sight,
    solid,
    top,
    ground,
    position,
    velocity,
    yaw,
    pitch,
    blocked,
    nearest,
    seen_at,
    seen_ago,
    bot_goal,
    bot_heading,
    bot_timer,
    bot_stuck,
    continuous,
    binary,
):
    """Gets out of the line of sight of the seeker it saw, then away from it, looking back; at rest
    it looks around."""
    x, z = position[env, agent, 0], position[env, agent, 2]
    view, view_up, pace = yaw[env, agent] + math.radians(95.0), 0.0, 0.0
    if bot_timer[env, agent] > 0:
        bot_timer[env, agent] -= 1
    if seen_ago[env, agent] < REMEMBER_SEEKER:
        if bot_timer[env, agent] == 0:
            choose_hide(
                sight, solid, ground, position, seen_at, bot_goal, env, agent, world, top[env]
            )
            bot_timer[env, agent] = 4
        pace = 1.0
        if nearest[env, agent] >= 0 or bot_timer[env, agent] % 2 == 0:
            view = math.atan2(seen_at[env, agent, 2] - z, seen_at[env, agent, 0] - x)
            view_up = look_up_at(position, seen_at, env, agent)
    to_x, to_z = bot_goal[env, agent, 0] - x, bot_goal[env, agent, 1] - z
    if to_x * to_x + to_z * to_z < 0.2:
        pace = 0.0
    act(
        env,
        agent,
        world,
        solid,
        position,
        velocity,
        yaw,
        pitch,
        blocked,
        bot_heading,
        bot_stuck,
        key,
        continuous,
        binary,
        to_x,
        to_z,
        view,
        view_up,
        pace,
    )


@phase(lanes="agents", writes=("bot_goal", "bot_heading", "bot_timer", "bot_stuck"))
def forget(env, agent, position, bot_goal, bot_heading, bot_timer, bot_stuck):
    """A new episode: the bots know nothing yet."""
    bot_goal[env, agent, 0], bot_goal[env, agent, 1] = (
        position[env, agent, 0],
        position[env, agent, 2],
    )
    bot_heading[env, agent, 0], bot_heading[env, agent, 1] = 0.0, 0.0
    bot_timer[env, agent] = 0
    bot_stuck[env, agent] = 0
