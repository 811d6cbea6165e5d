"""What a fighter observes: itself, its opponent (32 entries each), what both share; and which of
its keys can do anything.

A fighter that started on the right sees the stage mirrored, so that one policy can play both sides.
The stage is not symmetric, so the sign of the mirror is observed too.
"""

from ludus.games.brawl import moves
from ludus.games.brawl.combat import EDGE_X, EDGE_Y, OUT_FRAMES, RETURN_SAFE
from ludus.games.brawl.movement import (
    AIR_JUMPS,
    DODGE_GAP_AIR,
    GRAVITY,
    HALF_HEIGHT,
    LEFT_TOP,
    PLATFORM_PERIOD,
    attacking,
    in_control,
    platform_top,
    platform_x,
)
from ludus.games.brawl.state import (
    AIR,
    DAMAGE,
    DODGE_WAIT,
    FACING,
    FRAME,
    HAMMER,
    JUMP_WAIT,
    JUMPS,
    MODE,
    MODE_NAMES,
    MODES,
    MOVE,
    MOVE_FRAME,
    NO_MOVE,
    OUT,
    PLACES,
    RECOVERIES,
    SAFE,
    SHUTTLE,
    SIDE,
    SPEAR,
    SPEED_X,
    SPEED_Y,
    STOCKS,
    STUNNED,
    SURFACE,
    TIMER,
    UNARMED,
    WEAPON,
    WEAPON_KIND,
    WEAPON_TIME,
    X,
    Y,
)
from ludus.games.brawl.weapons import FAR, LYING_FRAMES, distance_to_weapon, place_x, place_y
from ludus.sim import float32, geometry, phase

FIGHTER = (
    "x",
    "y",
    "speed_x",
    "speed_y",
    "facing",
    "grounded",
    "jumps",
    *MODE_NAMES,
    "recovery",
    "dodge_wait",
    "stun",
    "damage",
    "stocks",
    "move",
    "move_done",
    "unarmed",
    "spear",
    "hammer",
    "safe",
    "timer",
)
PER_FIGHTER = len(FIGHTER)
AT_MODES = FIGHTER.index(MODE_NAMES[0])
AT_REST = AT_MODES + MODES
SELF_AT, OPPONENT_AT, SHARED_AT = 0, PER_FIGHTER, 2 * PER_FIGHTER
SHARED = (
    "mirror",
    "time_left",
    "opponent_ahead",
    "opponent_above",
    "platform_x",
    "platform_y",
    "platform_speed",
)
PLACE = ("spear", "hammer", "x", "y", "time_left")
PLACES_AT = SHARED_AT + len(SHARED)
NAMES = [
    *(f"self_{name}" for name in FIGHTER),
    *(f"opponent_{name}" for name in FIGHTER),
    *SHARED,
    *(f"weapon{place}_{name}" for place in range(PLACES) for name in PLACE),
]

FAST, NEAR, HURT_A_LOT, LONG_STUN = 15.0, 5.0, 200.0, 20.0  # scales
LIMIT = 3.0  # what a scaled speed, distance or damage can reach


def scaled(value, scale):
    return geometry.clamp(value / scale, -LIMIT, LIMIT)


def yes(condition):
    return 1.0 if condition else 0.0


def describe(observation, motion, status, env, agent, who, at, mirror, stocks):
    """The 32 entries of one fighter, as the agent sees it."""
    mode, move = status[env, who, MODE], status[env, who, MOVE]
    observation[env, agent, at] = mirror * motion[env, who, X] / EDGE_X
    observation[env, agent, at + 1] = motion[env, who, Y] / EDGE_Y
    observation[env, agent, at + 2] = mirror * scaled(motion[env, who, SPEED_X], FAST)
    observation[env, agent, at + 3] = scaled(motion[env, who, SPEED_Y], FAST)
    observation[env, agent, at + 4] = mirror * float32(status[env, who, FACING])
    observation[env, agent, at + 5] = yes(status[env, who, SURFACE] != AIR)
    observation[env, agent, at + 6] = float32(status[env, who, JUMPS]) / float32(AIR_JUMPS)
    for i in range(MODES):
        observation[env, agent, at + AT_MODES + i] = yes(mode == i)
    rest = at + AT_REST
    stun = float32(status[env, who, TIMER]) / LONG_STUN if mode == STUNNED else float32(0.0)
    observation[env, agent, rest] = float32(status[env, who, RECOVERIES])
    observation[env, agent, rest + 1] = float32(status[env, who, DODGE_WAIT]) / float32(
        DODGE_GAP_AIR
    )
    observation[env, agent, rest + 2] = stun
    observation[env, agent, rest + 3] = scaled(motion[env, who, DAMAGE], HURT_A_LOT)
    observation[env, agent, rest + 4] = float32(status[env, who, STOCKS]) / float32(stocks)
    kind, done = float32(0.0), float32(0.0)
    if move != NO_MOVE:
        kind = float32(move % moves.PER_WEAPON + 1) / float32(moves.PER_WEAPON)
        done = float32(status[env, who, MOVE_FRAME]) / float32(moves.TOTAL[move])
    observation[env, agent, rest + 5] = kind
    observation[env, agent, rest + 6] = done
    for weapon in range(3):
        observation[env, agent, rest + 7 + weapon] = yes(status[env, who, WEAPON] == weapon)
    observation[env, agent, rest + 10] = float32(status[env, who, SAFE]) / float32(RETURN_SAFE)
    observation[env, agent, rest + 11] = float32(status[env, who, TIMER]) / float32(OUT_FRAMES)


def describe_stage(observation, motion, stage, env, agent, mirror, time_left):
    """What both share, as seen by the agent: time, the way to the opponent, the platform,
    weapons."""
    other, at = 1 - agent, SHARED_AT
    now = platform_x(stage[env, SHUTTLE])
    rightwards = stage[env, SHUTTLE] < PLATFORM_PERIOD // 2
    observation[env, agent, at] = mirror
    observation[env, agent, at + 1] = time_left
    observation[env, agent, at + 2] = mirror * scaled(
        motion[env, other, X] - motion[env, agent, X], NEAR
    )
    observation[env, agent, at + 3] = scaled(motion[env, other, Y] - motion[env, agent, Y], NEAR)
    observation[env, agent, at + 4] = mirror * now
    observation[env, agent, at + 5] = platform_top(now) / EDGE_Y
    observation[env, agent, at + 6] = mirror if rightwards else -mirror
    for place in range(PLACES):
        at = PLACES_AT + place * len(PLACE)
        kind = stage[env, WEAPON_KIND + place]
        lies = yes(kind != UNARMED)
        observation[env, agent, at] = yes(kind == SPEAR)
        observation[env, agent, at + 1] = yes(kind == HAMMER)
        observation[env, agent, at + 2] = (
            lies * mirror * scaled(place_x(place) - motion[env, agent, X], NEAR)
        )
        observation[env, agent, at + 3] = lies * scaled(
            place_y(place) - motion[env, agent, Y], NEAR
        )
        observation[env, agent, at + 4] = (
            lies * float32(stage[env, WEAPON_TIME + place]) / float32(LYING_FRAMES)
        )


@phase(lanes="agents", writes=("observation", "idle"))
def observe(
    env, agent, step, max_steps, stocks, decision_frames, motion, status, stage, observation, idle
):
    """A fighter that stays out for the whole next step takes no decision in it."""
    mirror = float32(status[env, agent, SIDE])
    describe(observation, motion, status, env, agent, agent, SELF_AT, mirror, stocks[env])
    describe(observation, motion, status, env, agent, 1 - agent, OPPONENT_AT, mirror, stocks[env])
    describe_stage(
        observation,
        motion,
        stage,
        env,
        agent,
        mirror,
        1.0 - float32(step[env]) / float32(max_steps[env]),
    )
    idle[env, agent] = (
        status[env, agent, MODE] == OUT and status[env, agent, TIMER] >= decision_frames[env]
    )


@phase(
    lanes="agents",
    writes=(
        "mask_up",
        "mask_left",
        "mask_down",
        "mask_right",
        "mask_jump",
        "mask_pick",
        "mask_dash",
        "mask_light",
        "mask_heavy",
        "mask_taunt",
    ),
)
def mask_keys(
    env,
    agent,
    decision_frames,
    motion,
    status,
    stage,
    mask_up,
    mask_left,
    mask_down,
    mask_right,
    mask_jump,
    mask_pick,
    mask_dash,
    mask_light,
    mask_heavy,
    mask_taunt,
):
    """A key is masked if it could not change anything during the next decision, whatever other keys
    are held."""
    frames = decision_frames[env]
    acts = in_control(status[env, agent, MODE]) or status[env, agent, TIMER] <= frames
    acts_at_once = in_control(status[env, agent, MODE]) or status[env, agent, TIMER] <= 1
    steers = acts or attacking(status[env, agent, MODE])
    rising = motion[env, agent, SPEED_Y] > GRAVITY * FRAME * float32(frames)
    sinking = motion[env, agent, SPEED_Y] <= 0.0 and motion[env, agent, Y] - HALF_HEIGHT < LEFT_TOP
    stays_in_air = (
        status[env, agent, SURFACE] == AIR
        and in_control(status[env, agent, MODE])
        and (rising or sinking)
    )
    armed = status[env, agent, WEAPON] != UNARMED
    reaches = False
    for place in range(PLACES):
        reaches = reaches or distance_to_weapon(motion, stage, env, agent, place) < FAR
    mask_up[env, agent] = acts
    mask_left[env, agent] = steers
    mask_down[env, agent] = acts
    mask_right[env, agent] = steers
    mask_light[env, agent] = acts
    mask_heavy[env, agent] = acts
    no_jump = stays_in_air and status[env, agent, JUMPS] == 0
    mask_jump[env, agent] = acts and not no_jump and status[env, agent, JUMP_WAIT] <= frames
    mask_dash[env, agent] = acts and not (stays_in_air and status[env, agent, DODGE_WAIT] > frames)
    mask_taunt[env, agent] = acts and not stays_in_air
    mask_pick[env, agent] = acts_at_once and (armed or reaches)
