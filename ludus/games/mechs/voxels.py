"""The voxels of an env: a map of the shared bank, and the few columns that were damaged in this
episode.

A column of voxels is a bit mask (bit y: layer y). Masks of the bank are never written. A damaged
column is kept in a small hash table of the env (`patch_key`, 0 where free, and its own masks);
`touched` says which tiles of 8 x 8 columns have any, so that a look at an untouched tile costs one
byte. Once the table is full no further columns break.
"""

from numpy import int64

from ludus.sim import float32, phase

TILE_BITS = 3  # tiles of 8 x 8 columns
TILES = 16
LARGEST = TILES << TILE_BITS  # world
TOP_LAYER = 30
SLOTS = 256
MOST_PATCHES = 192  # of the slots: probing stays short
MISS = 2.0  # a cast that met nothing

AIR, SOLID, DEBRIS, ROCK, GLASS, FOLIAGE, LAVA, WATER = range(8)
DRY, WET, MOLTEN = range(3)  # values of bank_floor
DEBRIS_SHARE = 0.5  # hit points of debris, of those of the voxel it was


def find_slot(patch_key, env, x, z):
    """The slot of a column, or the free one where it would go."""
    key = x * LARGEST + z + 1
    slot = ((key * 40503) >> 4) & (SLOTS - 1)
    while patch_key[env, slot] != 0 and patch_key[env, slot] != key:
        slot = (slot + 1) & (SLOTS - 1)
    return slot


def column(bank, patch, patch_key, touched, env, chart, x, z):
    """A mask of a column as it is now: `bank` and `patch` are those of solid voxels, or those of
    opaque ones."""
    if touched[env, x >> TILE_BITS, z >> TILE_BITS]:
        slot = find_slot(patch_key, env, x, z)
        if patch_key[env, slot] != 0:
            return patch[env, slot]
    return bank[chart, x, z]


def layers(low, high):
    """The mask of the layers from low to high."""
    return ((int64(2) << (high - low)) - 1) << low


def cast(bank, patch, patch_key, touched, env, chart, world, x0, y0, z0, x1, y1, z1):
    """The part of the way from one point to another at which a voxel is entered, or MISS."""
    dx, dy, dz = x1 - x0, y1 - y0, z1 - z0
    x, z = int(x0), int(z0)
    step_x, step_z = 1 if dx > 0.0 else -1, 1 if dz > 0.0 else -1
    per_x = 1.0 / abs(dx) if abs(dx) > 1e-6 else float32(1e9)
    per_z = 1.0 / abs(dz) if abs(dz) > 1e-6 else float32(1e9)
    next_x = (float32(x + 1) - x0 if dx > 0.0 else x0 - float32(x)) * per_x
    next_z = (float32(z + 1) - z0 if dz > 0.0 else z0 - float32(z)) * per_z
    t, layer = float32(0.0), int(y0)
    while t < 1.0:
        leave = min(next_x, next_z, float32(1.0))
        layer_out = int(y0 + dy * leave)
        low, high = max(min(layer, layer_out), 0), min(max(layer, layer_out), TOP_LAYER)
        if (
            high >= low
            and column(bank, patch, patch_key, touched, env, chart, x, z) & layers(low, high) != 0
        ):
            return t
        t, layer = leave, layer_out
        if next_x < next_z:
            x += step_x
            next_x += per_x
        else:
            z += step_z
            next_z += per_z
        if x < 0 or x >= world or z < 0 or z >= world:
            break
    return float32(MISS)


def overlaps(bank, patch, patch_key, touched, env, chart, world, half, tall, x, y, z):
    """Is any voxel inside an upright box with its feet here?"""
    low, high = max(int(y), 0), min(int(y + tall - 1e-3), TOP_LAYER)
    if high < low:
        return False
    bits = layers(low, high)
    last_x, last_z = min(int(x + half), world - 1), min(int(z + half), world - 1)
    for i in range(max(int(x - half), 0), last_x + 1):
        for j in range(max(int(z - half), 0), last_z + 1):
            if column(bank, patch, patch_key, touched, env, chart, i, j) & bits != 0:
                return True
    return False


def material(solid, opaque, breakable, debris, floor, ground, y):
    """What fills layer y of a column with these masks, this floor and this height of ground."""
    bit = 1 << y
    if solid & bit:
        if not opaque & bit:
            return GLASS
        if debris & bit:
            return DEBRIS
        return SOLID if breakable & bit else ROCK
    if opaque & bit:
        return FOLIAGE
    if y == ground and floor != DRY:
        return LAVA if floor == MOLTEN else WATER
    return AIR


# -- damage ----------------------------------------------------------------------------------------


def open_slot(
    patch_key,
    patch_solid,
    patch_opaque,
    patch_debris,
    patch_wear,
    touched,
    patches,
    bank_solid,
    bank_opaque,
    env,
    chart,
    x,
    z,
):
    """The slot of a column, taken now if it had none; -1 if the table is full."""
    slot = find_slot(patch_key, env, x, z)
    if patch_key[env, slot] != 0:
        return slot
    if patches[env] >= MOST_PATCHES:
        return -1
    patches[env] += 1
    patch_key[env, slot] = x * LARGEST + z + 1
    patch_solid[env, slot] = bank_solid[chart, x, z]
    patch_opaque[env, slot] = bank_opaque[chart, x, z]
    patch_debris[env, slot] = 0
    patch_wear[env, slot] = 0.0
    touched[env, x >> TILE_BITS, z >> TILE_BITS] = 1
    return slot


def hit_voxel(
    patch_key,
    patch_solid,
    patch_opaque,
    patch_debris,
    patch_wear,
    touched,
    patches,
    bank_solid,
    bank_opaque,
    bank_breakable,
    bank_strength,
    env,
    chart,
    x,
    y,
    z,
    damage,
):
    """Damages the voxel in layer y. Damage gathers per column; a solid voxel breaks into debris,
    debris and glass into air."""
    bit = int64(1) << y
    if bank_breakable[chart, x, z] & bit == 0:
        return
    if column(bank_solid, patch_solid, patch_key, touched, env, chart, x, z) & bit == 0:
        return
    slot = open_slot(
        patch_key,
        patch_solid,
        patch_opaque,
        patch_debris,
        patch_wear,
        touched,
        patches,
        bank_solid,
        bank_opaque,
        env,
        chart,
        x,
        z,
    )
    if slot < 0:
        return
    patch_wear[env, slot] += damage
    strength = float32(bank_strength[chart, x, z])
    is_debris = patch_debris[env, slot] & bit != 0
    if patch_wear[env, slot] < (strength * DEBRIS_SHARE if is_debris else strength):
        return
    patch_wear[env, slot] = 0.0
    is_glass = patch_opaque[env, slot] & bit == 0
    if is_debris or is_glass:
        patch_solid[env, slot] &= ~bit
        patch_opaque[env, slot] &= ~bit
    else:
        patch_debris[env, slot] |= bit


@phase(writes=("patch_key", "touched", "patches"))
def mend(env, patch_key, touched, patches):
    """A new episode: nothing is broken."""
    if patches[env] > 0:
        for slot in range(SLOTS):
            patch_key[env, slot] = 0
        for i in range(TILES):
            for j in range(TILES):
                touched[env, i, j] = 0
    patches[env] = 0
