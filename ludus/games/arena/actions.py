"""What agents do. Order matters here (two reach for one battery), so each of these phases runs
through the agents of an env one by one, in an order drawn anew every step: first all attacks, then
everything else."""

from ludus.games.arena.converters import start
from ludus.games.arena.world import (
    ARMOR,
    ATTACK,
    BACKWARD,
    BLOCK,
    COLUMN_STEP,
    EMPTY,
    FACE,
    FORWARD,
    GET,
    ITEMS,
    LASER,
    LIMITS,
    NOOP,
    NUM_ACTS,
    OUTPUT,
    PUT,
    ROW_STEP,
    SWAP,
    TARGETS,
    agent_in,
    converter_in,
    mark,
)
from ludus.sim import float32, phase, random

ORDER = 21  # stream of randomness
GOT, PUT_IN, LOOTED, ROBBED = range(4)  # item_counts
FLOWS = 4
FAILED, SUCCEEDED = 0, 1  # act_counts


def is_frozen(frozen_until, env, agent, step):
    """Can it not act in this step? A hit freezes for the rest of its step and the `freeze_steps`
    that follow."""
    return step <= frozen_until[env, agent]


def chosen(action_act, env, agent):
    """What an agent wants to do; a number that is no action counts as noop."""
    act = action_act[env, agent]
    return act if 0 <= act < NUM_ACTS else NOOP


def target_cell(row, column, facing, target):
    """The cell an attack aims at: three rows ahead, in each left, middle, right."""
    ahead, right = target // 3 + 1, target % 3 - 1
    return (
        row + ahead * ROW_STEP[facing] + right * ROW_STEP[(facing + 1) % 4],
        column + ahead * COLUMN_STEP[facing] + right * COLUMN_STEP[(facing + 1) % 4],
    )


# -- attacks ---------------------------------------------------------------------------------------


def rob(held, item_counts, env, robber, victim):
    """The robber takes everything it can carry; what it cannot is lost all the same."""
    for item in range(ITEMS):
        count = held[env, victim, item]
        taken = min(count, LIMITS[item] - held[env, robber, item])
        held[env, victim, item] = 0
        held[env, robber, item] += taken
        item_counts[env, victim, ROBBED, item] += count
        item_counts[env, robber, LOOTED, item] += taken


@phase(
    writes=(
        "turn_order",
        "held",
        "frozen_until",
        "item_counts",
        "act_counts",
        "last_act",
        "last_success",
    )
)
def fight(
    env,
    agents,
    key,
    step,
    action_act,
    row,
    column,
    facing,
    grid,
    attack_cost,
    freeze_steps,
    turn_order,
    held,
    frozen_until,
    item_counts,
    act_counts,
    last_act,
    last_success,
):
    for i in range(agents):  # a random order, by insertion
        k = random.integer(key[env], ORDER, i, i + 1)
        turn_order[env, i] = turn_order[env, k]
        turn_order[env, k] = i
    for i in range(agents):
        agent = turn_order[env, i]
        act = chosen(action_act, env, agent)
        if act < ATTACK or is_frozen(frozen_until, env, agent, step[env]):
            continue
        last_act[env, agent] = act
        last_success[env, agent] = False
        r, c = target_cell(row[env, agent], column[env, agent], facing[env, agent], act - ATTACK)
        victim = agent_in(grid[env, r, c])
        if victim < 0 or held[env, agent, LASER] < attack_cost[env]:
            act_counts[env, agent, act, FAILED] += 1
            continue
        held[env, agent, LASER] -= attack_cost[env]
        last_success[env, agent] = True
        act_counts[env, agent, act, SUCCEEDED] += 1
        if held[env, victim, ARMOR] > 0:
            held[env, victim, ARMOR] -= 1
            continue
        if not is_frozen(frozen_until, env, victim, step[env]):
            rob(held, item_counts, env, agent, victim)
        frozen_until[env, victim] = step[env] + freeze_steps[env]


# -- everything else -------------------------------------------------------------------------------


def get_items(held, stock, item_counts, env, agent, c, item):
    """Takes all finished items that fit; how many."""
    count = min(stock[env, c], LIMITS[item] - held[env, agent, item])
    stock[env, c] -= count
    held[env, agent, item] += count
    item_counts[env, agent, GOT, item] += count
    return count


def put_items(held, inside, recipe, item_counts, env, agent, c, kind):
    """Hands over what the next conversion still needs; how many items."""
    moved = 0
    for item in range(ITEMS):
        count = min(recipe[env, kind, item] - inside[env, c, item], held[env, agent, item])
        if count > 0:
            inside[env, c, item] += count
            held[env, agent, item] -= count
            item_counts[env, agent, PUT_IN, item] += count
            moved += count
    return moved


def walk(grid, filled, row, column, env, agent, r, c):
    """Steps onto an empty cell; did it?"""
    if grid[env, r, c] != EMPTY:
        return False
    grid[env, row[env, agent], column[env, agent]] = EMPTY
    mark(filled, env, row[env, agent], column[env, agent], False)
    mark(filled, env, r, c, True)
    grid[env, r, c] = -1 - agent
    row[env, agent] = r
    column[env, agent] = c
    return True


def exchange(grid, row, column, frozen_until, env, agent, step, r, c):
    """Changes places with a block or a frozen agent; did it?"""
    occupant = grid[env, r, c]
    other = agent_in(occupant)
    if occupant != BLOCK and (other < 0 or not is_frozen(frozen_until, env, other, step)):
        return False
    grid[env, row[env, agent], column[env, agent]] = occupant
    if other >= 0:
        row[env, other] = row[env, agent]
        column[env, other] = column[env, agent]
    grid[env, r, c] = -1 - agent
    row[env, agent] = r
    column[env, agent] = c
    return True


@phase(
    writes=(
        "grid",
        "filled",
        "row",
        "column",
        "facing",
        "held",
        "stock",
        "inside",
        "timer",
        "converting",
        "item_counts",
        "act_counts",
        "still_steps",
        "frozen_steps",
        "first_step",
        "gain",
        "last_act",
        "last_success",
    ),
)
def act_in_turn(
    env,
    agents,
    step,
    action_act,
    turn_order,
    frozen_until,
    converter_kind,
    recipe,
    cooldown,
    start_cooling,
    caps,
    grid,
    filled,
    row,
    column,
    facing,
    held,
    stock,
    inside,
    timer,
    converting,
    item_counts,
    act_counts,
    still_steps,
    frozen_steps,
    first_step,
    gain,
    last_act,
    last_success,
):
    for i in range(agents):
        agent = turn_order[env, i]
        if is_frozen(frozen_until, env, agent, step[env]):
            frozen_steps[env, agent] += 1
            still_steps[env, agent] += 1
            last_act[env, agent] = NOOP
            last_success[env, agent] = False
            continue
        act = chosen(action_act, env, agent)
        if act >= ATTACK:
            still_steps[env, agent] += 1
            continue
        way = facing[env, agent]
        r, c = row[env, agent] + ROW_STEP[way], column[env, agent] + COLUMN_STEP[way]
        done, moves = act == NOOP, False
        if act == FORWARD:
            done = moves = walk(grid, filled, row, column, env, agent, r, c)
        elif act == BACKWARD:
            done = moves = walk(
                grid,
                filled,
                row,
                column,
                env,
                agent,
                r - 2 * ROW_STEP[way],
                c - 2 * COLUMN_STEP[way],
            )
        elif FACE <= act < GET:
            facing[env, agent] = act - FACE
            done = True
        elif act == SWAP:
            done = moves = exchange(grid, row, column, frozen_until, env, agent, step[env], r, c)
        elif act != NOOP:  # get or put
            k = converter_in(grid[env, r, c])
            if k >= 0 and act == GET:
                kind = converter_kind[env, k]
                item = OUTPUT[kind]
                before = float32(held[env, agent, item])
                done = get_items(held, stock, item_counts, env, agent, k, item) > 0
                gain[env, agent, item] += min(
                    float32(held[env, agent, item]), caps[env, item]
                ) - min(before, caps[env, item])
                if done and first_step[env, agent, item] == 0:
                    first_step[env, agent, item] = step[env]
                start(
                    env, k, kind, recipe, cooldown, start_cooling, stock, inside, timer, converting
                )
            elif k >= 0:
                kind = converter_kind[env, k]
                done = put_items(held, inside, recipe, item_counts, env, agent, k, kind) > 0
                start(
                    env, k, kind, recipe, cooldown, start_cooling, stock, inside, timer, converting
                )
        act_counts[env, agent, act, SUCCEEDED if done else FAILED] += 1
        if not moves:
            still_steps[env, agent] += 1
        last_act[env, agent] = act
        last_success[env, agent] = done


# -- what can be done ------------------------------------------------------------------------------


def can_put(held, inside, recipe, env, agent, c, kind):
    """Does a converter still need something that the agent holds?"""
    possible = False
    for item in range(ITEMS):
        possible = possible or (
            held[env, agent, item] > 0 and inside[env, c, item] < recipe[env, kind, item]
        )
    return possible


@phase(lanes="agents", writes=("mask_act", "idle"))
def allow(
    env,
    agent,
    step,
    masking,
    attack_cost,
    grid,
    row,
    column,
    facing,
    held,
    frozen_until,
    converter_kind,
    stock,
    inside,
    timer,
    converting,
    recipe,
    mask_act,
    idle,
):
    """The mask of the next step's actions. A frozen agent has nothing to decide."""
    frozen = is_frozen(frozen_until, env, agent, step[env] + 1)
    idle[env, agent] = frozen
    free = masking[env] == 0
    for option in range(NUM_ACTS):
        mask_act[env, agent, option] = free or option == NOOP
    if free or frozen:
        return
    way = facing[env, agent]
    r, c = row[env, agent] + ROW_STEP[way], column[env, agent] + COLUMN_STEP[way]
    ahead = grid[env, r, c]
    mask_act[env, agent, FORWARD] = ahead == EMPTY
    mask_act[env, agent, BACKWARD] = (
        grid[env, r - 2 * ROW_STEP[way], c - 2 * COLUMN_STEP[way]] == EMPTY
    )
    for direction in range(4):
        mask_act[env, agent, FACE + direction] = direction != way
    k = converter_in(ahead)
    if k >= 0:
        kind = converter_kind[env, k]
        item = OUTPUT[kind]
        # converters work before agents act
        ready = stock[env, k] > 0 or (converting[env, k] and timer[env, k] == 1)
        mask_act[env, agent, GET] = ready and held[env, agent, item] < LIMITS[item]
        mask_act[env, agent, PUT] = can_put(held, inside, recipe, env, agent, k, kind)
    other = agent_in(ahead)
    mask_act[env, agent, SWAP] = ahead == BLOCK or (
        other >= 0 and is_frozen(frozen_until, env, other, step[env] + 1)
    )
    if held[env, agent, LASER] >= attack_cost[env]:
        for target in range(TARGETS):
            r, c = target_cell(row[env, agent], column[env, agent], way, target)
            mask_act[env, agent, ATTACK + target] = agent_in(grid[env, r, c]) >= 0
