"""The four classes of mech and their weapons, as tables indexed by class and by weapon."""

import math

import numpy as np

SUBSTEPS = 5
DT = 0.05
STEP_SECONDS = SUBSTEPS * DT

SCOUT, LIGHT, MEDIUM, HEAVY = range(4)
NUM_CLASSES = 4
CLASS_NAMES = ("scout", "light", "medium", "heavy")

# A pack. A smaller team is its first mechs (two: a medium and a light), a larger one starts a
# second pack.
PACK_SIZE = 10
PACK = np.array(
    [MEDIUM, LIGHT, HEAVY, MEDIUM, LIGHT, SCOUT, MEDIUM, MEDIUM, LIGHT, MEDIUM], np.int8
)

HALF = np.array([0.6, 0.75, 1.25, 1.75], np.float32)  # half of the width
TALL = np.array([1.8, 2.0, 3.0, 4.0], np.float32)
SPEED = np.array([7.0, 6.8, 5.5, 2.5], np.float32)  # metres a second
TURN = np.array([1.8, 1.5, 1.0, 0.6], np.float32)  # radians a second
JET = np.array([18.0, 16.0, 0.0, 0.0], np.float32)  # upward acceleration
MAX_HP = np.array([60.0, 80.0, 150.0, 200.0], np.float32)
MAX_LEGS = np.array([30.0, 40.0, 75.0, 100.0], np.float32)
HEAT_CAP = np.array([75.0, 80.0, 100.0, 130.0], np.float32)
DISSIPATION = np.array([13.0, 12.0, 11.0, 10.0], np.float32)  # heat a second
TONS = np.array([20.0, 35.0, 55.0, 85.0], np.float32)
HEAVIEST = 85.0
MOST_HP = 300.0  # hit points of a heavy with its legs

EYE = 0.85  # of the height: where a mech looks from and is looked for
MUZZLE = 0.75  # where it fires from
CHEST = 0.5  # where it is fired at
LOW = 0.4  # hits from below this part of the height go to the legs

LASER, FLAMER, MISSILE, GAUSS, AUTOCANNON, PAINTER = range(6)
NO_WEAPON = -1
# the keys that fire; special is the smoke launcher of every class
PRIMARY, SECONDARY, TERTIARY, SPECIAL = range(4)
GUNS = 3  # keys that fire at a target
KEYS = 4
LOADOUT = np.array(
    [
        [PAINTER, NO_WEAPON, NO_WEAPON],  # a scout's secondary key is its ECCM
        [LASER, FLAMER, PAINTER],
        [LASER, AUTOCANNON, PAINTER],
        [LASER, MISSILE, GAUSS],
    ],
    np.int8,
)

#                     laser  flamer missile gauss autocannon painter
RANGE = np.array([8.0, 4.5, 12.0, 20.0, 12.0, 10.0], np.float32)
DAMAGE = np.array([14.0, 4.0, 40.0, 50.0, 8.0, 0.0], np.float32)
SHAKE = np.array([0.0, 0.0, 15.0, 60.0, 5.0, 0.0], np.float32)  # stability taken
HEAT = np.array([22.0, 10.0, 45.0, 15.0, 6.0, 0.0], np.float32)  # of the shooter, per shot
SCORCH = np.array([4.0, 6.0, 0.0, 0.0, 0.0, 0.0], np.float32)  # heat of the target, per shot
COOLDOWN = np.array([0.6, 0.15, 3.0, 4.0, 0.2, 1.0], np.float32)
ARC_COS = np.array(
    [math.cos(math.radians(a / 2)) for a in (120.0, 90.0, 180.0, 60.0, 90.0, 120.0)], np.float32
)
PAINTED_RANGE = 50.0  # a missile's, at a painted target
PAINT_SECONDS, PAINT_BONUS = 5.0, 1.1
SUPPRESS_SECONDS = 1.2
REAR_BONUS, REAR_COS = 1.5, -0.5

SMOKE_RADIUS, SMOKE_SECONDS, SMOKE_COOLDOWN, SMOKE_THROW = 4.0, 10.0, 20.0, 6.0

STABILITY, STABILITY_REGAIN, DOWN_SECONDS, RISES_AT = 100.0, 10.0, 3.0, 50.0
RESTART = 0.6  # a mech that shut down starts again below this part of its heat cap
VENT = 2.0  # factor on dissipation
LEGGED = 0.4  # factor on speed
ECM_HEAT, ECCM_HEAT, JET_HEAT = 3.0, 2.0, 10.0  # a second


def class_of(agent, per_team):
    return PACK[agent % per_team % PACK_SIZE]
