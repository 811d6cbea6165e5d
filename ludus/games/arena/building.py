"""A new map: rooms side by side without walls between them, a border around, everything else on
random empty cells."""

from ludus.games.arena.world import (
    ALTAR,
    ARMORY,
    BLOCK,
    BORDER,
    EMPTY,
    FIRST_CONVERTER,
    GENERATOR,
    KINDS,
    LASERY,
    OUTSIDE,
    WALL,
    WORDS,
    mark,
)
from ludus.sim import phase, random

PLACE, HEADING = 11, 12  # streams of randomness
TRIES = 32  # random cells tried before the next empty one is taken in order
NOWHERE = -1


def inner_side(rooms, room, side):
    """Cells along one side of the map inside its border."""
    return min(rooms * room, side - 2 * BORDER)


@phase(lanes="side", writes=("grid", "filled"))
def clear(env, row, side, rooms, room, grid, filled):
    """An empty map. Of the border only the innermost layer shows as wall: what lies behind it can
    never matter."""
    last = BORDER + inner_side(rooms[env], room[env], side)
    for word in range(WORDS):
        filled[env, row, word] = 0
    for column in range(side):
        lowest, highest = min(row, column), max(row, column)
        if lowest >= BORDER and highest < last:
            grid[env, row, column] = EMPTY
        elif lowest >= BORDER - 1 and highest <= last:
            grid[env, row, column] = WALL
            mark(filled, env, row, column, True)
        else:
            grid[env, row, column] = OUTSIDE


def free_cell(grid, env, key, number, place, rooms, room, side):
    """A random empty cell of a room as (row, column), or NOWHERE if the room is full."""
    top, left = BORDER + (place // rooms) * room, BORDER + (place % rooms) * room
    inside = BORDER + inner_side(rooms, room, side)
    high, wide = min(room, inside - top), min(room, inside - left)
    if high <= 0 or wide <= 0:
        return NOWHERE, NOWHERE
    cell = 0
    for attempt in range(TRIES):
        cell = random.integer(key, PLACE, number * TRIES + attempt, high * wide)
        if grid[env, top + cell // wide, left + cell % wide] == EMPTY:
            return top + cell // wide, left + cell % wide
    for _ in range(high * wide):
        cell = (cell + 1) % (high * wide)
        if grid[env, top + cell // wide, left + cell % wide] == EMPTY:
            return top + cell // wide, left + cell % wide
    return NOWHERE, NOWHERE


@phase(writes=("grid", "filled", "row", "column", "facing"))
def place_agents(env, agents, side, key, rooms, room, grid, filled, row, column, facing):
    """Agents are dealt out to the rooms in turn."""
    for agent in range(agents):
        r, c = free_cell(
            grid,
            env,
            key[env],
            agent,
            agent % (rooms[env] * rooms[env]),
            rooms[env],
            room[env],
            side,
        )
        row[env, agent] = max(r, BORDER)
        column[env, agent] = max(c, BORDER)
        facing[env, agent] = random.integer(key[env], HEADING, agent, 4)
        grid[env, row[env, agent], column[env, agent]] = -1 - agent
        mark(filled, env, row[env, agent], column[env, agent], True)


@phase(
    writes=(
        "grid",
        "filled",
        "converter_count",
        "converter_kind",
        "converter_row",
        "converter_column",
    )
)
def place_objects(
    env,
    agents,
    side,
    converters,
    key,
    rooms,
    room,
    mines,
    generators,
    altars,
    armories,
    laseries,
    blocks,
    walls,
    grid,
    filled,
    converter_count,
    converter_kind,
    converter_row,
    converter_column,
):
    """Converters, blocks and walls, the same number in every room."""
    number, count = agents, 0
    for place in range(rooms[env] * rooms[env]):
        for kind in range(KINDS + 2):
            many = mines[env]
            if kind == GENERATOR:
                many = generators[env]
            elif kind == ALTAR:
                many = altars[env]
            elif kind == ARMORY:
                many = armories[env]
            elif kind == LASERY:
                many = laseries[env]
            elif kind == KINDS:
                many = blocks[env]
            elif kind > KINDS:
                many = walls[env]
            for _ in range(many):
                r, c = free_cell(grid, env, key[env], number, place, rooms[env], room[env], side)
                number += 1
                if r == NOWHERE or (kind < KINDS and count >= converters):
                    break
                mark(filled, env, r, c, True)
                if kind >= KINDS:
                    grid[env, r, c] = BLOCK if kind == KINDS else WALL
                    continue
                grid[env, r, c] = FIRST_CONVERTER + count
                converter_kind[env, count] = kind
                converter_row[env, count] = r
                converter_column[env, count] = c
                count += 1
    converter_count[env] = count
