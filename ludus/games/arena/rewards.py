"""What is paid: the change of what an agent holds of each item, up to a cap. With `gains`, only
what it takes from converters counts, and putting something in or being robbed costs nothing."""

from ludus.games.arena.actions import FLOWS, GOT
from ludus.games.arena.world import (
    ARMOR,
    BATTERY,
    HEART,
    ITEMS,
    LASER,
    LIMITS,
    NOOP,
    NUM_ACTS,
    ORE,
)
from ludus.sim import float32, phase


@phase(lanes="agents", writes=("paid", "gain", "amount"))
def value(env, agent, gains, caps, held, paid, gain, amount):
    for item in range(ITEMS):
        worth = min(float32(held[env, agent, item]), caps[env, item])
        amount[env, agent, item] = (
            gain[env, agent, item] if gains[env] else worth - paid[env, agent, item]
        )
        paid[env, agent, item] = worth
        gain[env, agent, item] = 0.0


def shared(amount, env, agent, agents, item, groups, share):
    """An agent's own amount, with a share of it replaced by the mean of its group."""
    own = amount[env, agent, item]
    if share <= 0.0:
        return own
    total, members = float32(0.0), 0
    for other in range(agents):
        if other % groups == agent % groups:
            total += amount[env, other, item]
            members += 1
    return own + share * (total / float32(members) - own)


@phase(
    lanes="agents",
    writes=(
        "term_ore",
        "term_batteries",
        "term_armor",
        "term_lasers",
        "term_hearts",
        "pooled",
        "earned",
    ),
)
def pay(
    env,
    agent,
    agents,
    groups,
    group_share,
    weights,
    amount,
    term_ore,
    term_batteries,
    term_armor,
    term_lasers,
    term_hearts,
    pooled,
    earned,
):
    total = float32(0.0)
    for item in range(ITEMS):
        pooled[env, agent, item] = shared(
            amount, env, agent, agents, item, groups[env], group_share[env]
        )
        total += weights[env, item] * pooled[env, agent, item]
    earned[env, agent] = total
    term_ore[env, agent] = pooled[env, agent, ORE]
    term_batteries[env, agent] = pooled[env, agent, BATTERY]
    term_armor[env, agent] = pooled[env, agent, ARMOR]
    term_lasers[env, agent] = pooled[env, agent, LASER]
    term_hearts[env, agent] = pooled[env, agent, HEART]


@phase(
    lanes="agents",
    writes=(
        "goal_hearts",
        "goal_batteries",
        "goal_ore",
        "goal_first_ore",
        "goal_first_battery",
        "goal_first_heart",
    ),
)
def score(
    env,
    agent,
    max_steps,
    item_counts,
    first_step,
    goal_hearts,
    goal_batteries,
    goal_ore,
    goal_first_ore,
    goal_first_battery,
    goal_first_heart,
):
    goal_hearts[env, agent] = float32(item_counts[env, agent, GOT, HEART])
    goal_batteries[env, agent] = float32(item_counts[env, agent, GOT, BATTERY])
    goal_ore[env, agent] = float32(item_counts[env, agent, GOT, ORE])
    goal_first_ore[env, agent] = when(first_step[env, agent, ORE], max_steps[env])
    goal_first_battery[env, agent] = when(first_step[env, agent, BATTERY], max_steps[env])
    goal_first_heart[env, agent] = when(first_step[env, agent, HEART], max_steps[env])


def when(step, never):
    return float32(step if step > 0 else never)


@phase(writes="terminated")
def judge(env, step, max_steps, terminated):
    terminated[env] = step[env] >= max_steps[env]


@phase(writes="caps")
def read_caps(env, ore_cap, battery_cap, armor_cap, laser_cap, caps):
    caps[env, ORE] = ore_cap[env]
    caps[env, BATTERY] = battery_cap[env]
    caps[env, ARMOR] = armor_cap[env]
    caps[env, LASER] = laser_cap[env]
    caps[env, HEART] = float32(LIMITS[HEART])


@phase(
    lanes="agents",
    writes=(
        "held",
        "paid",
        "gain",
        "earned",
        "frozen_until",
        "item_counts",
        "act_counts",
        "first_step",
        "still_steps",
        "frozen_steps",
        "last_act",
        "last_success",
    ),
)
def begin(
    env,
    agent,
    held,
    paid,
    gain,
    earned,
    frozen_until,
    item_counts,
    act_counts,
    first_step,
    still_steps,
    frozen_steps,
    last_act,
    last_success,
):
    """A new episode: empty hands, nothing counted."""
    for item in range(ITEMS):
        held[env, agent, item] = 0
        paid[env, agent, item] = 0.0
        gain[env, agent, item] = 0.0
        first_step[env, agent, item] = 0
        for flow in range(FLOWS):
            item_counts[env, agent, flow, item] = 0
    for act in range(NUM_ACTS):
        act_counts[env, agent, act, 0] = 0
        act_counts[env, agent, act, 1] = 0
    earned[env, agent] = 0.0
    frozen_until[env, agent] = 0
    still_steps[env, agent] = 0
    frozen_steps[env, agent] = 0
    last_act[env, agent] = NOOP
    last_success[env, agent] = False
