"""A step of brawl: keys are read, a decision's frames are fought, what happened is paid for, the
end is judged.

The two fighters act on each other in every frame, so the frames of a step are one phase for both.
"""

import math

from ludus.games.brawl.combat import (
    exchange_hits,
    knock_out_or_bring_back,
    note_positions,
    put_at_start,
)
from ludus.games.brawl.movement import PLATFORM_PERIOD, act, free, move_body, tick
from ludus.games.brawl.state import (
    COMBO,
    DAMAGE,
    DASH,
    DOWN,
    DROPPED,
    EVENTS,
    FELL,
    HEAVY,
    HURT,
    IN_DANGER,
    JUMP,
    KEYS,
    LEFT,
    LIGHT,
    MISSED,
    PICK,
    PICKED,
    PRESSED,
    RIGHT,
    SHUTTLE,
    SIDE,
    STOCKS,
    TAUNT,
    UP,
    X,
    Y,
)
from ludus.games.brawl.weapons import age_weapons, empty_places, use_pick_key
from ludus.sim import phase, random

# The most that each dense reward counts in an episode. What they can add up to stays below a tenth
# of a win.
DANGER_MOST, PRESSURE_MOST, COMBO_MOST, WEAPON_MOST, MISS_MOST = 150.0, 150.0, 3.0, 2.0, 50.0
FARTHEST = 33.0  # two fighters are never farther apart than the stage's diagonal, rounded up

SIDES, SHUTTLE_START = 33, 34  # streams of randomness


@phase(lanes="agents", writes=("status", "event"))
def listen(
    env,
    agent,
    status,
    event,
    action_up,
    action_left,
    action_down,
    action_right,
    action_jump,
    action_pick,
    action_dash,
    action_light,
    action_heavy,
    action_taunt,
):
    """The keys of this decision as bits, on the stage as it is: the right-hand starter's left and
    right are swapped."""
    keys = 0
    mirrored = status[env, agent, SIDE] < 0
    if action_up[env, agent]:
        keys |= UP
    if action_left[env, agent]:
        keys |= RIGHT if mirrored else LEFT
    if action_down[env, agent]:
        keys |= DOWN
    if action_right[env, agent]:
        keys |= LEFT if mirrored else RIGHT
    if action_jump[env, agent]:
        keys |= JUMP
    if action_pick[env, agent]:
        keys |= PICK
    if action_dash[env, agent]:
        keys |= DASH
    if action_light[env, agent]:
        keys |= LIGHT
    if action_heavy[env, agent]:
        keys |= HEAVY
    if action_taunt[env, agent]:
        keys |= TAUNT
    status[env, agent, KEYS] = keys
    for i in range(EVENTS):
        event[env, agent, i] = 0.0


@phase(writes=("motion", "status", "stage", "event"))
def fight(env, key, decision_frames, knockback, weapon_wait, motion, status, stage, event):
    """The frames of one decision. The match stops in the frame in which a last stock is lost."""
    for frame in range(decision_frames[env]):
        for me in range(2):
            tick(status, event, env, me)
        if frame == 0:
            use_pick_key(motion, status, stage, event, env, weapon_wait[env])
        stage[env, SHUTTLE] = (stage[env, SHUTTLE] + 1) % PLATFORM_PERIOD
        for me in range(2):
            act(motion, status, env, me)
            move_body(motion, status, stage, env, me)
        exchange_hits(motion, status, event, env, knockback[env])
        for me in range(2):
            knock_out_or_bring_back(motion, status, event, env, me)
        for me in range(2):
            note_positions(motion, status, event, env, me)
        age_weapons(stage, env, key[env], frame, weapon_wait[env])
        if status[env, 0, STOCKS] == 0 or status[env, 1, STOCKS] == 0:
            return


# -- what it was worth -----------------------------------------------------------------------------


@phase(
    lanes="agents",
    writes=(
        "term_damage_dealt",
        "term_damage_taken",
        "term_knock_out",
        "term_knocked_out",
        "goal_damage_difference",
        "goal_stock_difference",
    ),
)
def score(
    env,
    agent,
    status,
    event,
    term_damage_dealt,
    term_damage_taken,
    term_knock_out,
    term_knocked_out,
    goal_damage_difference,
    goal_stock_difference,
):
    """What counts: damage and stocks, of both."""
    other = 1 - agent
    term_damage_dealt[env, agent] = event[env, other, HURT]
    term_damage_taken[env, agent] = event[env, agent, HURT]
    term_knock_out[env, agent] = event[env, other, FELL]
    term_knocked_out[env, agent] = event[env, agent, FELL]
    goal_damage_difference[env, agent] += event[env, other, HURT] - event[env, agent, HURT]
    goal_stock_difference[env, agent] += event[env, other, FELL] - event[env, agent, FELL]


def claim(paid, env, agent, kind, amount, most):
    """The part of an amount that still counts, once everything counted so far is taken off the most
    that can."""
    counts = min(amount, most - paid[env, agent, kind])
    paid[env, agent, kind] += counts
    return counts


@phase(
    lanes="agents",
    writes=(
        "paid",
        "apart",
        "term_danger",
        "term_closing",
        "term_pressure",
        "term_combo",
        "term_pick_up",
        "term_drop",
        "term_spam",
    ),
)
def shape(
    env,
    agent,
    motion,
    event,
    paid,
    apart,
    term_danger,
    term_closing,
    term_pressure,
    term_combo,
    term_pick_up,
    term_drop,
    term_spam,
):
    """What may help to learn. Each counts up to a limit; closing in and backing off cancel out."""
    term_danger[env, agent] = claim(
        paid, env, agent, IN_DANGER, event[env, agent, IN_DANGER], DANGER_MOST
    )
    term_pressure[env, agent] = claim(
        paid, env, agent, PRESSED, event[env, agent, PRESSED], PRESSURE_MOST
    )
    term_combo[env, agent] = claim(paid, env, agent, COMBO, event[env, agent, COMBO], COMBO_MOST)
    term_pick_up[env, agent] = claim(
        paid, env, agent, PICKED, event[env, agent, PICKED], WEAPON_MOST
    )
    term_drop[env, agent] = claim(
        paid, env, agent, DROPPED, event[env, agent, DROPPED], WEAPON_MOST
    )
    term_spam[env, agent] = claim(paid, env, agent, MISSED, event[env, agent, MISSED], MISS_MOST)
    now = distance(motion, env)
    term_closing[env, agent] = apart[env, agent] - now
    apart[env, agent] = now


def distance(motion, env):
    dx, dy = motion[env, 0, X] - motion[env, 1, X], motion[env, 0, Y] - motion[env, 1, Y]
    return math.sqrt(dx * dx + dy * dy)


@phase(writes=("terminated", "outcome", "term_win", "term_loss", "goal_win", "goal_draw"))
def judge(
    env,
    step,
    max_steps,
    motion,
    status,
    terminated,
    outcome,
    term_win,
    term_loss,
    goal_win,
    goal_draw,
):
    """Over when a fighter has no stock left or time is up (observed, so it is a real end): stocks
    decide, then damage."""
    terminated[env] = (
        status[env, 0, STOCKS] == 0 or status[env, 1, STOCKS] == 0 or step[env] >= max_steps[env]
    )
    if not terminated[env]:
        return
    for me in range(2):
        other = 1 - me
        ahead = status[env, me, STOCKS] - status[env, other, STOCKS]
        if ahead == 0:
            ahead = (1 if motion[env, me, DAMAGE] < motion[env, other, DAMAGE] else 0) - (
                1 if motion[env, me, DAMAGE] > motion[env, other, DAMAGE] else 0
            )
        outcome[env, me] = 1 if ahead > 0 else (-1 if ahead < 0 else 0)
        term_win[env, me] = 1.0 if ahead > 0 else 0.0
        term_loss[env, me] = 1.0 if ahead < 0 else 0.0
        goal_win[env, me] = 1.0 if ahead > 0 else 0.0
        goal_draw[env, me] = 1.0 if ahead == 0 else 0.0


# -- a new match -----------------------------------------------------------------------------------


@phase(writes=("motion", "status", "stage"))
def start(env, key, stocks, weapon_wait, motion, status, stage):
    """Sides are drawn, and so is where the platform is."""
    first_side = 1 if random.integer(key[env], SIDES, 0, 2) == 0 else -1
    for me in range(2):
        status[env, me, SIDE] = first_side if me == 0 else -first_side
        put_at_start(motion, status, env, me)
        free(status, env, me)
        status[env, me, STOCKS] = stocks[env]
    stage[env, SHUTTLE] = random.integer(key[env], SHUTTLE_START, 0, PLATFORM_PERIOD)
    empty_places(stage, env, key[env], weapon_wait[env])


@phase(lanes="agents", writes=("event", "paid", "apart"))
def start_counting(env, agent, motion, event, paid, apart):
    for i in range(EVENTS):
        event[env, agent, i] = 0.0
        paid[env, agent, i] = 0.0
    apart[env, agent] = distance(motion, env)
