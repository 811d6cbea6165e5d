"""Names for everything in the arena: items, converters, cells, directions, actions, and the offsets an agent sees."""

import numpy as np

# items, and the reward terms in the same order
ORE, BATTERY, ARMOR, LASER, HEART = range(5)
ITEMS = 5
ITEM_NAMES = ("ore", "batteries", "armor", "lasers", "hearts")
LIMITS = np.array([50, 50, 50, 50, 255], np.int32)  # what an agent can hold

# converters, and what each gives out
MINE, GENERATOR, ALTAR, ARMORY, LASERY = range(5)
KINDS = 5
OUTPUT = np.array([ORE, BATTERY, HEART, ARMOR, LASER], np.int32)
STORE = 5  # finished items a converter holds before it stops

# what stands in a cell: converter c is FIRST_CONVERTER + c, agent a is -1 - a
EMPTY, WALL, OUTSIDE, BLOCK, FIRST_CONVERTER = range(5)

NORTH, EAST, SOUTH, WEST = range(4)
ROW_STEP = np.array([-1, 0, 1, 0], np.int32)
COLUMN_STEP = np.array([0, 1, 0, -1], np.int32)

ACTS = (
    "noop", "forward", "backward", "north", "east", "south", "west", "get", "put", "swap",
    "attack_near_left", "attack_near", "attack_near_right", "attack_left", "attack_ahead", "attack_right",
    "attack_far_left", "attack_far", "attack_far_right",
)  # fmt: skip
NUM_ACTS = len(ACTS)
NOOP, FORWARD, BACKWARD, FACE, GET, PUT, SWAP, ATTACK = 0, 1, 2, 3, 7, 8, 9, 10  # FACE + direction, ATTACK + target
TARGETS = 9

# the view: offsets from the nearest cell to the farthest, without the agent's own
RADIUS = 5
SIGHT = 2 * RADIUS + 1
CELLS = SIGHT * SIGHT
FACED = CELLS  # the cell ahead is told once more under this number
_by_distance = sorted(
    ((r, c) for r in range(-RADIUS, RADIUS + 1) for c in range(-RADIUS, RADIUS + 1) if (r, c) != (0, 0)),
    key=lambda at: (abs(at[0]) + abs(at[1]), at),
)
VIEW_ROW = np.array([r for r, _ in _by_distance], np.int32)
VIEW_COLUMN = np.array([c for _, c in _by_distance], np.int32)
VIEWED = CELLS - 1

BORDER = RADIUS + 1  # thick enough that no view leaves the map


def agent_in(occupant):
    """Which agent stands in a cell, or -1."""
    return -1 - occupant if occupant < 0 else -1


def converter_in(occupant):
    """Which converter stands in a cell, or -1."""
    return occupant - FIRST_CONVERTER if occupant >= FIRST_CONVERTER else -1
