"""Names for everything in the arena: items, converters, cells, directions, actions, and the offsets
an agent sees."""

import numpy as np
from numpy import int64

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
EMPTY, OUTSIDE, WALL, BLOCK, FIRST_CONVERTER = range(5)

NORTH, EAST, SOUTH, WEST = range(4)
ROW_STEP = np.array([-1, 0, 1, 0], np.int32)
COLUMN_STEP = np.array([0, 1, 0, -1], np.int32)

ACTS = (
    "noop",
    "forward",
    "backward",
    "north",
    "east",
    "south",
    "west",
    "get",
    "put",
    "swap",
    "attack_near_left",
    "attack_near",
    "attack_near_right",
    "attack_left",
    "attack_ahead",
    "attack_right",
    "attack_far_left",
    "attack_far",
    "attack_far_right",
)
NUM_ACTS = len(ACTS)
# FACE + direction, ATTACK + target
NOOP, FORWARD, BACKWARD, FACE, GET, PUT, SWAP, ATTACK = 0, 1, 2, 3, 7, 8, 9, 10
TARGETS = 9

# the view
RADIUS = 5
SIGHT = 2 * RADIUS + 1
CELLS = SIGHT * SIGHT
FACED = CELLS  # the cell ahead is told once more under this number
BORDER = RADIUS + 1  # thick enough that no view leaves the map
NEAR_TO_FAR = np.array(sorted(range(-RADIUS, RADIUS + 1), key=abs), np.int32)  # rows of the view

# Which cells show something, as bits: word w of a row holds the columns from 32 w to 32 w + 63, so
# that the 11 columns of a view always lie in one word. Looking at bits instead of cells made the
# observation more than twice as fast.
WORDS = 4
MOST_SIDE = 32 * WORDS
_ROW = (1 << SIGHT) - 1
# number of the lowest set bit
LOWEST = np.array([0, *(((n & -n).bit_length() - 1) for n in range(1, _ROW + 1))], np.int8)


def mark(filled, env, r, c, there):
    """Notes whether a cell shows something, in the one or two words that hold its column."""
    word = c // 32
    for w in range(max(word - 1, 0), word + 1):
        bit = int64(1) << int64(c - 32 * w)
        if there:
            filled[env, r, w] |= bit
        else:
            filled[env, r, w] &= ~bit


def shown(filled, env, r, c):
    """The cells of row r within sight of column c that show something, as 11 bits."""
    first = c - RADIUS
    return (filled[env, r, first // 32] >> int64(first % 32)) & _ROW


def agent_in(occupant):
    """Which agent stands in a cell, or -1."""
    return -1 - occupant if occupant < 0 else -1


def converter_in(occupant):
    """Which converter stands in a cell, or -1."""
    return occupant - FIRST_CONVERTER if occupant >= FIRST_CONVERTER else -1
