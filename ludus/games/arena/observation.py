"""What an agent observes: a list of tokens for what it sees in the 11×11 cells around it, and a few
numbers about itself.

A token is (cell, feature, value) in three bytes. There are 122 cells (the view row by row, then the
cell ahead once more) and 33 features, so a token names one of 4,026 rows of a table, and an encoder
is a sum of rows weighted by values. The list goes through the view's rows from the nearest to the
farthest and ends with zeros: a value of 0 says nothing.
"""

from numpy import int64

from ludus.games.arena.actions import is_frozen
from ludus.games.arena.world import (
    ACTS,
    BATTERY,
    BLOCK,
    COLUMN_STEP,
    FACED,
    FIRST_CONVERTER,
    ITEM_NAMES,
    ITEMS,
    KINDS,
    LOWEST,
    MINE,
    NEAR_TO_FAR,
    NUM_ACTS,
    ORE,
    OUTPUT,
    RADIUS,
    ROW_STEP,
    SIGHT,
    STORE,
    WALL,
    agent_in,
    converter_in,
    shown,
)
from ludus.sim import float32, phase

CELL, FEATURE, VALUE = range(3)  # a token
OWN_BIT = 1 << RADIUS  # the middle of a row of the view

# features: a wall, a block, items inside or held (value: how many), converters idle or busy, agents
SEE_WALL, SEE_BLOCK, SEE_ITEM = 0, 1, 2
SEE_CONVERTER = SEE_ITEM + ITEMS  # + 2 * kind + busy
SEE_AGENT = SEE_CONVERTER + 2 * KINDS  # + 8 * (of another group) + 4 * frozen + facing
FEATURES = SEE_AGENT + 16
CELLS = FACED + 1

FACED_KINDS = (
    "empty",
    "wall",
    "block",
    "mine",
    "generator",
    "altar",
    "armory",
    "lasery",
    "agent",
    "frozen_agent",
)
FACED_EMPTY, FACED_WALL, FACED_BLOCK, FACED_CONVERTER, FACED_AGENT = 0, 1, 2, 3, 8
NAMES = [
    *(f"held_{item}" for item in ITEM_NAMES),
    *(f"facing_{way}" for way in ("north", "east", "south", "west")),
    *(f"faced_{kind}" for kind in FACED_KINDS),
    "faced_stock",
    "faced_busy",
    *(f"last_{act}" for act in ACTS),
    "last_success",
    "last_reward",
    "frozen",
    "episode_share",
]
HELD_AT = 0
FACING_AT = HELD_AT + ITEMS
FACED_AT = FACING_AT + 4
STOCK_AT = FACED_AT + len(FACED_KINDS)
LAST_AT = STOCK_AT + 2
SUCCESS_AT = LAST_AT + NUM_ACTS
REWARD_AT, FROZEN_AT, SHARE_AT = SUCCESS_AT + 1, SUCCESS_AT + 2, SUCCESS_AT + 3
HELD_SCALE, HEARTS_SCALE = 5.0, 30.0


# -- tokens ----------------------------------------------------------------------------------------


def tell(seen_tokens, env, agent, tokens, at, cell, feature, count):
    """Adds a token if there is room; where the next one goes."""
    if at >= tokens:
        return at
    seen_tokens[env, agent, at, CELL] = cell
    seen_tokens[env, agent, at, FEATURE] = feature
    seen_tokens[env, agent, at, VALUE] = count
    return at + 1


def tell_converter(
    seen_tokens, converter_kind, stock, inside, timer, env, agent, tokens, at, cell, c
):
    kind = converter_kind[env, c]
    busy = 1 if timer[env, c] > 0 else 0
    at = tell(seen_tokens, env, agent, tokens, at, cell, SEE_CONVERTER + 2 * kind + busy, 1)
    if stock[env, c] > 0:
        at = tell(seen_tokens, env, agent, tokens, at, cell, SEE_ITEM + OUTPUT[kind], stock[env, c])
    if kind == MINE:
        return at
    for item in range(ORE, BATTERY + 1):  # no converter takes anything else
        if inside[env, c, item] > 0:
            at = tell(
                seen_tokens, env, agent, tokens, at, cell, SEE_ITEM + item, inside[env, c, item]
            )
    return at


def tell_agent(
    seen_tokens, facing, held, frozen_until, env, agent, tokens, at, cell, other, groups, step
):
    feature = SEE_AGENT + facing[env, other]
    if is_frozen(frozen_until, env, other, step + 1):
        feature += 4
    if other % groups != agent % groups:
        feature += 8
    at = tell(seen_tokens, env, agent, tokens, at, cell, feature, 1)
    for item in range(ITEMS):
        if held[env, other, item] > 0:
            at = tell(
                seen_tokens, env, agent, tokens, at, cell, SEE_ITEM + item, held[env, other, item]
            )
    return at


@phase(lanes="agents", writes=("seen_tokens", "token_count"))
def look(
    env,
    agent,
    tokens,
    step,
    groups,
    grid,
    filled,
    row,
    column,
    facing,
    held,
    frozen_until,
    converter_kind,
    stock,
    inside,
    timer,
    seen_tokens,
    token_count,
):
    """The tokens of the cell ahead, then of every row of the view, the nearest first."""
    # int64: a literal 0 would have the functions below compiled twice
    at, way, left = int64(0), facing[env, agent], column[env, agent] - RADIUS
    for i in range(-1, SIGHT):
        down = ROW_STEP[way] if i < 0 else NEAR_TO_FAR[i]
        r = row[env, agent] + down
        waiting = shown(filled, env, r, column[env, agent])
        if i < 0:
            waiting &= 1 << (RADIUS + COLUMN_STEP[way])
        elif down == 0:
            waiting &= ~OWN_BIT
        while waiting != 0:
            right = LOWEST[waiting]
            waiting &= waiting - 1
            cell = FACED if i < 0 else (down + RADIUS) * SIGHT + right
            occupant = grid[env, r, left + right]
            if occupant < 0:
                other = agent_in(occupant)
                at = tell_agent(
                    seen_tokens,
                    facing,
                    held,
                    frozen_until,
                    env,
                    agent,
                    tokens,
                    at,
                    cell,
                    other,
                    groups[env],
                    step[env],
                )
            elif occupant < FIRST_CONVERTER:
                at = tell(
                    seen_tokens,
                    env,
                    agent,
                    tokens,
                    at,
                    cell,
                    SEE_WALL if occupant == WALL else SEE_BLOCK,
                    1,
                )
            else:
                c = converter_in(occupant)
                at = tell_converter(
                    seen_tokens,
                    converter_kind,
                    stock,
                    inside,
                    timer,
                    env,
                    agent,
                    tokens,
                    at,
                    cell,
                    c,
                )
    for old in range(at, token_count[env, agent]):
        seen_tokens[env, agent, old, CELL] = 0
        seen_tokens[env, agent, old, FEATURE] = 0
        seen_tokens[env, agent, old, VALUE] = 0
    token_count[env, agent] = at


# -- numbers ---------------------------------------------------------------------------------------


@phase(lanes="agents", writes="observation")
def observe(
    env,
    agent,
    step,
    max_steps,
    grid,
    row,
    column,
    facing,
    held,
    frozen_until,
    freeze_steps,
    converter_kind,
    stock,
    timer,
    last_act,
    last_success,
    earned,
    observation,
):
    for item in range(ITEMS):
        scale = HELD_SCALE if item < ITEMS - 1 else HEARTS_SCALE
        observation[env, agent, HELD_AT + item] = float32(held[env, agent, item]) / scale
    for entry in range(FACING_AT, SUCCESS_AT):
        observation[env, agent, entry] = 0.0
    way = facing[env, agent]
    observation[env, agent, FACING_AT + way] = 1.0
    occupant = grid[env, row[env, agent] + ROW_STEP[way], column[env, agent] + COLUMN_STEP[way]]
    faced = FACED_EMPTY
    if occupant < 0:
        faced = FACED_AGENT + (
            1 if is_frozen(frozen_until, env, agent_in(occupant), step[env] + 1) else 0
        )
    elif occupant == BLOCK:
        faced = FACED_BLOCK
    elif occupant == WALL:
        faced = FACED_WALL
    elif occupant >= FIRST_CONVERTER:
        c = converter_in(occupant)
        faced = FACED_CONVERTER + converter_kind[env, c]
        observation[env, agent, STOCK_AT] = float32(stock[env, c]) / float32(STORE)
        observation[env, agent, STOCK_AT + 1] = 1.0 if timer[env, c] > 0 else 0.0
    observation[env, agent, FACED_AT + faced] = 1.0
    observation[env, agent, LAST_AT + last_act[env, agent]] = 1.0
    observation[env, agent, SUCCESS_AT] = 1.0 if last_success[env, agent] else 0.0
    observation[env, agent, REWARD_AT] = min(max(earned[env, agent], -5.0), 5.0)
    left = max(frozen_until[env, agent] - step[env], 0)
    observation[env, agent, FROZEN_AT] = float32(left) / float32(max(freeze_steps[env], 1))
    observation[env, agent, SHARE_AT] = float32(step[env]) / float32(max_steps[env])
