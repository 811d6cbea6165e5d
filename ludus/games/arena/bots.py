"""Scripted players. They see what an agent sees, the 11×11 cells around them, and remember the last
converter they saw of each kind. Frozen: trained agents are measured against them."""

import numpy as np
from numpy import int64

from ludus.games.arena.actions import can_put, is_frozen, target_cell
from ludus.games.arena.building import inner_side
from ludus.games.arena.world import (
    ALTAR,
    ATTACK,
    BACKWARD,
    BATTERY,
    BLOCK,
    BORDER,
    COLUMN_STEP,
    EMPTY,
    FACE,
    FORWARD,
    GENERATOR,
    GET,
    HEART,
    KINDS,
    LASER,
    LASERY,
    LIMITS,
    MINE,
    NOOP,
    ORE,
    OUTPUT,
    PUT,
    RADIUS,
    ROW_STEP,
    SWAP,
    TARGETS,
    agent_in,
)
from ludus.sim import float32, phase, random

GOAL_ROW, GOAL_COLUMN, SIDESTEP = 31, 32, 33  # streams of randomness
NOTHING = -1
CARRY = 4  # ore a bot keeps in hand to feed generators with
PATIENCE = 40  # steps it walks to a place before it chooses another
# for each kind of converter: what it is worth to take its product, and to feed it
GET_WORTH = np.array([2.0, 6.0, 8.0, 6.0, 8.0], np.float32)
PUT_WORTH = np.array([0.0, 5.0, 7.0, 0.0, 10.0], np.float32)
WORTH_A_LASER = 3  # hearts: a laser costs two batteries and the way to a lasery
PEACE = 300  # steps in which there is little to rob yet
DETOUR = 3  # steps it goes aside where the way is blocked


# -- walking ---------------------------------------------------------------------------------------


def passable(grid, env, r, c):
    return grid[env, r, c] == EMPTY or grid[env, r, c] == BLOCK


def step_towards(grid, env, r, c, facing, way):
    """The action that goes one cell in a direction: ahead, backwards, through a block, or a
    turn."""
    if way == facing:
        return SWAP if grid[env, r + ROW_STEP[way], c + COLUMN_STEP[way]] == BLOCK else FORWARD
    if way == (facing + 2) % 4 and grid[env, r + ROW_STEP[way], c + COLUMN_STEP[way]] == EMPTY:
        return BACKWARD
    return FACE + way


def is_wanted(way, down, right):
    """Does a direction lead closer to an offset?"""
    return ROW_STEP[way] * down + COLUMN_STEP[way] * right > 0


def choose_way(grid, env, r, c, facing, down, right):
    """The open direction that leads closer, with the fewest turns; NOTHING if the way is
    blocked."""
    if is_wanted(facing, down, right) and passable(
        grid, env, r + ROW_STEP[facing], c + COLUMN_STEP[facing]
    ):
        return facing
    best, longest = NOTHING, 0
    for way in range(4):
        along = ROW_STEP[way] * down + COLUMN_STEP[way] * right
        if along > longest and passable(grid, env, r + ROW_STEP[way], c + COLUMN_STEP[way]):
            best, longest = way, along
    return best


def go(grid, row, column, facing, bot_timer, bot_detour, key, env, agent, down, right):
    """The next action on the way to an offset; where the way is blocked, a few steps aside
    first."""
    r, c, way = row[env, agent], column[env, agent], facing[env, agent]
    if bot_detour[env, agent] > 0:
        bot_detour[env, agent] -= 1
        if passable(grid, env, r + ROW_STEP[way], c + COLUMN_STEP[way]):
            return step_towards(grid, env, r, c, way, way)
        bot_detour[env, agent] = 0
    chosen = choose_way(grid, env, r, c, way, down, right)
    if chosen == NOTHING:
        bot_timer[env, agent] -= 1
        first = random.integer(key[env], SIDESTEP, agent, 4)
        for k in range(4):
            aside = (first + k) % 4
            if not is_wanted(aside, down, right) and passable(
                grid, env, r + ROW_STEP[aside], c + COLUMN_STEP[aside]
            ):
                bot_detour[env, agent] = DETOUR
                return FACE + aside if aside != way else step_towards(grid, env, r, c, way, way)
        return NOOP
    return step_towards(grid, env, r, c, way, chosen)


# -- errands ---------------------------------------------------------------------------------------


def errand(held, stock, inside, timer, recipe, env, agent, c, kind, arming):
    """What a converter is good for now, as (action, worth)."""
    item = OUTPUT[kind]
    if stock[env, c] > 0 and held[env, agent, item] < (CARRY if kind == MINE else LIMITS[item]):
        return GET, float32(GET_WORTH[kind])
    useful = kind == GENERATOR or (kind == ALTAR and arming == 0) or (kind == LASERY and arming > 0)
    if useful and can_put(held, inside, recipe, env, agent, c, kind):
        waits = kind == GENERATOR and timer[env, c] > 5
        return PUT, float32(3.0 if waits else PUT_WORTH[kind])
    return NOOP, float32(0.0)


@phase(lanes="agents", writes=("action_act", "bot_goal", "bot_known", "bot_timer", "bot_detour"))
def gatherer(
    env,
    agent,
    side,
    key,
    rooms,
    room,
    grid,
    row,
    column,
    facing,
    held,
    converter_count,
    converter_kind,
    converter_row,
    converter_column,
    stock,
    inside,
    timer,
    recipe,
    action_act,
    bot_goal,
    bot_known,
    bot_timer,
    bot_detour,
):
    """Runs the chain: ore to generators, batteries to altars, hearts for itself."""
    # int64: a literal 0 would have gather compiled twice, for this bot and for the other
    action_act[env, agent] = gather(
        env,
        agent,
        side,
        key,
        rooms,
        room,
        grid,
        row,
        column,
        facing,
        held,
        converter_count,
        converter_kind,
        converter_row,
        converter_column,
        stock,
        inside,
        timer,
        recipe,
        bot_goal,
        bot_known,
        bot_timer,
        bot_detour,
        int64(0),
    )


def gather(
    env,
    agent,
    side,
    key,
    rooms,
    room,
    grid,
    row,
    column,
    facing,
    held,
    converter_count,
    converter_kind,
    converter_row,
    converter_column,
    stock,
    inside,
    timer,
    recipe,
    bot_goal,
    bot_known,
    bot_timer,
    bot_detour,
    arming,
):
    """The most worthwhile errand in view for its distance, else a place it remembers, else
    anywhere."""
    best, best_c, best_act = float32(0.0), NOTHING, NOOP
    for c in range(converter_count[env]):
        down, right = (
            converter_row[env, c] - row[env, agent],
            converter_column[env, c] - column[env, agent],
        )
        if abs(down) > RADIUS or abs(right) > RADIUS:
            continue
        kind = converter_kind[env, c]
        bot_known[env, agent, kind] = c + 1
        act, worth = errand(held, stock, inside, timer, recipe, env, agent, c, kind, arming)
        worth = worth / float32(abs(down) + abs(right) + 2)
        if worth > best:
            best, best_c, best_act = worth, c, act
    if best_c != NOTHING:
        down, right = (
            converter_row[env, best_c] - row[env, agent],
            converter_column[env, best_c] - column[env, agent],
        )
        if abs(down) + abs(right) > 1:
            return go(
                grid, row, column, facing, bot_timer, bot_detour, key, env, agent, down, right
            )
        bot_detour[env, agent] = 0
        way = facing[env, agent]
        if ROW_STEP[way] == down and COLUMN_STEP[way] == right:
            return best_act
        for way in range(4):
            if ROW_STEP[way] == down and COLUMN_STEP[way] == right:
                return FACE + way
    return roam(
        env,
        agent,
        side,
        key,
        rooms,
        room,
        grid,
        row,
        column,
        facing,
        held,
        converter_row,
        converter_column,
        recipe,
        bot_goal,
        bot_known,
        bot_timer,
        bot_detour,
        arming,
    )


def roam(
    env,
    agent,
    side,
    key,
    rooms,
    room,
    grid,
    row,
    column,
    facing,
    held,
    converter_row,
    converter_column,
    recipe,
    bot_goal,
    bot_known,
    bot_timer,
    bot_detour,
    arming,
):
    """Walks to the kind of converter it needs next where it saw one last, or to a random place."""
    down, right = (
        bot_goal[env, agent, 0] - row[env, agent],
        bot_goal[env, agent, 1] - column[env, agent],
    )
    bot_timer[env, agent] -= 1
    if bot_timer[env, agent] <= 0 or abs(down) + abs(right) <= 2:
        inner = inner_side(rooms[env], room[env], side)
        bot_goal[env, agent, 0] = BORDER + random.integer(key[env], GOAL_ROW, agent, inner)
        bot_goal[env, agent, 1] = BORDER + random.integer(key[env], GOAL_COLUMN, agent, inner)
        needed = MINE
        if held[env, agent, BATTERY] > 0:
            needed = LASERY if arming > 0 else ALTAR
        elif held[env, agent, ORE] > 0:
            needed = GENERATOR
        known = bot_known[env, agent, needed] - 1
        if known >= 0:
            bot_goal[env, agent, 0] = converter_row[env, known]
            bot_goal[env, agent, 1] = converter_column[env, known]
            bot_known[env, agent, needed] = 0
        bot_timer[env, agent] = PATIENCE
        down, right = (
            bot_goal[env, agent, 0] - row[env, agent],
            bot_goal[env, agent, 1] - column[env, agent],
        )
    return go(grid, row, column, facing, bot_timer, bot_detour, key, env, agent, down, right)


# -- raiding ---------------------------------------------------------------------------------------


def prey_in_view(held, frozen_until, row, column, env, agent, agents, step):
    """The agent in view, not frozen, with most to lose for its distance, or NOTHING."""
    best, most = NOTHING, float32(0.0)
    for other in range(agents):
        down, right = (
            abs(row[env, other] - row[env, agent]),
            abs(column[env, other] - column[env, agent]),
        )
        if other == agent or max(down, right) > RADIUS or is_frozen(frozen_until, env, other, step):
            continue
        if held[env, other, HEART] < WORTH_A_LASER:
            continue
        loot = float32(held[env, other, HEART]) / float32(down + right + 3)
        if loot > most:
            best, most = other, loot
    return best


@phase(lanes="agents", writes=("action_act", "bot_goal", "bot_known", "bot_timer", "bot_detour"))
def raider(
    env,
    agent,
    agents,
    side,
    step,
    key,
    rooms,
    room,
    attack_cost,
    frozen_until,
    grid,
    row,
    column,
    facing,
    held,
    converter_count,
    converter_kind,
    converter_row,
    converter_column,
    stock,
    inside,
    timer,
    recipe,
    action_act,
    bot_goal,
    bot_known,
    bot_timer,
    bot_detour,
):
    """Arms itself where it can, robs whom it sees, and otherwise gathers."""
    if held[env, agent, LASER] >= attack_cost[env]:
        prey = prey_in_view(held, frozen_until, row, column, env, agent, agents, step[env])
        if prey != NOTHING:
            for target in range(TARGETS):
                r, c = target_cell(row[env, agent], column[env, agent], facing[env, agent], target)
                if agent_in(grid[env, r, c]) == prey:
                    action_act[env, agent] = ATTACK + target
                    return
            down, right = row[env, prey] - row[env, agent], column[env, prey] - column[env, agent]
            action_act[env, agent] = aim(
                grid, row, column, facing, bot_timer, bot_detour, key, env, agent, down, right
            )
            return
    wants = (
        held[env, agent, LASER] < attack_cost[env]
        and attack_cost[env] <= LIMITS[LASER]
        and step[env] > PEACE
    )
    action_act[env, agent] = gather(
        env,
        agent,
        side,
        key,
        rooms,
        room,
        grid,
        row,
        column,
        facing,
        held,
        converter_count,
        converter_kind,
        converter_row,
        converter_column,
        stock,
        inside,
        timer,
        recipe,
        bot_goal,
        bot_known,
        bot_timer,
        bot_detour,
        1 if wants and bot_known[env, agent, LASERY] > 0 else 0,
    )


def aim(grid, row, column, facing, bot_timer, bot_detour, key, env, agent, down, right):
    """Turns to prey within reach of an attack, and walks to it otherwise."""
    for way in range(4):
        ahead = ROW_STEP[way] * down + COLUMN_STEP[way] * right
        across = abs(COLUMN_STEP[way] * down) + abs(ROW_STEP[way] * right)
        if 1 <= ahead <= 3 and across <= 1:
            return FACE + way
    return go(grid, row, column, facing, bot_timer, bot_detour, key, env, agent, down, right)


@phase(lanes="agents", writes=("bot_goal", "bot_known", "bot_timer", "bot_detour"))
def forget(env, agent, bot_goal, bot_known, bot_timer, bot_detour):
    """A new episode: the bots know nothing yet."""
    bot_goal[env, agent, 0] = 0
    bot_goal[env, agent, 1] = 0
    bot_timer[env, agent] = 0
    bot_detour[env, agent] = 0
    for kind in range(KINDS):
        bot_known[env, agent, kind] = 0
