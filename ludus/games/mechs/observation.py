"""What a mech observes: names, where each group starts, and the phases that write it.

Directions are the mech's own (ahead, right), places are its team's (the start is the low corner for
both), so that one policy can play either side. Slots that hold nothing are zero, with `valid` 0.
"""

import math

from ludus.games.mechs.classes import (
    CLASS_NAMES,
    COOLDOWN,
    DOWN_SECONDS,
    GUNS,
    HEAT_CAP,
    LOADOUT,
    MAX_HP,
    MAX_LEGS,
    MISSILE,
    NO_WEAPON,
    NUM_CLASSES,
    PACK_SIZE,
    PAINT_SECONDS,
    PRIMARY,
    SCOUT,
    SECONDARY,
    SMOKE_COOLDOWN,
    SPECIAL,
    STABILITY,
    STEP_SECONDS,
    SUPPRESS_SECONDS,
    TALL,
    TERTIARY,
)
from ludus.games.mechs.maps import COARSE, LARGEST_ZONE
from ludus.games.mechs.match import WON_AT, zone_distance
from ludus.games.mechs.movement import STEP_UP, in_floor
from ludus.games.mechs.sensing import BEST_QUALITY, CONTACTS
from ludus.games.mechs.voxels import DRY, MOLTEN, WET, column, layers
from ludus.games.mechs.weapons import NOBODY, able, bearing, foes, in_line, offset, reaches
from ludus.sim import float32, phase

MATES = PACK_SIZE - 1
LONGEST_MESSAGE = 8
VIEW = 11  # the occupancy map has 11 x 11 cells of a metre, aligned to the mech

BODY = [
    "x",
    "y",
    "z",
    "yaw_cos",
    "yaw_sin",
    "velocity_ahead",
    "velocity_right",
    "velocity_up",
    "grounded",
]
CONDITION = [
    "hp",
    "legs",
    "legged",
    "heat",
    "shut",
    "stability",
    "down",
    "suppressed",
    "painted",
    "hunted",
    "in_water",
    "in_lava",
]
ARMS = [
    "wait_primary",
    "wait_secondary",
    "wait_tertiary",
    "wait_special",
    "missile_flies",
    "shell_flies",
    "lock",
]
EWAR = ["ecm", "eccm", "quality"]
KIND = [f"is_{name}" for name in CLASS_NAMES]
CLOCK = ["own_score", "foe_score", "time_left", "own_left", "foe_left"]
ZONE = [
    "zone_ahead",
    "zone_right",
    "zone_distance",
    "zone_radius",
    "in_zone",
    "own_tick",
    "foe_tick",
]
CONTACT = [
    "valid",
    "foe",
    "ahead",
    "right",
    "up",
    "distance",
    "faces_ahead",
    "faces_right",
    "velocity_ahead",
    "velocity_right",
    "hp",
    "legs",
    "heat",
    "painted",
    "down",
    "in_line",
    "in_zone",
    *KIND,
]
MATE = ["valid", "ahead", "right", *(f"message{i}" for i in range(LONGEST_MESSAGE))]

NAMES = [
    *BODY,
    *CONDITION,
    *ARMS,
    *EWAR,
    *KIND,
    *CLOCK,
    *ZONE,
    *(f"contact{i}_{name}" for i in range(CONTACTS) for name in CONTACT),
    *(f"mate{i}_{name}" for i in range(MATES) for name in MATE),
    *(f"map{i}_{j}_closed" for i in range(COARSE) for j in range(COARSE)),
]

BODY_AT = 0
CONDITION_AT = BODY_AT + len(BODY)
ARMS_AT = CONDITION_AT + len(CONDITION)
EWAR_AT = ARMS_AT + len(ARMS)
KIND_AT = EWAR_AT + len(EWAR)
CLOCK_AT = KIND_AT + len(KIND)
ZONE_AT = CLOCK_AT + len(CLOCK)
CONTACTS_AT = ZONE_AT + len(ZONE)
CONTACT_SIZE = len(CONTACT)
CONTACT_KIND = CONTACT.index("is_scout")
MATES_AT = CONTACTS_AT + CONTACTS * CONTACT_SIZE
MATE_SIZE = len(MATE)
MATE_MESSAGE = MATE.index("message0")
MAP_AT = MATES_AT + MATES * MATE_SIZE
LOCK_AT = ARMS_AT + ARMS.index("lock")

NEAR = 50.0  # scales distances
FASTEST = 7.0
# values of the occupancy map
FREE, SHALLOW, HIDDEN, HURTS, CLOSED = 0, 64, 128, 192, 255


def side(agent, per_team):
    """1 for team 0, -1 for team 1, whose places and absolute directions are turned by 180
    degrees."""
    return float32(1.0) if agent < per_team else float32(-1.0)


@phase(lanes="agents", writes="observation")
def observe_body(
    env,
    agent,
    world,
    height,
    per_team,
    kind,
    chart,
    wreck,
    bank_floor,
    bank_ground,
    bank_zone,
    position,
    velocity,
    facing,
    grounded,
    hp,
    legs,
    heat,
    shut,
    stability,
    down,
    suppressed,
    painted,
    observation,
):
    """Body, condition and zone."""
    what, sign = kind[agent], side(agent, per_team)
    ahead_x, ahead_z = facing[env, agent, 0], facing[env, agent, 1]
    size = float32(world)
    at = BODY_AT
    observation[env, agent, at] = sign * (2.0 * position[env, agent, 0] / size - 1.0)
    observation[env, agent, at + 1] = position[env, agent, 1] / float32(height)
    observation[env, agent, at + 2] = sign * (2.0 * position[env, agent, 2] / size - 1.0)
    observation[env, agent, at + 3] = sign * ahead_x
    observation[env, agent, at + 4] = sign * ahead_z
    vx, vz = velocity[env, agent, 0], velocity[env, agent, 2]
    observation[env, agent, at + 5] = (vx * ahead_x + vz * ahead_z) / FASTEST
    observation[env, agent, at + 6] = (vz * ahead_x - vx * ahead_z) / FASTEST
    observation[env, agent, at + 7] = velocity[env, agent, 1] / FASTEST
    observation[env, agent, at + 8] = 1.0 if grounded[env, agent] else 0.0
    floor = (
        DRY
        if wreck[env, agent]
        else in_floor(bank_floor, bank_ground, position, env, agent, chart[env])
    )
    at = CONDITION_AT
    observation[env, agent, at] = hp[env, agent] / MAX_HP[what]
    observation[env, agent, at + 1] = legs[env, agent] / MAX_LEGS[what]
    observation[env, agent, at + 2] = 1.0 if legs[env, agent] <= 0.0 else 0.0
    observation[env, agent, at + 3] = min(heat[env, agent] / HEAT_CAP[what], 4.0)
    observation[env, agent, at + 4] = 1.0 if shut[env, agent] else 0.0
    observation[env, agent, at + 5] = stability[env, agent] / STABILITY
    observation[env, agent, at + 6] = down[env, agent] / DOWN_SECONDS
    observation[env, agent, at + 7] = suppressed[env, agent] / SUPPRESS_SECONDS
    observation[env, agent, at + 8] = painted[env, agent] / PAINT_SECONDS
    observation[env, agent, at + 10] = 1.0 if floor == WET else 0.0
    observation[env, agent, at + 11] = 1.0 if floor == MOLTEN else 0.0
    for i in range(NUM_CLASSES):
        observation[env, agent, KIND_AT + i] = 1.0 if what == i else 0.0
    here = chart[env]
    dx, dz = (
        bank_zone[here, 0] - position[env, agent, 0],
        bank_zone[here, 1] - position[env, agent, 2],
    )
    away = zone_distance(bank_zone, position, env, agent, here)
    at = ZONE_AT
    observation[env, agent, at] = (dx * ahead_x + dz * ahead_z) / max(away, 1e-3)
    observation[env, agent, at + 1] = (dz * ahead_x - dx * ahead_z) / max(away, 1e-3)
    observation[env, agent, at + 2] = away / NEAR
    observation[env, agent, at + 3] = bank_zone[here, 2] / LARGEST_ZONE
    observation[env, agent, at + 4] = 1.0 if away <= bank_zone[here, 2] else 0.0


@phase(lanes="agents", writes="observation")
def observe_match(
    env,
    agent,
    agents,
    per_team,
    step,
    max_steps,
    kind,
    score,
    tick,
    left,
    ecm,
    eccm,
    quality,
    cooldown,
    missile_left,
    missile_target,
    shell_left,
    observation,
):
    """Weapons, electronic warfare, scores and the clock."""
    own, foe = (0, 1) if agent < per_team else (1, 0)
    for gun in range(GUNS):
        weapon = LOADOUT[kind[agent], gun]
        wait = 0.0 if weapon == NO_WEAPON else cooldown[env, agent, gun] / COOLDOWN[weapon]
        observation[env, agent, ARMS_AT + gun] = wait
    observation[env, agent, ARMS_AT + SPECIAL] = cooldown[env, agent, SPECIAL] / SMOKE_COOLDOWN
    observation[env, agent, ARMS_AT + 4] = 1.0 if missile_left[env, agent] > 0.0 else 0.0
    observation[env, agent, ARMS_AT + 5] = 1.0 if shell_left[env, agent] > 0.0 else 0.0
    hunted = 0.0
    for other in range(agents):
        if missile_left[env, other] > 0.0 and missile_target[env, other] == agent:
            hunted = 1.0
    observation[env, agent, CONDITION_AT + 9] = hunted
    observation[env, agent, EWAR_AT] = 1.0 if ecm[env, agent] else 0.0
    observation[env, agent, EWAR_AT + 1] = 1.0 if eccm[env, agent] else 0.0
    observation[env, agent, EWAR_AT + 2] = quality[env, agent] / BEST_QUALITY
    enough = WON_AT * STEP_SECONDS * float32(max_steps[env])
    observation[env, agent, CLOCK_AT] = score[env, own] / enough
    observation[env, agent, CLOCK_AT + 1] = score[env, foe] / enough
    observation[env, agent, CLOCK_AT + 2] = 1.0 - float32(step[env]) / float32(max_steps[env])
    observation[env, agent, CLOCK_AT + 3] = float32(left[env, own]) / float32(per_team)
    observation[env, agent, CLOCK_AT + 4] = float32(left[env, foe]) / float32(per_team)
    observation[env, agent, ZONE_AT + 5] = tick[env, own]
    observation[env, agent, ZONE_AT + 6] = tick[env, foe]


@phase(lanes="agents", writes="observation")
def observe_contacts(
    env,
    agent,
    per_team,
    kind,
    chart,
    bank_zone,
    position,
    velocity,
    facing,
    hp,
    legs,
    heat,
    painted,
    down,
    line,
    contact,
    contact_distance,
    observation,
):
    """The contacts, relative to this mech."""
    ahead_x, ahead_z = facing[env, agent, 0], facing[env, agent, 1]
    for slot in range(CONTACTS):
        at = CONTACTS_AT + slot * CONTACT_SIZE
        other = contact[env, agent, slot]
        if other == NOBODY:
            for i in range(CONTACT_SIZE):
                observation[env, agent, at + i] = 0.0
            continue
        what = kind[other]
        hostile = foes(agent, other, per_team)
        dx = (position[env, other, 0] - position[env, agent, 0]) / NEAR
        dz = (position[env, other, 2] - position[env, agent, 2]) / NEAR
        fx, fz = facing[env, other, 0], facing[env, other, 1]
        vx, vz = velocity[env, other, 0] / FASTEST, velocity[env, other, 2] / FASTEST
        observation[env, agent, at] = 1.0
        observation[env, agent, at + 1] = 1.0 if hostile else 0.0
        observation[env, agent, at + 2] = dx * ahead_x + dz * ahead_z
        observation[env, agent, at + 3] = dz * ahead_x - dx * ahead_z
        observation[env, agent, at + 4] = (position[env, other, 1] - position[env, agent, 1]) / NEAR
        observation[env, agent, at + 5] = contact_distance[env, agent, slot] / NEAR
        observation[env, agent, at + 6] = fx * ahead_x + fz * ahead_z
        observation[env, agent, at + 7] = fz * ahead_x - fx * ahead_z
        observation[env, agent, at + 8] = vx * ahead_x + vz * ahead_z
        observation[env, agent, at + 9] = vz * ahead_x - vx * ahead_z
        observation[env, agent, at + 10] = hp[env, other] / MAX_HP[what]
        observation[env, agent, at + 11] = legs[env, other] / MAX_LEGS[what]
        observation[env, agent, at + 12] = min(heat[env, other] / HEAT_CAP[what], 4.0)
        observation[env, agent, at + 13] = painted[env, other] / PAINT_SECONDS
        observation[env, agent, at + 14] = 1.0 if down[env, other] > 0.0 else 0.0
        observation[env, agent, at + 15] = (
            1.0 if hostile and in_line(line, env, agent, other) else 0.0
        )
        inside = (
            zone_distance(bank_zone, position, env, other, chart[env]) <= bank_zone[chart[env], 2]
        )
        observation[env, agent, at + 16] = 1.0 if inside else 0.0
        for i in range(NUM_CLASSES):
            observation[env, agent, at + CONTACT_KIND + i] = 1.0 if what == i else 0.0


@phase(lanes="agents", writes="observation")
def observe_mates(env, agent, per_team, message, wreck, position, facing, said, observation):
    """Where the pack-mates are and what they said in this step; the wrecked say nothing."""
    ahead_x, ahead_z = facing[env, agent, 0], facing[env, agent, 1]
    seat = agent % per_team
    first = agent - seat + seat // PACK_SIZE * PACK_SIZE  # of the pack
    last = min(first + PACK_SIZE, agent - seat + per_team)
    at = MATES_AT
    for mate in range(first, first + PACK_SIZE):
        if mate == agent:
            continue
        if mate >= last or wreck[env, mate]:
            for i in range(MATE_SIZE):
                observation[env, agent, at + i] = 0.0
        else:
            dx = (position[env, mate, 0] - position[env, agent, 0]) / NEAR
            dz = (position[env, mate, 2] - position[env, agent, 2]) / NEAR
            observation[env, agent, at] = 1.0
            observation[env, agent, at + 1] = dx * ahead_x + dz * ahead_z
            observation[env, agent, at + 2] = dz * ahead_x - dx * ahead_z
            for i in range(message):
                observation[env, agent, at + MATE_MESSAGE + i] = said[env, mate, i]
        at += MATE_SIZE


@phase(lanes="agents", writes="observation")
def observe_map(env, agent, per_team, chart, bank_coarse, observation):
    """The coarse map as the team sees it: turned for team 1."""
    for i in range(COARSE):
        for j in range(COARSE):
            tile_x, tile_z = (i, j) if agent < per_team else (COARSE - 1 - i, COARSE - 1 - j)
            observation[env, agent, MAP_AT + i * COARSE + j] = bank_coarse[
                chart[env], tile_x, tile_z
            ]


@phase(lanes=("agents", "view"), writes="seen_occupancy")
def observe_occupancy(
    env,
    agent,
    row,
    world,
    view,
    kind,
    chart,
    position,
    facing,
    bank_solid,
    bank_opaque,
    bank_floor,
    patch_solid,
    patch_opaque,
    patch_key,
    touched,
    seen_occupancy,
):
    """One row of the map around the mech, the first row farthest ahead: what would stop, hurt, slow
    or hide it there."""
    here = chart[env]
    low = int(position[env, agent, 1] + STEP_UP)  # a lower step can be walked up
    high = max(int(position[env, agent, 1] + TALL[kind[agent]] - 1e-3), low)
    body = layers(min(low, 30), min(high, 30))
    ahead_x, ahead_z = facing[env, agent, 0], facing[env, agent, 1]
    half = float32(view // 2)
    ahead = half - float32(row)
    for across in range(view):
        right = float32(across) - half
        fx = position[env, agent, 0] + ahead * ahead_x - right * ahead_z
        fz = position[env, agent, 2] + ahead * ahead_z + right * ahead_x
        if fx < 0.0 or fz < 0.0 or fx >= float32(world) or fz >= float32(world):
            seen_occupancy[env, agent, row, across] = CLOSED
            continue
        x, z = int(fx), int(fz)
        value = FREE
        if column(bank_solid, patch_solid, patch_key, touched, env, here, x, z) & body != 0:
            value = CLOSED
        elif bank_floor[here, x, z] != DRY:
            value = HURTS if bank_floor[here, x, z] == MOLTEN else SHALLOW
        elif column(bank_opaque, patch_opaque, patch_key, touched, env, here, x, z) & body != 0:
            value = HIDDEN
        seen_occupancy[env, agent, row, across] = value


@phase(
    lanes="agents",
    writes=(
        "mask_primary",
        "mask_secondary",
        "mask_tertiary",
        "mask_special",
        "mask_vent",
        "mask_ewar",
        "mask_target",
        "observation",
    ),
)
def observe_options(
    env,
    agent,
    per_team,
    kind,
    wreck,
    down,
    shut,
    contact,
    line,
    position,
    facing,
    painted,
    cooldown,
    heat,
    mask_primary,
    mask_secondary,
    mask_tertiary,
    mask_special,
    mask_vent,
    mask_ewar,
    mask_target,
    observation,
):
    """Which keys can do anything now, which contacts can be fired at, and whether a missile has a
    target to lock."""
    what = kind[agent]
    active = able(wreck, down, shut, env, agent)
    first, second, third = False, False, False
    mask_target[env, agent, 0] = True
    for slot in range(CONTACTS):
        foe = contact[env, agent, slot]
        hostile = foe != NOBODY and foes(agent, foe, per_team)
        mask_target[env, agent, slot + 1] = active and hostile
        if active and hostile:
            dx, dy, dz = offset(position, kind, env, agent, foe)
            d = math.sqrt(dx * dx + dy * dy + dz * dz)
            toward, clear = bearing(facing, env, agent, dx, dz), in_line(line, env, agent, foe)
            for gun in range(GUNS):
                if reaches(LOADOUT[what, gun], d, toward, clear, painted[env, foe] > 0.0):
                    first = first or gun == PRIMARY
                    second = second or gun == SECONDARY
                    third = third or gun == TERTIARY
    soon = STEP_SECONDS - 1e-3
    mask_primary[env, agent] = first and cooldown[env, agent, PRIMARY] < soon
    mask_secondary[env, agent] = (second and cooldown[env, agent, SECONDARY] < soon) or (
        active and what == SCOUT
    )
    mask_tertiary[env, agent] = third and cooldown[env, agent, TERTIARY] < soon
    mask_special[env, agent] = active and cooldown[env, agent, SPECIAL] < soon
    mask_vent[env, agent] = not wreck[env, agent] and heat[env, agent] > 0.0
    mask_ewar[env, agent] = active and what == SCOUT
    observation[env, agent, LOCK_AT] = (
        1.0 if second and LOADOUT[what, SECONDARY] == MISSILE else 0.0
    )


PHASES = [
    observe_body,
    observe_match,
    observe_contacts,
    observe_mates,
    observe_map,
    observe_occupancy,
    observe_options,
]
