"""The world: hills of simplex noise with trees, boulders and low walls, stored as one bit mask per
column.

Bit y of `solid[env, x, z]` says that a block stands in layer y; `sight` holds those that stop sight
(all but leaves), `placed` those an agent put there. What a block is made of follows from the masks,
the height of the ground and the plan, so there is no grid of voxels: 14 bytes a column.

A terrain follows from its seed and five parameters (its recipe). A bank of them is built once per
batch; an env copies one when its episode needs another than it holds, and builds one itself only if
the bank does not have it.
"""

from numpy import uint64

from ludus.sim import float32, geometry, phase, random

AIR, GRASS, DIRT, STONE, SAND, LOG, LEAVES, PLACED = range(8)
NOTHING, TREE, BOULDER, WALL_X, WALL_Z = range(5)  # what is planned on a column

LAYERS = 31  # bits of a mask
BASE = 2.0  # layers of rock under the lowest ground
TRUNK = 4
BOULDER_HEIGHT, WALL_HEIGHT = 2, 2  # a jump clears one block
WALL_HALF = 3
CROWN = TRUNK + 1
HIGHEST_GROUND = LAYERS - CROWN - 4  # room for a tree and a few placed blocks
SAND_LEVEL = 2  # ground this low is beach, without trees
PER_AREA = 1024.0  # trees, boulders and walls are counted per 32x32 columns

FIXED, BANK, FRESH = 0, 1, 2  # values of terrain_mode
FIRST_FRESH = 1 << 30  # seeds of fresh terrains, above every seed a bank can have
RECIPE = 4
KEEP, BUILD = -1, -2  # values of terrain_source; others are the number of a terrain in the bank

NOISE, PLAN, PICK = 11, 12, 13  # streams of randomness


def terrain_key(seed):
    return random.key(seed, 0, 0, 0)


def ground_height(key, x, z, height_range):
    """Layers of ground in a column."""
    n, scale, weight = float32(0.0), float32(0.018 * 0.8), float32(0.7)
    for octave in range(3):
        n += weight * geometry.simplex2(
            key + uint64(octave), scale * float32(x), scale * float32(z)
        )
        scale *= 2.0
        weight *= 0.5
    h = geometry.floor_int(BASE + height_range * (n + 1.0) / 2.0)
    return min(max(h, 1), HIGHEST_GROUND)


def planned(key, x, z, ground, trees, boulders, walls):
    """What stands on a column, drawn for each column on its own."""
    draw = random.uniform(key, PLAN, x * 64 + z) * PER_AREA
    if draw < trees:
        return TREE if ground > SAND_LEVEL else NOTHING
    draw -= trees
    if draw < boulders:
        return BOULDER
    draw -= boulders
    if draw < walls:
        return WALL_X if draw < 0.5 * walls else WALL_Z
    return NOTHING


def column_masks(ground, plan, at, x, z, world):
    """(solid, sight) of a column: its ground, and what is planned on it and around it."""
    own = int(ground[at, x, z])  # a shift of int8 would stay int8 in plain Python
    sight, leaves = (1 << own) - 1, 0
    for i in range(max(x - WALL_HALF, 0), min(x + WALL_HALF + 1, world)):
        for j in range(max(z - WALL_HALF, 0), min(z + WALL_HALF + 1, world)):
            what = plan[at, i, j]
            if what == NOTHING:
                continue
            base, dx, dz = int(ground[at, i, j]), abs(i - x), abs(j - z)
            if what == TREE:
                if dx + dz == 0:
                    sight |= ((1 << TRUNK) - 1) << base
                if dx + dz <= 1:
                    leaves |= 1 << (base + TRUNK)
                if 0 < dx + dz <= 2:
                    leaves |= 1 << (base + TRUNK - 1)
            elif what == BOULDER:
                if dx <= 1 and dz <= 1:
                    sight |= (1 << (base + BOULDER_HEIGHT)) - 1
            elif (what == WALL_X and dz == 0) or (what == WALL_Z and dx == 0):
                sight |= (1 << (own + WALL_HEIGHT)) - 1
    return sight | leaves, sight


def block_kind(solid, sight, placed, ground, plan, env, x, y, z):
    """What the block in a cell is made of."""
    if y < 0 or y >= LAYERS:
        return AIR
    if (solid[env, x, z] >> y) & 1 == 0:
        return AIR
    if (placed[env, x, z] >> y) & 1:
        return PLACED
    top = ground[env, x, z]
    if y >= top:
        if (sight[env, x, z] >> y) & 1 == 0:
            return LEAVES
        return LOG if plan[env, x, z] == TREE else STONE
    if y == top - 1:
        return SAND if top <= SAND_LEVEL else GRASS
    return DIRT if y >= top - 3 else STONE


# -- the bank: once per batch ----------------------------------------------------------------------


@phase(writes=("bank_recipe", "bank_first"))
def note_recipe(env, height_range, trees, boulders, walls, first_terrain, bank_recipe, bank_first):
    bank_recipe[0] = height_range[env]
    bank_recipe[1] = trees[env]
    bank_recipe[2] = boulders[env]
    bank_recipe[3] = walls[env]
    bank_first[0] = first_terrain[env]


@phase(lanes=("terrains", "world"), writes=("bank_ground", "bank_plan", "bank_builds"))
def plan_bank(
    env,
    terrain,
    x,
    world,
    height_range,
    trees,
    boulders,
    walls,
    first_terrain,
    bank_ground,
    bank_plan,
    bank_builds,
):
    key = terrain_key(first_terrain[env] + terrain)
    bank_builds[terrain, x] += 1
    for z in range(world):
        h = ground_height(key, x, z, height_range[env])
        bank_ground[terrain, x, z] = h
        bank_plan[terrain, x, z] = planned(key, x, z, h, trees[env], boulders[env], walls[env])


@phase(lanes=("terrains", "world"), writes=("bank_solid", "bank_sight"))
def raise_bank(env, terrain, x, world, bank_ground, bank_plan, bank_solid, bank_sight):
    for z in range(world):
        solid, sight = column_masks(bank_ground, bank_plan, terrain, x, z, world)
        bank_solid[terrain, x, z] = solid
        bank_sight[terrain, x, z] = sight


# -- an env's own copy: in reset rows, where it changes --------------------------------------------


@phase(writes=("terrain", "recipe", "terrain_source", "edited", "builds"))
def choose_terrain(
    env,
    terrains,
    key,
    terrain_mode,
    first_terrain,
    height_range,
    trees,
    boulders,
    walls,
    bank_recipe,
    bank_first,
    terrain,
    recipe,
    terrain_source,
    edited,
    builds,
):
    """Which terrain this episode has, and where it comes from: it is there already, in the bank, or
    must be built."""
    wanted = first_terrain[env]
    if terrain_mode[env] == BANK:
        wanted += random.integer(key[env], PICK, 0, terrains)
    elif terrain_mode[env] == FRESH:
        wanted = FIRST_FRESH + random.integer(key[env], PICK, 0, FIRST_FRESH - 2)
    held = not edited[env] and terrain[env] == wanted + 1
    held = held and recipe[env, 0] == height_range[env] and recipe[env, 1] == trees[env]
    held = held and recipe[env, 2] == boulders[env] and recipe[env, 3] == walls[env]
    if held:
        terrain_source[env] = KEEP
        return
    terrain[env] = wanted + 1
    recipe[env, 0] = height_range[env]
    recipe[env, 1] = trees[env]
    recipe[env, 2] = boulders[env]
    recipe[env, 3] = walls[env]
    edited[env] = False
    stored = bank_first[0] <= wanted and wanted < bank_first[0] + terrains
    for i in range(RECIPE):
        stored = stored and recipe[env, i] == bank_recipe[i]
    if stored:
        terrain_source[env] = wanted - bank_first[0]
    else:
        terrain_source[env] = BUILD
        builds[env] += 1


@phase(lanes="world", writes=("ground", "plan"))
def plan_terrain(
    env,
    x,
    world,
    terrain,
    terrain_source,
    height_range,
    trees,
    boulders,
    walls,
    bank_ground,
    bank_plan,
    ground,
    plan,
):
    source = terrain_source[env]
    if source >= 0:
        for z in range(world):
            ground[env, x, z] = bank_ground[source, x, z]
            plan[env, x, z] = bank_plan[source, x, z]
    elif source == BUILD:
        key = terrain_key(terrain[env] - 1)
        for z in range(world):
            h = ground_height(key, x, z, height_range[env])
            ground[env, x, z] = h
            plan[env, x, z] = planned(key, x, z, h, trees[env], boulders[env], walls[env])


@phase(lanes="world", writes=("solid", "sight", "placed"))
def raise_terrain(
    env, x, world, terrain_source, bank_solid, bank_sight, ground, plan, solid, sight, placed
):
    source = terrain_source[env]
    if source == KEEP:
        return
    for z in range(world):
        placed[env, x, z] = 0
        if source >= 0:
            solid[env, x, z] = bank_solid[source, x, z]
            sight[env, x, z] = bank_sight[source, x, z]
        else:
            all_blocks, opaque = column_masks(ground, plan, env, x, z, world)
            solid[env, x, z] = all_blocks
            sight[env, x, z] = opaque


@phase(writes="top")
def find_top(env, world, terrain_source, solid, top):
    """The first layer without any block: rays that climb past it meet nothing more."""
    if terrain_source[env] == KEEP:
        return
    every = 0
    for x in range(world):
        for z in range(world):
            every |= solid[env, x, z]
    top[env] = 0
    while every >> top[env]:
        top[env] += 1
