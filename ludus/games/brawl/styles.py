"""How each scripted fighter decides. Every style returns the keys to hold, as bits, on the stage as
it is."""

from ludus.games.brawl import moves
from ludus.games.brawl.movement import OUTER, attacking, in_control, platform_x
from ludus.games.brawl.senses import (
    MIDDLE,
    above,
    ahead,
    chase,
    come_home,
    face,
    fetch,
    in_reach,
    poke,
    running,
    slow_move,
    threatened,
    towards,
    vulnerable,
    walk_to,
)
from ludus.games.brawl.state import (
    AIR,
    DAMAGE,
    DASH,
    DODGE_WAIT,
    DOWN,
    HEAVY,
    JUMP,
    LEFT,
    LIGHT,
    MODE,
    MOVE,
    MOVE_FRAME,
    OUT,
    RIGHT,
    SHUTTLE,
    SIDE,
    STANDING,
    STRIKING,
    STUNNED,
    SURFACE,
    TAUNT,
    TIMER,
    UP,
    X,
)

POUNCE_REACH = 2.0
HEAVY_NEEDS = 11  # frames that a heavy blow takes to land
READY = 120.0  # damage from which a heavy blow is likely to knock out
# clockwork: the same drill over and over, (keys, frames); it ends where it began
DRILL = (
    (RIGHT, 9),
    (LIGHT | UP, 18),
    (LEFT, 9),
    (JUMP, 3),
    (LIGHT | UP, 24),
    (LEFT, 9),
    (HEAVY, 30),
    (RIGHT, 9),
    (DASH, 9),
)
DRILL_FRAMES = sum(frames for _, frames in DRILL)


def own_ground(status, env, me):
    """The middle of the ground it started on."""
    return -MIDDLE if status[env, me, SIDE] > 0 else MIDDLE


def helpless(status, env, who):
    """Its move is past its last hit, or it is stunned: it cannot answer."""
    if status[env, who, MODE] == STUNNED:
        return True
    move = status[env, who, MOVE]
    return (
        status[env, who, MODE] == STRIKING
        and status[env, who, MOVE_FRAME] > moves.LAST[move, moves.HITS[move] - 1]
    )


def punish(motion, status, env, me):
    """The hardest blow that still comes in time at an opponent who is helpless within reach; 0 if
    it is not."""
    other = 1 - me
    if not in_reach(motion, status, env, me) or not helpless(status, env, other):
        return 0
    slow_enough = status[env, other, TIMER] > HEAVY_NEEDS and motion[env, other, DAMAGE] > READY
    return HEAVY | towards(ahead(motion, env, me)) if slow_enough else poke(motion, env, me)


def idle_target(status, env, me):
    """Does the opponent just stand there?"""
    return status[env, 1 - me, MODE] == STANDING and vulnerable(status, env, 1 - me)


def based_keys(motion, status, env, me):
    keys = come_home(motion, status, env, me)
    if keys != 0:
        return keys
    return (
        poke(motion, env, me)
        if in_reach(motion, status, env, me)
        else chase(motion, status, env, me)
    )


def aggressive_keys(motion, status, stage, env, me):
    """Dashes in, strikes with whatever suits, takes weapons on its way."""
    keys = come_home(motion, status, env, me)
    if keys != 0:
        return keys
    other, dx = 1 - me, ahead(motion, env, me)
    keys = punish(motion, status, env, me)
    if keys != 0:
        return keys
    if in_reach(motion, status, env, me):
        return LIGHT | UP | towards(dx) if abs(dx) < 1.2 else poke(motion, env, me)
    if abs(dx) < 0.9 and 0.0 < above(motion, env, me) < 2.0 and vulnerable(status, env, other):
        return LIGHT | UP
    keys = fetch(motion, status, stage, env, me, 3.0)
    if keys != 0:
        return keys
    keys = chase(motion, status, env, me)
    return (
        keys | DASH
        if abs(dx) > 2.5 and not running(status, env, me) and status[env, me, SURFACE] != AIR
        else keys
    )


def defensive_keys(motion, status, env, me):
    """Holds its own ground, dodges what is thrown at it, strikes what comes near; goes for who just
    stands there."""
    keys = come_home(motion, status, env, me)
    if keys != 0:
        return keys
    if threatened(motion, status, env, me, 2.2) and status[env, me, DODGE_WAIT] == 0:
        return DASH
    keys = punish(motion, status, env, me)
    if keys != 0:
        return keys
    if in_reach(motion, status, env, me):
        return LIGHT | UP | towards(ahead(motion, env, me))
    if idle_target(status, env, me):
        return chase(motion, status, env, me)
    spot = own_ground(status, env, me)
    if abs(motion[env, me, X] - spot) > 1.0:
        return walk_to(motion, status, env, me, spot)
    return face(motion, status, env, me)


def kiter_keys(motion, status, stage, env, me):
    """Keeps out of reach, leaps over who corners it, strikes who cannot answer or just stands
    there."""
    keys = come_home(motion, status, env, me)
    if keys != 0:
        return keys
    dx, x = ahead(motion, env, me), motion[env, me, X]
    keys = punish(motion, status, env, me)
    if keys != 0:
        return keys
    if threatened(motion, status, env, me, 2.0) and status[env, me, DODGE_WAIT] == 0:
        return DASH
    if idle_target(status, env, me):
        return (
            poke(motion, env, me)
            if in_reach(motion, status, env, me)
            else chase(motion, status, env, me)
        )
    if abs(dx) > 4.5:
        keys = fetch(motion, status, stage, env, me, 2.5)
        return keys if keys != 0 else face(motion, status, env, me)
    cornered = abs(x) > OUTER - 1.0 and x * dx < 0.0
    if cornered:
        return towards(dx) | JUMP
    return walk_to(motion, status, env, me, x - 2.0 if dx > 0.0 else x + 2.0)


def waiting_keys(motion, status, env, me):
    """What parry and pounce do until somebody comes: stand on their own ground and look."""
    keys = come_home(motion, status, env, me)
    if keys != 0:
        return keys
    spot = own_ground(status, env, me)
    if abs(motion[env, me, X] - spot) > 1.5:
        return walk_to(motion, status, env, me, spot)
    return face(motion, status, env, me)


def parry_keys(motion, status, env, me):
    """Dodges or leaps over slow blows and strikes back; has no answer to who walks up and jabs."""
    if come_home(motion, status, env, me) == 0:
        keys = punish(motion, status, env, me)
        if keys != 0:
            return keys
        if threatened(motion, status, env, me, 3.0):
            return DASH if status[env, me, DODGE_WAIT] == 0 else JUMP
    return waiting_keys(motion, status, env, me)


def pounce_keys(motion, status, env, me):
    """Strikes whoever walks up and slips away from quick jabs; has no answer to who lunges at
    it."""
    if come_home(motion, status, env, me) == 0:
        other = 1 - me
        slow = slow_move(status, env, other)
        open_to_it = in_control(status[env, other, MODE]) or (
            helpless(status, env, other) and not slow
        )
        near = abs(ahead(motion, env, me)) < POUNCE_REACH and abs(above(motion, env, me)) < 1.0
        if near and open_to_it and vulnerable(status, env, other):
            return poke(motion, env, me)
        jabs = attacking(status[env, other, MODE]) and not slow
        if near and jabs and status[env, me, DODGE_WAIT] == 0:
            return DASH
    return waiting_keys(motion, status, env, me)


def clockwork_keys(frame):
    """The drill, whatever the opponent does."""
    left = frame % DRILL_FRAMES
    for keys, frames in DRILL:
        if left < frames:
            return keys
        left -= frames
    return 0


# -- styles kept out of training -------------------------------------------------------------------


def jumper_keys(motion, status, env, me):
    """Never stays on the ground: comes down on the opponent with moves from the air."""
    keys = come_home(motion, status, env, me)
    if keys != 0:
        return keys
    dx, dy = ahead(motion, env, me), above(motion, env, me)
    if status[env, me, SURFACE] != AIR:
        return JUMP | walk_to(motion, status, env, me, motion[env, 1 - me, X])
    if in_reach(motion, status, env, me):
        return LIGHT | towards(dx)
    if abs(dx) < 0.9 and -2.2 < dy < 0.0:
        return LIGHT | DOWN
    return walk_to(motion, status, env, me, motion[env, 1 - me, X])


def edge_guard_keys(motion, status, env, me):
    """Waits at the edge nearest to the opponent and meets it with heavy blows where it has to
    land."""
    keys = come_home(motion, status, env, me)
    if keys != 0:
        return keys
    other_x = motion[env, 1 - me, X]
    if in_reach(motion, status, env, me):
        off_balance = status[env, 1 - me, SURFACE] == AIR
        return (HEAVY if off_balance else LIGHT) | towards(ahead(motion, env, me))
    if status[env, 1 - me, MODE] == OUT:
        return walk_to(motion, status, env, me, own_ground(status, env, me))
    if other_x > OUTER - 0.5:
        return walk_to(motion, status, env, me, OUTER - 1.2)
    if other_x < 0.5 - OUTER:
        return walk_to(motion, status, env, me, 1.2 - OUTER)
    return chase(motion, status, env, me)


def zoner_keys(motion, status, stage, env, me):
    """Fetches a weapon from anywhere, then pokes at the end of its reach and steps back in
    between."""
    keys = come_home(motion, status, env, me)
    if keys != 0:
        return keys
    dx, x = ahead(motion, env, me), motion[env, me, X]
    if in_reach(motion, status, env, me):
        too_near = abs(dx) < 0.8 and in_control(status[env, 1 - me, MODE])
        return LIGHT | DOWN | towards(dx) if too_near else LIGHT | towards(dx)
    keys = fetch(motion, status, stage, env, me, 12.0)
    if keys != 0:
        return keys
    idle = idle_target(status, env, me)
    if (
        abs(dx) < 3.0
        and in_control(status[env, 1 - me, MODE])
        and abs(x) < OUTER - 1.0
        and not idle
    ):
        return walk_to(motion, status, env, me, x - dx)
    return chase(motion, status, env, me)


def camper_keys(motion, status, stage, env, me):
    """Rides the platform, strikes who comes, mocks who does not."""
    if in_reach(motion, status, env, me):
        return LIGHT | UP | towards(ahead(motion, env, me))
    if threatened(motion, status, env, me, 2.0) and status[env, me, DODGE_WAIT] == 0:
        return DASH
    platform = platform_x(stage[env, SHUTTLE])
    if status[env, me, SURFACE] == AIR:
        keys = come_home(motion, status, env, me)
        return keys if keys != 0 else walk_to(motion, status, env, me, platform)
    if abs(motion[env, me, X] - platform) < 0.8:
        return TAUNT if abs(ahead(motion, env, me)) > 6.0 else face(motion, status, env, me)
    keys = walk_to(motion, status, env, me, platform)
    return keys | JUMP if abs(motion[env, me, X] - platform) < 3.0 else keys
