"""The table of moves: eleven for each of unarmed, spear and hammer. Pure data, and the arrays the
rules read it from.

Frames count from 1, the frame in which the move starts. Distances are measured from the middle of a
fighter that faces right; angles in degrees, 0 ahead, 90 up. A hit lands once, in any frame from
`first` to `last`.
"""

import math
from dataclasses import dataclass

import numpy as np

KINDS = (
    "neutral_light",
    "down_light",
    "side_light",
    "neutral_heavy",
    "down_heavy",
    "side_heavy",
    "neutral_air",
    "down_air",
    "side_air",
    "recovery",
    "ground_pound",
)
NEUTRAL, DOWNWARD, SIDEWAYS = range(3)  # added to one of the next three
LIGHTS, HEAVIES, AIRS = 0, 3, 6
RECOVERY, GROUND_POUND = 9, 10
PER_WEAPON = len(KINDS)
MOST_HITS = 4


@dataclass(frozen=True)
class Hit:
    """What a move does to whom it reaches: knockback is `fixed` plus what `variable` makes of the
    victim's damage."""

    first: int
    last: int
    damage: float
    stun: int
    fixed: float
    variable: float
    angle: float
    box: tuple[float, float, float, float]
    """Middle ahead and up, half width, half height."""


@dataclass(frozen=True)
class Move:
    total: int
    hits: tuple[Hit, ...]
    push: tuple[float, float] = (0.0, 0.0)
    """Speed ahead and up that the first active frame gives to the fighter itself; 0 leaves it as it
    is."""


def flurry(count: int, first: int, every: int, light: Hit, last: Hit) -> tuple[Hit, ...]:
    """`count` hits, one every few frames: the same light one until the last, which sends the victim
    off."""
    hits = [light] * (count - 1) + [last]
    return tuple(
        Hit(
            first + i * every,
            first + (i + 1) * every - 1,
            h.damage,
            h.stun,
            h.fixed,
            h.variable,
            h.angle,
            h.box,
        )
        for i, h in enumerate(hits)
    )


AHEAD, LONG_AHEAD, WIDE_AHEAD = (0.75, 0.1, 0.55, 0.35), (1.3, 0.1, 1.0, 0.3), (1.0, 0.2, 0.8, 0.6)
ABOVE, LONG_ABOVE = (0.1, 0.9, 0.6, 0.6), (0.2, 1.3, 0.5, 1.0)
BELOW, LONG_BELOW = (0.1, -0.8, 0.55, 0.5), (0.1, -1.2, 0.4, 0.9)
LOW, LONG_LOW = (0.7, -0.3, 0.6, 0.25), (1.3, -0.35, 1.0, 0.2)
AROUND, WIDE_AROUND = (0.0, 0.0, 0.9, 0.7), (0.0, 0.1, 1.3, 0.8)

# Hit: first, last, damage, stun, fixed, variable, angle, box
UNARMED_MOVES = dict(
    neutral_light=Move(16, (Hit(3, 5, 9, 12, 28, 16, 60, AHEAD),)),
    down_light=Move(18, (Hit(4, 6, 10, 14, 32, 16, 75, LOW),), push=(3.0, 0.0)),
    side_light=Move(20, (Hit(5, 8, 12, 13, 40, 21, 35, AHEAD),), push=(6.0, 0.0)),
    neutral_heavy=Move(28, (Hit(8, 11, 17, 14, 45, 49, 85, ABOVE),)),
    down_heavy=Move(29, (Hit(9, 12, 16, 13, 42, 44, 50, AROUND),)),
    side_heavy=Move(31, (Hit(10, 13, 19, 15, 52, 52, 40, AHEAD),), push=(4.0, 0.0)),
    neutral_air=Move(
        19,
        flurry(2, 4, 4, Hit(0, 0, 4, 8, 14, 5, 80, AROUND), Hit(0, 0, 8, 10, 34, 21, 50, AROUND)),
    ),
    down_air=Move(22, (Hit(6, 9, 13, 11, 34, 26, -60, BELOW),)),
    side_air=Move(20, (Hit(5, 8, 12, 11, 36, 26, 38, AHEAD),)),
    recovery=Move(24, (Hit(2, 9, 10, 10, 36, 31, 80, ABOVE),), push=(0.0, 9.5)),
    ground_pound=Move(30, (Hit(7, 22, 15, 12, 40, 36, 65, BELOW),), push=(0.0, -13.0)),
)
SPEAR_MOVES = dict(
    neutral_light=Move(
        18,
        flurry(
            3, 3, 3, Hit(0, 0, 3, 6, 8, 3, 45, LONG_AHEAD), Hit(0, 0, 5, 10, 30, 16, 45, LONG_AHEAD)
        ),
    ),
    down_light=Move(20, (Hit(5, 7, 9, 12, 30, 16, 70, LONG_LOW),)),
    side_light=Move(23, (Hit(6, 9, 12, 11, 40, 21, 30, LONG_AHEAD),), push=(5.0, 0.0)),
    neutral_heavy=Move(32, (Hit(11, 14, 18, 12, 46, 49, 88, LONG_ABOVE),)),
    down_heavy=Move(
        34,
        flurry(
            2,
            10,
            5,
            Hit(0, 0, 7, 8, 16, 6, 80, WIDE_AROUND),
            Hit(0, 0, 12, 12, 44, 44, 60, WIDE_AROUND),
        ),
    ),
    side_heavy=Move(38, (Hit(16, 19, 25, 13, 58, 57, 32, LONG_AHEAD),), push=(6.0, 0.0)),
    neutral_air=Move(
        22,
        flurry(
            4, 4, 3, Hit(0, 0, 2, 5, 8, 3, 80, LONG_ABOVE), Hit(0, 0, 6, 9, 30, 21, 75, LONG_ABOVE)
        ),
    ),
    down_air=Move(24, (Hit(8, 11, 14, 11, 36, 29, -65, LONG_BELOW),)),
    side_air=Move(23, (Hit(7, 10, 13, 10, 40, 26, 30, LONG_AHEAD),)),
    recovery=Move(27, (Hit(4, 10, 11, 9, 38, 31, 75, LONG_ABOVE),), push=(0.0, 9.5)),
    ground_pound=Move(34, (Hit(9, 24, 16, 11, 40, 36, -50, LONG_BELOW),), push=(0.0, -13.0)),
)
HAMMER_MOVES = dict(
    neutral_light=Move(22, (Hit(5, 8, 14, 12, 38, 23, 65, WIDE_AHEAD),)),
    down_light=Move(24, (Hit(6, 9, 13, 15, 36, 21, 80, LOW),)),
    side_light=Move(27, (Hit(8, 11, 17, 13, 46, 29, 40, WIDE_AHEAD),), push=(4.0, 0.0)),
    neutral_heavy=Move(42, (Hit(13, 17, 30, 16, 60, 68, 88, ABOVE),)),
    down_heavy=Move(
        45,
        flurry(
            2,
            12,
            6,
            Hit(0, 0, 10, 9, 18, 8, 85, WIDE_AROUND),
            Hit(0, 0, 22, 15, 54, 60, 65, WIDE_AROUND),
        ),
    ),
    side_heavy=Move(52, (Hit(16, 20, 46, 17, 70, 78, 38, WIDE_AHEAD),), push=(5.0, 0.0)),
    neutral_air=Move(26, (Hit(6, 10, 15, 11, 40, 31, 60, WIDE_AROUND),)),
    down_air=Move(30, (Hit(9, 13, 19, 13, 44, 39, -70, BELOW),)),
    side_air=Move(28, (Hit(8, 11, 18, 12, 46, 36, 40, WIDE_AHEAD),)),
    recovery=Move(30, (Hit(3, 10, 12, 10, 42, 36, 80, WIDE_AROUND),), push=(0.0, 9.2)),
    ground_pound=Move(40, (Hit(10, 26, 22, 14, 50, 47, 70, BELOW),), push=(0.0, -14.0)),
)
TABLE = [weapon[kind] for weapon in (UNARMED_MOVES, SPEAR_MOVES, HAMMER_MOVES) for kind in KINDS]


def _per_hit(values: list[list[float]], dtype: type = np.float32) -> np.ndarray:
    return np.array([row + [0] * (MOST_HITS - len(row)) for row in values], dtype)


# The same by number: weapon * PER_WEAPON + kind, and the hit's number
TOTAL = np.array([m.total for m in TABLE], np.int32)
HITS = np.array([len(m.hits) for m in TABLE], np.int32)
PUSH_X = np.array([m.push[0] for m in TABLE], np.float32)
PUSH_Y = np.array([m.push[1] for m in TABLE], np.float32)
FIRST = _per_hit([[h.first for h in m.hits] for m in TABLE], np.int32)
LAST = _per_hit([[h.last for h in m.hits] for m in TABLE], np.int32)
STUN = _per_hit([[h.stun for h in m.hits] for m in TABLE], np.int32)
HIT_DAMAGE = _per_hit([[h.damage for h in m.hits] for m in TABLE])
FIXED = _per_hit([[h.fixed for h in m.hits] for m in TABLE])
VARIABLE = _per_hit([[h.variable for h in m.hits] for m in TABLE])
AWAY = _per_hit([[math.cos(math.radians(h.angle)) for h in m.hits] for m in TABLE])
UPWARD = _per_hit([[math.sin(math.radians(h.angle)) for h in m.hits] for m in TABLE])
BOX_X = _per_hit([[h.box[0] for h in m.hits] for m in TABLE])
BOX_Y = _per_hit([[h.box[1] for h in m.hits] for m in TABLE])
BOX_HALF_X = _per_hit([[h.box[2] for h in m.hits] for m in TABLE])
BOX_HALF_Y = _per_hit([[h.box[3] for h in m.hits] for m in TABLE])
