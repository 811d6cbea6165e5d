"""Spears and hammers: they appear at two places, lie there for a while, and are picked up and
dropped with one key."""

from ludus.games.brawl.movement import HALF_HEIGHT, LEFT_TOP, RIGHT_TOP, in_control
from ludus.games.brawl.state import (
    DROPPED,
    HAMMER,
    KEYS,
    MODE,
    PICK,
    PICKED,
    PLACES,
    SPEAR,
    UNARMED,
    WEAPON,
    WEAPON_KIND,
    WEAPON_TIME,
    X,
    Y,
)
from ludus.sim import float32, random

PLACE_X = 3.5  # on both grounds
LYING_FRAMES = 350
REACH_X, REACH_Y = 1.0, 1.2
FAR = 1e6
KIND, FIRST_WAIT = 31, 32  # streams of randomness


def place_x(place):
    return -PLACE_X if place == 0 else PLACE_X


def place_y(place):
    """The height of a weapon, as high as the middle of a fighter beside it."""
    return (LEFT_TOP if place == 0 else RIGHT_TOP) + HALF_HEIGHT


def distance_to_weapon(motion, stage, env, me, place):
    """How far along x a weapon within reach is, or FAR."""
    if stage[env, WEAPON_KIND + place] == UNARMED:
        return float32(FAR)
    away_x, away_y = (
        abs(motion[env, me, X] - place_x(place)),
        abs(motion[env, me, Y] - place_y(place)),
    )
    return away_x if away_x < REACH_X and away_y < REACH_Y else float32(FAR)


def reaches_for(motion, status, stage, env, me, place):
    """How far a fighter that wants this weapon is from it, or FAR."""
    wants = (
        status[env, me, KEYS] & PICK != 0
        and in_control(status[env, me, MODE])
        and status[env, me, WEAPON] == UNARMED
    )
    return distance_to_weapon(motion, stage, env, me, place) if wants else float32(FAR)


def use_pick_key(motion, status, stage, event, env, weapon_wait):
    """In a decision's first frame: the armed drop their weapon, the unarmed take one within reach;
    the nearer comes first."""
    dropping_0 = wants_to_drop(status, env, 0)
    dropping_1 = wants_to_drop(status, env, 1)
    for place in range(PLACES):
        away_0 = reaches_for(motion, status, stage, env, 0, place)
        away_1 = reaches_for(motion, status, stage, env, 1, place)
        if away_0 != away_1:
            taker = 0 if away_0 < away_1 else 1
            status[env, taker, WEAPON] = stage[env, WEAPON_KIND + place]
            stage[env, WEAPON_KIND + place] = UNARMED
            stage[env, WEAPON_TIME + place] = weapon_wait
            event[env, taker, PICKED] += 1.0
    for me in range(2):
        if dropping_0 if me == 0 else dropping_1:
            status[env, me, WEAPON] = UNARMED
            event[env, me, DROPPED] += 1.0


def wants_to_drop(status, env, me):
    return (
        status[env, me, KEYS] & PICK != 0
        and in_control(status[env, me, MODE])
        and status[env, me, WEAPON] != UNARMED
    )


def age_weapons(stage, env, key, frame, weapon_wait):
    """A weapon vanishes when its time is over; an empty place gets one when the wait is."""
    for place in range(PLACES):
        stage[env, WEAPON_TIME + place] -= 1
        if stage[env, WEAPON_TIME + place] <= 0:
            if stage[env, WEAPON_KIND + place] != UNARMED:
                stage[env, WEAPON_KIND + place] = UNARMED
                stage[env, WEAPON_TIME + place] = weapon_wait
            else:
                spear = random.integer(key, KIND, frame * PLACES + place, 2) == 0
                stage[env, WEAPON_KIND + place] = SPEAR if spear else HAMMER
                stage[env, WEAPON_TIME + place] = LYING_FRAMES


def empty_places(stage, env, key, weapon_wait):
    """A match starts without weapons; the first comes to each place within the wait."""
    for place in range(PLACES):
        stage[env, WEAPON_KIND + place] = UNARMED
        stage[env, WEAPON_TIME + place] = 1 + random.integer(key, FIRST_WAIT, place, weapon_wait)
