"""What scripted fighters have in common: judging distances, walking up to someone, getting back
onto the stage.

These functions return keys as bits, on the stage as it is; 0 presses nothing.
"""

from ludus.games.brawl import moves
from ludus.games.brawl.movement import HALF_HEIGHT, INNER, OUTER, ground_top, over_ground
from ludus.games.brawl.state import (
    AIR,
    DASH,
    DASHING,
    FACING,
    GROUND,
    HAMMER,
    HEAVY,
    JUMP,
    JUMPS,
    LEFT,
    LIGHT,
    MODE,
    MOVE,
    NO_MOVE,
    OUT,
    PICK,
    PLACES,
    RECOVERIES,
    RIGHT,
    SAFE,
    SPEAR,
    SPEED_X,
    SPEED_Y,
    SPRINTING,
    SURFACE,
    UNARMED,
    UP,
    WEAPON,
    WEAPON_KIND,
    X,
    Y,
)
from ludus.games.brawl.weapons import REACH_X, place_x
from ludus.sim import float32, random

MIDDLE = (INNER + OUTER) / 2.0  # of a ground
LOOK_AHEAD = 0.25  # seconds
QUICK = 4  # a move that hits this soon cannot be seen coming
LUNGE = 1.3  # how far a sideways move carries
LATE = 0.15  # share of decisions in which a bot reacts too late
REACTION = 35  # stream of randomness


def towards(dx):
    return RIGHT if dx > 0.0 else LEFT


def ahead(motion, env, me):
    """How far to the right the opponent is."""
    return motion[env, 1 - me, X] - motion[env, me, X]


def above(motion, env, me):
    return motion[env, 1 - me, Y] - motion[env, me, Y]


def reach(status, env, me):
    """How far its weapon's sideways moves reach another body."""
    weapon = status[env, me, WEAPON]
    if weapon == SPEAR:
        return float32(2.4)
    return float32(1.9) if weapon == HAMMER else float32(1.5)


def in_reach(motion, status, env, me):
    near = abs(ahead(motion, env, me)) < reach(status, env, me)
    return near and abs(above(motion, env, me)) < 0.9 and vulnerable(status, env, 1 - me)


def vulnerable(status, env, who):
    return status[env, who, MODE] != OUT and status[env, who, SAFE] == 0


def slow_move(status, env, who):
    """Is it in the middle of a move that can be seen coming?"""
    move = status[env, who, MOVE]
    return move != NO_MOVE and moves.FIRST[move, 0] > QUICK


def threatened(motion, status, env, me, distance):
    """Is the opponent this close in the middle of a move that can be seen coming?"""
    near = abs(ahead(motion, env, me)) < distance and abs(above(motion, env, me)) < 2.0
    return near and slow_move(status, env, 1 - me)


def come_home(motion, status, env, me):
    """Keys that bring a fighter over the void back onto the stage; 0 if it is not over the void, or
    stands."""
    x, feet = (
        motion[env, me, X] + LOOK_AHEAD * motion[env, me, SPEED_X],
        motion[env, me, Y] - HALF_HEIGHT,
    )
    if status[env, me, SURFACE] != AIR or (over_ground(x) and feet > ground_top(x) - 0.2):
        return 0
    home = MIDDLE if x > 0.0 else -MIDDLE
    # over the pit: on to where it is going, or to the low ground if it is late for that
    if abs(x) < INNER:
        home = MIDDLE if motion[env, me, SPEED_X] > 0.0 and feet > -2.5 else -MIDDLE
    keys = towards(home - x)
    if motion[env, me, SPEED_Y] < 1.0 and feet < ground_top(home) + 0.5:
        if status[env, me, JUMPS] > 0:
            keys |= JUMP
        elif status[env, me, RECOVERIES] > 0:
            keys |= HEAVY | UP
    return keys


def walk_to(motion, status, env, me, x):
    """Walks towards a place, jumping over the pit."""
    dx = x - motion[env, me, X]
    if abs(dx) < 0.3:
        return 0
    keys = towards(dx)
    crossing = motion[env, me, X] * x < 0.0 and abs(motion[env, me, X]) < INNER + 0.7
    if crossing and status[env, me, SURFACE] == GROUND:
        keys |= JUMP
    return keys


def chase(motion, status, env, me):
    """Walks up to the opponent, jumping when it is below."""
    keys = walk_to(motion, status, env, me, motion[env, 1 - me, X])
    if (
        above(motion, env, me) > 1.2
        and abs(ahead(motion, env, me)) < 4.0
        and motion[env, me, SPEED_Y] <= 0.0
    ):
        keys |= JUMP
    return keys


def running(status, env, me):
    return status[env, me, MODE] == DASHING or status[env, me, MODE] == SPRINTING


def fetch(motion, status, stage, env, me, farthest):
    """Keys that get an unarmed fighter a weapon no farther away than this; 0 if there is none."""
    if status[env, me, WEAPON] != UNARMED:
        return 0
    keys, nearest = 0, farthest
    for place in range(PLACES):
        dx = place_x(place) - motion[env, me, X]
        if stage[env, WEAPON_KIND + place] != UNARMED and abs(dx) < nearest:
            nearest = abs(dx)
            keys = (
                PICK
                if abs(dx) < 0.7 * REACH_X
                else walk_to(motion, status, env, me, place_x(place))
            )
    return keys


def face(motion, status, env, me):
    """A short step to turn towards the opponent; 0 if it already faces it."""
    wanted = 1 if ahead(motion, env, me) > 0.0 else -1
    return 0 if status[env, me, FACING] == wanted else towards(ahead(motion, env, me))


def poke(motion, env, me):
    """A light move at the opponent: sideways, or on the spot where its lunge would end over the
    void."""
    dx = ahead(motion, env, me)
    lands = motion[env, me, X] + (LUNGE if dx > 0.0 else -LUNGE)
    return LIGHT | towards(dx) if over_ground(lands) else LIGHT | UP | towards(dx)


def hesitate(key, me, keys):
    """Now and then a decision comes too late to strike or dodge in it."""
    late = random.uniform(key, REACTION, me) < LATE
    return keys & ~(LIGHT | HEAVY | DASH) if late else keys
