"""The bank of maps, built once per batch: brushes in four biome patches, turned about the middle so
that both sides match.

The map from the low corner (where team 0 starts) up to the diagonal is drawn; the rest is the same
turned by 180 degrees, so nothing is nearer, higher or harder for one team. The zone is in the
middle. Three ways (a main lane and two flanks) from each start to the zone are level and free by
construction; `route` proves it by walking from the zone.
"""

import math

import numpy as np

from ludus.games.mechs.classes import class_of
from ludus.games.mechs.voxels import DRY, MOLTEN, WET
from ludus.sim import float32, phase, random

# What a brush paints.
HILL, PLATEAU, ROCKS, TOWER, RUIN, WALL, BUNKER, GLASSHOUSE, FOREST, THICKET, LAKE, LAVA_FIELD = (
    range(12)
)
BIOMES = np.array(
    [
        [HILL, PLATEAU, ROCKS, THICKET],  # highlands
        [TOWER, WALL, BUNKER, GLASSHOUSE],  # a town
        [FOREST, LAKE, THICKET, HILL],  # wilds
        [LAVA_FIELD, RUIN, ROCKS, PLATEAU],  # wastes
    ],
    np.int8,
)
NUM_BIOMES, BIOME_KINDS, PATCHES = 4, 4, 4
MOST_BRUSHES, BRUSH = 40, 5
BRUSH_KIND, BRUSH_X, BRUSH_Z, BRUSH_RADIUS, BRUSH_TALL = range(BRUSH)
BASE = 1  # layers of level ground
ROOM = 6  # layers kept free above the highest ground
SMALLEST_ZONE, LARGEST_ZONE = 4.0, 11.0
SPAWN_APART = 4.5
WAYS, MAIN_HALF, FLANK_HALF = 3, 4.0, 3.0  # half widths of the ways
FLANKED = 48  # a smaller world has no room for flanks beside the main lane
WIDEST = 2  # columns to each side that the widest mech may touch
COARSE = 6  # the coarse map has 6 x 6 tiles
UNREACHED = 30_000

# streams of randomness
ZONE, WAY_X, WAY_Z, BIOME, KIND, AT_X, AT_Z, SIZE, TALLNESS, COLUMN, PICK = range(41, 52)

# hit points of a voxel
TOWER_HP, WALL_HP, BUNKER_HP, RUIN_HP, TRUNK_HP, GLASS_HP = 80, 60, 100, 40, 30, 20


def map_key(seed):
    return random.key(seed, 1, 0, 0)


def spawn_columns(per_team):
    """Mechs start in a square grid of this many columns."""
    columns = 1
    while columns * columns < per_team:
        columns += 1
    return columns


def spawn_side(per_team):
    return SPAWN_APART * float32(spawn_columns(per_team)) + 1.0


@phase(lanes="agents", writes="kind")
def enlist(env, agent, per_team, kind):
    kind[agent] = class_of(agent, per_team)


@phase(lanes="maps", writes=("bank_zone", "bank_way", "bank_brush"))
def draw(env, chart, world, first_map, bank_zone, bank_way, bank_brush):
    """Where the zone, the ways and the brushes of a map are."""
    key = map_key(first_map + chart)
    size = float32(world)
    bank_zone[chart, 0] = 0.5 * size
    bank_zone[chart, 1] = 0.5 * size
    bank_zone[chart, 2] = random.between(
        key, ZONE, 0, SMALLEST_ZONE, max(SMALLEST_ZONE, min(LARGEST_ZONE, size / 9.0))
    )
    for way in range(WAYS):
        middle_x, middle_z = 0.28, 0.28
        if way > 0:
            middle_x, middle_z = (0.20, 0.62) if way == 1 else (0.62, 0.20)
        bank_way[chart, way, 0] = size * (middle_x + random.between(key, WAY_X, way, -0.07, 0.07))
        bank_way[chart, way, 1] = size * (middle_z + random.between(key, WAY_Z, way, -0.07, 0.07))
    for brush in range(MOST_BRUSHES):
        x, z = (
            random.between(key, AT_X, brush, 0.0, size),
            random.between(key, AT_Z, brush, 0.0, size),
        )
        if x + z > size:
            x, z = size - x, size - z
        # as seen from the middle: 0 to pi on this side of the diagonal
        angle = math.atan2(size - x - z, x - z)
        patch = min(max(int(float32(PATCHES) * angle / math.pi), 0), PATCHES - 1)
        biome = random.integer(key, BIOME, patch, NUM_BIOMES)
        bank_brush[chart, brush, BRUSH_KIND] = float32(
            BIOMES[biome, random.integer(key, KIND, brush, BIOME_KINDS)]
        )
        bank_brush[chart, brush, BRUSH_X] = x
        bank_brush[chart, brush, BRUSH_Z] = z
        bank_brush[chart, brush, BRUSH_RADIUS] = random.between(key, SIZE, brush, 3.0, 8.5)
        bank_brush[chart, brush, BRUSH_TALL] = random.between(key, TALLNESS, brush, 0.0, 1.0)


def near_segment(x, z, ax, az, bx, bz, within):
    """Is a point this near to the segment from a to b?"""
    dx, dz = bx - ax, bz - az
    t = ((x - ax) * dx + (z - az) * dz) / max(dx * dx + dz * dz, 1e-6)
    t = min(max(t, 0.0), 1.0)
    off_x, off_z = x - ax - t * dx, z - az - t * dz
    return off_x * off_x + off_z * off_z < within * within


def kept_free(bank_zone, bank_way, chart, x, z, per_team, world):
    """Starts, the zone and the ways are level and empty."""
    side = spawn_side(per_team)
    if x < side and z < side:
        return True
    zone_x, zone_z, clear = bank_zone[chart, 0], bank_zone[chart, 1], bank_zone[chart, 2] + 2.0
    if (x - zone_x) * (x - zone_x) + (z - zone_z) * (z - zone_z) < clear * clear:
        return True
    for way in range(WAYS if world >= FLANKED else 1):
        half = float32(MAIN_HALF if way == 0 else FLANK_HALF)
        way_x, way_z = bank_way[chart, way, 0], bank_way[chart, way, 1]
        if near_segment(x, z, 0.5 * side, 0.5 * side, way_x, way_z, half):
            return True
        if near_segment(x, z, way_x, way_z, zone_x, zone_z, half):
            return True
    return False


def rise(bank_brush, chart, x, z, brushes, height, chance):
    """Layers of ground in a column."""
    ground = BASE
    for brush in range(brushes):
        kind = int(bank_brush[chart, brush, BRUSH_KIND])
        if kind > ROCKS:
            continue
        radius, tall = bank_brush[chart, brush, BRUSH_RADIUS], bank_brush[chart, brush, BRUSH_TALL]
        dx, dz = x - bank_brush[chart, brush, BRUSH_X], z - bank_brush[chart, brush, BRUSH_Z]
        inside = radius - math.sqrt(dx * dx + dz * dz)
        if inside <= 0.0:
            continue
        if kind == HILL:
            ground = max(ground, BASE + int((0.4 + 0.5 * tall) * inside))
        elif kind == PLATEAU:
            ground = max(ground, BASE + int(min(inside, 2.0 + 2.0 * tall)))
        elif chance < 0.2:
            ground = max(ground, BASE + 2 + int(2.0 * tall))
    return min(ground, height - ROOM)


def structure(kind, ax, az, radius, tall, chance):
    """What a brush puts on the ground of a column: (walls, glass, foliage) as masks from the ground
    up, hit points, floor.

    ax and az are how far the column is from the brush's middle along each axis.
    """
    edge = max(ax, az)
    flat = ax * ax + az * az < radius * radius
    if kind == TOWER:
        return (
            (1 << (6 + int(6.0 * tall))) - 1 if edge < 1.5 + 1.5 * tall else 0,
            0,
            0,
            TOWER_HP,
            DRY,
        )
    if kind == RUIN:
        return (
            (1 << (1 + int(3.0 * chance))) - 1
            if radius - 1.0 < edge <= radius and chance < 0.7
            else 0,
            0,
            0,
            RUIN_HP,
            DRY,
        )
    if kind == WALL:
        across, along = (ax, az) if tall < 0.5 else (az, ax)
        return 0b111 if across < 0.6 and along < radius else 0, 0, 0, WALL_HP, DRY
    if kind == BUNKER:
        half = min(radius, 5.0)
        if edge > half:
            return 0, 0, 0, 0, DRY
        door = min(ax, az) < 2.0
        return 0b10000 if edge <= half - 1.0 or door else 0b11111, 0, 0, BUNKER_HP, DRY
    if kind == GLASSHOUSE:
        half = min(radius, 5.0)
        return (
            0,
            0b1111 if half - 1.0 < edge <= half and min(ax, az) >= 2.0 else 0,
            0,
            GLASS_HP,
            DRY,
        )
    if kind == FOREST and flat:
        if chance < 0.07:
            return 0b11111, 0, 0, TRUNK_HP, DRY
        return 0, 0, 0b111100 if chance < 0.4 else 0, 0, DRY
    if kind == THICKET and flat:
        return 0, 0, 0b111 if chance < 0.7 else 0, 0, DRY
    if kind == LAKE and flat:
        return 0, 0, 0, 0, WET
    if kind == LAVA_FIELD and flat:
        return 0, 0, 0, 0, MOLTEN
    return 0, 0, 0, 0, DRY


@phase(
    lanes=("maps", "world"),
    writes=(
        "bank_solid",
        "bank_opaque",
        "bank_breakable",
        "bank_strength",
        "bank_floor",
        "bank_ground",
    ),
)
def build(
    env,
    chart,
    x,
    world,
    height,
    per_team,
    first_map,
    bank_zone,
    bank_way,
    bank_brush,
    bank_solid,
    bank_opaque,
    bank_breakable,
    bank_strength,
    bank_floor,
    bank_ground,
):
    """The columns with one x: masks, hit points, floor and ground."""
    key = map_key(first_map + chart)
    brushes = min(max(MOST_BRUSHES * world * world // 10_000, 4), MOST_BRUSHES)
    for z in range(world):
        u, v = x, z
        # the other side: what stands there turned by 180 degrees
        if x + z > world - 1 or (x + z == world - 1 and x > z):
            u, v = world - 1 - x, world - 1 - z
        mid_u, mid_v = float32(u) + 0.5, float32(v) + 0.5
        ground, walls, glass, foliage, strength, floor = BASE, 0, 0, 0, 0, DRY
        if not kept_free(bank_zone, bank_way, chart, mid_u, mid_v, per_team, world):
            chance = random.uniform(key, COLUMN, u * 128 + v)
            ground = rise(bank_brush, chart, mid_u, mid_v, brushes, height, chance)
            for brush in range(brushes):
                ax = abs(mid_u - bank_brush[chart, brush, BRUSH_X])
                az = abs(mid_v - bank_brush[chart, brush, BRUSH_Z])
                radius = bank_brush[chart, brush, BRUSH_RADIUS]
                kind = int(bank_brush[chart, brush, BRUSH_KIND])
                if kind <= ROCKS or ax > radius or az > radius:
                    continue
                new_walls, new_glass, new_foliage, hp, wet = structure(
                    kind, ax, az, radius, bank_brush[chart, brush, BRUSH_TALL], chance
                )
                if new_walls | new_glass:
                    walls, glass, strength = new_walls, new_glass, hp
                foliage |= new_foliage
                if wet != DRY:
                    floor = wet
        if ground > BASE or walls | glass:
            floor = DRY
        every = (1 << height) - 1
        solid_above, glass_above = (walls << ground) & every, (glass << ground) & every
        foliage_above = (foliage << ground) & every & ~solid_above & ~glass_above
        rock = (1 << ground) - 1
        bank_solid[chart, x, z] = rock | solid_above | glass_above
        bank_opaque[chart, x, z] = rock | solid_above | foliage_above
        bank_breakable[chart, x, z] = solid_above | glass_above
        bank_strength[chart, x, z] = strength
        bank_floor[chart, x, z] = floor
        bank_ground[chart, x, z] = ground


def top_of(mask):
    """The layer above the highest voxel."""
    top = 0
    while mask >> top:
        top += 1
    return top


@phase(lanes=("maps", "world"), writes=("bank_top", "bank_stand"))
def level(env, chart, x, world, bank_solid, bank_top, bank_stand):
    """How high each column is, and how high the widest mech stands over it: on the highest voxel
    around."""
    for z in range(world):
        every = 0
        for i in range(max(x - WIDEST, 0), min(x + WIDEST + 1, world)):
            for j in range(max(z - WIDEST, 0), min(z + WIDEST + 1, world)):
                every |= bank_solid[chart, i, j]
        bank_top[chart, x, z] = top_of(bank_solid[chart, x, z])
        bank_stand[chart, x, z] = top_of(every)


@phase(lanes="maps", writes=("bank_distance", "bank_queue"))
def route(env, chart, world, bank_floor, bank_top, bank_stand, bank_distance, bank_queue):
    """Columns to walk from the zone's middle, by steps that wide and narrow mechs can take both
    ways and not through lava."""
    for x in range(world):
        for z in range(world):
            bank_distance[chart, x, z] = UNREACHED
    head, tail = 0, 0
    # the middle may be the corner of four columns
    for x in range((world - 1) // 2, world // 2 + 1):
        for z in range((world - 1) // 2, world // 2 + 1):
            bank_distance[chart, x, z] = 0
            bank_queue[chart, tail // world, tail % world] = x * world + z
            tail += 1
    while head < tail:
        at = bank_queue[chart, head // world, head % world]
        head += 1
        x, z = at // world, at % world
        for side in range(4):
            nx = x + (1 if side == 0 else (-1 if side == 1 else 0))
            nz = z + (1 if side == 2 else (-1 if side == 3 else 0))
            if (
                nx < 0
                or nz < 0
                or nx >= world
                or nz >= world
                or bank_distance[chart, nx, nz] != UNREACHED
            ):
                continue
            climb = int(bank_stand[chart, nx, nz]) - int(bank_stand[chart, x, z])
            rise_here = int(bank_top[chart, nx, nz]) - int(bank_top[chart, x, z])
            if abs(climb) <= 1 and abs(rise_here) <= 1 and bank_floor[chart, nx, nz] != MOLTEN:
                bank_distance[chart, nx, nz] = bank_distance[chart, x, z] + 1
                bank_queue[chart, tail // world, tail % world] = nx * world + nz
                tail += 1


@phase(lanes="maps", writes="bank_coarse")
def survey(env, chart, world, bank_distance, bank_coarse):
    """The share of each tile of the coarse map that cannot be walked on."""
    for i in range(COARSE):
        for j in range(COARSE):
            count, closed = 0, 0
            # rounded outwards: the same from both sides
            for x in range(i * world // COARSE, -(-(i + 1) * world // COARSE)):
                for z in range(j * world // COARSE, -(-(j + 1) * world // COARSE)):
                    count += 1
                    if bank_distance[chart, x, z] == UNREACHED:
                        closed += 1
            bank_coarse[chart, i, j] = float32(closed) / float32(max(count, 1))


@phase(writes="chart")
def pick(env, key, maps, chart):
    """Each episode has one map of the bank."""
    chart[env] = random.integer(key[env], PICK, 0, maps)
