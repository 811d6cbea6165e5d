"""Hits, knockback, knock-outs and coming back."""

from ludus.games.brawl import moves
from ludus.games.brawl.movement import (
    AIR_JUMPS,
    HALF_HEIGHT,
    HALF_WIDTH,
    INNER,
    OUTER,
    enter,
    free,
    ground_top,
)
from ludus.games.brawl.state import (
    AIR,
    COMBO,
    COMBO_WAIT,
    DAMAGE,
    DODGE_WAIT,
    FACING,
    FELL,
    GROUND,
    HURT,
    IN_DANGER,
    JUMP_WAIT,
    JUMPS,
    KEYS,
    MODE,
    MOVE,
    MOVE_FRAME,
    NO_MOVE,
    OUT,
    PRESSED,
    RECOVERIES,
    SAFE,
    SIDE,
    SPEED_X,
    SPEED_Y,
    STOCKS,
    STRIKING,
    STRUCK,
    STUNNED,
    SURFACE,
    TIMER,
    UNARMED,
    WEAPON,
    X,
    Y,
)
from ludus.sim import float32

EDGE_X, EDGE_Y = 14.0, 8.0  # beyond them a fighter is knocked out
DANGER_X, DANGER_Y = 9.0, 5.0  # beyond them it is in danger of it
START_X = 5.0
OUT_FRAMES, RETURN_SAFE = 90, 30
DAMAGE_CAP = 700.0
COMBO_FRAMES = 15  # after the stun of a hit in which the next one makes a combo
PRESSURE_REACH, PRESSURE_EDGE = 4.0, 1.5
NO_HIT = -1


def reaching_hit(motion, status, env, me, other):
    """The number of the hit of this fighter's move that reaches the other in this frame, or
    NO_HIT."""
    if (
        status[env, me, MODE] != STRIKING
        or status[env, other, MODE] == OUT
        or status[env, other, SAFE] > 0
    ):
        return NO_HIT
    move, frame = status[env, me, MOVE], status[env, me, MOVE_FRAME]
    for hit in range(moves.HITS[move]):
        landed = (status[env, me, STRUCK] >> hit) & 1
        if landed == 0 and moves.FIRST[move, hit] <= frame <= moves.LAST[move, hit]:
            middle_x = (
                motion[env, me, X] + float32(status[env, me, FACING]) * moves.BOX_X[move, hit]
            )
            middle_y = motion[env, me, Y] + moves.BOX_Y[move, hit]
            near_x = (
                abs(motion[env, other, X] - middle_x) < moves.BOX_HALF_X[move, hit] + HALF_WIDTH
            )
            near_y = (
                abs(motion[env, other, Y] - middle_y) < moves.BOX_HALF_Y[move, hit] + HALF_HEIGHT
            )
            if near_x and near_y:
                return hit
    return NO_HIT


def knockback_force(fixed, variable, damage):
    return fixed + variable * (damage / 70.0 + damage * damage / 12000.0)


def land_hit(motion, status, event, env, me, move, facing, hit, knockback):
    """This fighter is hit: damaged, thrown and stunned."""
    taken = min(moves.HIT_DAMAGE[move, hit], DAMAGE_CAP - motion[env, me, DAMAGE])
    motion[env, me, DAMAGE] += taken
    event[env, me, HURT] += taken
    thrown = knockback * knockback_force(
        moves.FIXED[move, hit], moves.VARIABLE[move, hit], motion[env, me, DAMAGE]
    )
    motion[env, me, SPEED_X] += thrown * moves.AWAY[move, hit] * facing
    motion[env, me, SPEED_Y] += thrown * moves.UPWARD[move, hit]
    status[env, me, SURFACE] = AIR
    free(status, env, me)
    enter(status, env, me, STUNNED, moves.STUN[move, hit])
    status[env, me, COMBO_WAIT] = moves.STUN[move, hit] + COMBO_FRAMES


def exchange_hits(motion, status, event, env, knockback):
    """Both fighters strike from where they are: neither comes first, so two can hit each other in
    one frame."""
    hit_0, hit_1 = reaching_hit(motion, status, env, 0, 1), reaching_hit(motion, status, env, 1, 0)
    move_0, move_1 = status[env, 0, MOVE], status[env, 1, MOVE]
    for attacker in range(2):
        victim = 1 - attacker
        hit = hit_0 if attacker == 0 else hit_1
        if hit != NO_HIT:
            if status[env, attacker, STRUCK] == 0 and status[env, victim, COMBO_WAIT] > 0:
                event[env, attacker, COMBO] += 1.0
            status[env, attacker, STRUCK] |= 1 << hit
    facing_0, facing_1 = float32(status[env, 0, FACING]), float32(status[env, 1, FACING])
    if hit_0 != NO_HIT:
        land_hit(motion, status, event, env, 1, move_0, facing_0, hit_0, knockback)
    if hit_1 != NO_HIT:
        land_hit(motion, status, event, env, 0, move_1, facing_1, hit_1, knockback)


# -- out and back ----------------------------------------------------------------------------------


def put_at_start(motion, status, env, me):
    """Unhurt, unarmed and at rest where it started, facing the middle."""
    side = status[env, me, SIDE]
    motion[env, me, X] = -START_X * float32(side)
    motion[env, me, Y] = ground_top(motion[env, me, X]) + HALF_HEIGHT
    motion[env, me, SPEED_X] = 0.0
    motion[env, me, SPEED_Y] = 0.0
    motion[env, me, DAMAGE] = 0.0
    status[env, me, FACING] = side
    status[env, me, SURFACE] = GROUND
    status[env, me, JUMPS] = AIR_JUMPS
    status[env, me, RECOVERIES] = 1
    status[env, me, WEAPON] = UNARMED
    status[env, me, MOVE] = NO_MOVE
    for entry in (DODGE_WAIT, JUMP_WAIT, SAFE, MOVE_FRAME, STRUCK, COMBO_WAIT, KEYS, TIMER):
        status[env, me, entry] = 0


def knock_out_or_bring_back(motion, status, event, env, me):
    if status[env, me, MODE] == OUT:
        if status[env, me, TIMER] == 0:
            free(status, env, me)
            status[env, me, SAFE] = RETURN_SAFE
        return
    if abs(motion[env, me, X]) > EDGE_X or abs(motion[env, me, Y]) > EDGE_Y:
        status[env, me, STOCKS] -= 1
        event[env, me, FELL] += 1.0
        put_at_start(motion, status, env, me)
        enter(status, env, me, OUT, OUT_FRAMES)


def note_positions(motion, status, event, env, me):
    """Danger is being far out; pressure is standing between the middle and an opponent close to the
    edge."""
    other = 1 - me
    if status[env, me, MODE] == OUT:
        return
    x, y = motion[env, me, X], motion[env, me, Y]
    if abs(x) > DANGER_X or abs(y) > DANGER_Y:
        event[env, me, IN_DANGER] += 1.0
    other_x = motion[env, other, X]
    cornered = status[env, other, MODE] != OUT and abs(other_x) > OUTER - PRESSURE_EDGE
    inside = x * other_x > 0.0 and INNER < abs(x) < abs(other_x)
    if cornered and inside and abs(other_x - x) < PRESSURE_REACH:
        event[env, me, PRESSED] += 1.0
