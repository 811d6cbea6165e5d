"""Scripted players. They know the map, the zone and their own contacts, nothing else of the others.

Frozen: trained agents are measured against them.
"""

import math

from ludus.games.mechs.classes import (
    GUNS,
    HEAT,
    HEAT_CAP,
    HEAVY,
    LOADOUT,
    NO_WEAPON,
    SCOUT,
    SPECIAL,
    STEP_SECONDS,
    TURN,
)
from ludus.games.mechs.maps import UNREACHED
from ludus.games.mechs.match import zone_distance
from ludus.games.mechs.sensing import CONTACTS
from ludus.games.mechs.voxels import MOLTEN
from ludus.games.mechs.weapons import NOBODY, foes, in_line
from ludus.sim import float32, geometry, phase

DIRECTIONS = 16
LOOK_AHEAD = 1.6  # metres
SETTLED = 0.5  # of the zone's radius: near enough to its middle
STAND_OFF, HEAVY_STAND_OFF = 5.0, 9.0  # metres a hunter keeps from its prey
SLOW = 1.0  # metres a second: a mech that wants to move and is slower is stuck
COOL, TOO_HOT = 0.5, 0.8  # of the heat cap: where a bot vents without and with foes about

# Where the actions are in the packed arrays: in the order of the declaration. The guns come first
# among the keys, and among what may be masked.
FORWARD, STRAFE, VERTICAL, TURNING, MESSAGE = range(5)
VENT_KEY, EWAR_KEY = 4, 5
TARGET = 0
WRITES = ("continuous", "binary", "choices")


def choose_target(contact, line, env, agent, per_team):
    """The slot of the nearest foe in line, else of the nearest foe, else -1."""
    known = -1
    for slot in range(CONTACTS):
        other = contact[env, agent, slot]
        if other == NOBODY or not foes(agent, other, per_team):
            break  # foes come first
        if in_line(line, env, agent, other):
            return slot
        if known < 0:
            known = slot
    return known


def walkable(bank_stand, bank_floor, chart, world, x, z, stand):
    """Can the widest mech stand here, coming from this height?"""
    if x < 0.0 or z < 0.0 or x >= float32(world) or z >= float32(world):
        return False
    i, j = int(x), int(z)
    return abs(int(bank_stand[chart, i, j]) - stand) <= 1 and bank_floor[chart, i, j] != MOLTEN


def steer(bank_stand, bank_floor, position, env, agent, chart, world, per_team, want_x, want_z):
    """The open direction nearest to the wanted one."""
    x, z = position[env, agent, 0], position[env, agent, 2]
    stand = int(bank_stand[chart, int(x), int(z)])
    best, best_x, best_z = float32(-1e9), want_x, want_z
    for k in range(DIRECTIONS + 1):
        dx, dz = want_x, want_z
        if k > 0:
            angle = (
                (float32(k) / float32(DIRECTIONS) + (0.0 if agent < per_team else 0.5))
                * 2.0
                * math.pi
            )
            dx, dz = math.cos(angle), math.sin(angle)
        value = dx * want_x + dz * want_z
        for reach in range(1, 3):
            far = LOOK_AHEAD * float32(reach)
            if not walkable(
                bank_stand, bank_floor, chart, world, x + far * dx, z + far * dz, stand
            ):
                value -= 2.0 / float32(reach)
        if value > best:
            best, best_x, best_z = value, dx, dz
    return best_x, best_z


def downhill(bank_distance, position, env, agent, chart, world, per_team):
    """The direction in which the way to the zone gets shortest."""
    x, z = position[env, agent, 0], position[env, agent, 2]
    best, best_x, best_z = float32(1e9), 0.0, 0.0
    for k in range(DIRECTIONS):
        angle = (
            (float32(k) / float32(DIRECTIONS) + (0.0 if agent < per_team else 0.5)) * 2.0 * math.pi
        )
        dx, dz = math.cos(angle), math.sin(angle)
        value = float32(0.0)
        for reach in range(1, 3):
            at_x, at_z = x + LOOK_AHEAD * float32(reach) * dx, z + LOOK_AHEAD * float32(reach) * dz
            if at_x < 0.0 or at_z < 0.0 or at_x >= float32(world) or at_z >= float32(world):
                value += float32(UNREACHED)
            else:
                value += float32(bank_distance[chart, int(at_x), int(at_z)])
        if value < best:
            best, best_x, best_z = value, dx, dz
    return best_x, best_z


def walk(yaw, velocity, kind, env, agent, continuous, go_x, go_z, view_x, view_z):
    """Moves along (go_x, go_z), of length at most 1, while turning to look along (view_x, view_z).
    Uses jets where stuck."""
    most = TURN[kind[agent]] * STEP_SECONDS
    turn = geometry.clamp(
        geometry.wrap_angle(math.atan2(view_z, view_x) - yaw[env, agent]) / most, -1.0, 1.0
    )
    angle = yaw[env, agent] + turn * most
    ahead_x, ahead_z = math.cos(angle), math.sin(angle)
    continuous[env, agent, TURNING] = turn
    continuous[env, agent, FORWARD] = geometry.clamp(go_x * ahead_x + go_z * ahead_z, -1.0, 1.0)
    continuous[env, agent, STRAFE] = geometry.clamp(go_z * ahead_x - go_x * ahead_z, -1.0, 1.0)
    stuck = abs(velocity[env, agent, 0]) + abs(velocity[env, agent, 2]) < SLOW and (
        go_x != 0.0 or go_z != 0.0
    )
    continuous[env, agent, VERTICAL] = 1.0 if stuck else 0.0


def affordable(heat, kind, env, agent, gun):
    weapon = LOADOUT[kind[agent], gun]
    return weapon != NO_WEAPON and heat[env, agent] + HEAT[weapon] < HEAT_CAP[kind[agent]]


def fight(env, agent, message, kind, heat, action_mask, continuous, binary, choices, slot):
    """Fires what can fire at the contact in a slot without overheating. Scouts jam."""
    choices[env, agent, TARGET] = slot + 1
    vent = heat[env, agent] > (COOL if slot < 0 else TOO_HOT) * HEAT_CAP[kind[agent]]
    for gun in range(GUNS):
        ready = action_mask[env, agent, gun] and affordable(heat, kind, env, agent, gun)
        binary[env, agent, gun] = 1 if ready else 0
    binary[env, agent, SPECIAL] = 0
    binary[env, agent, VENT_KEY] = 1 if vent else 0
    binary[env, agent, EWAR_KEY] = 1 if kind[agent] == SCOUT and not vent else 0
    for i in range(message):
        continuous[env, agent, MESSAGE + i] = 0.0


def towards(position, env, agent, x, z):
    """The unit direction to a place, and how far it is."""
    dx, dz = x - position[env, agent, 0], z - position[env, agent, 2]
    d = max(math.sqrt(dx * dx + dz * dz), 1e-3)
    return dx / d, dz / d, d


def look_at(position, contact, env, agent, slot, view_x, view_z):
    """Along the given direction, or at the contact in a slot."""
    if slot >= 0:
        other = contact[env, agent, slot]
        view_x, view_z, _ = towards(
            position, env, agent, position[env, other, 0], position[env, other, 2]
        )
    return view_x, view_z


@phase(lanes="agents", writes=WRITES)
def objective(
    env,
    agent,
    world,
    per_team,
    message,
    kind,
    chart,
    position,
    velocity,
    yaw,
    heat,
    contact,
    line,
    bank_zone,
    bank_distance,
    action_mask,
    continuous,
    binary,
    choices,
):
    """Walks to the middle of the zone by the shortest way and shoots at what it knows of."""
    slot = choose_target(contact, line, env, agent, per_team)
    here = chart[env]
    go_x, go_z = downhill(bank_distance, position, env, agent, here, world, per_team)
    view_x, view_z = look_at(position, contact, env, agent, slot, go_x, go_z)
    if zone_distance(bank_zone, position, env, agent, here) < SETTLED * bank_zone[here, 2]:
        go_x, go_z = float32(0.0), float32(0.0)
    walk(yaw, velocity, kind, env, agent, continuous, go_x, go_z, view_x, view_z)
    fight(env, agent, message, kind, heat, action_mask, continuous, binary, choices, slot)


@phase(lanes="agents", writes=WRITES)
def hunter(
    env,
    agent,
    world,
    per_team,
    message,
    kind,
    chart,
    position,
    velocity,
    yaw,
    heat,
    contact,
    line,
    bank_zone,
    bank_distance,
    bank_stand,
    bank_floor,
    action_mask,
    continuous,
    binary,
    choices,
):
    """Runs at the nearest foe it knows of; without one it goes to the zone and looks towards where
    the others start."""
    slot = choose_target(contact, line, env, agent, per_team)
    here = chart[env]
    go_x, go_z, view_x, view_z = float32(0.0), float32(0.0), float32(1.0), float32(0.0)
    if slot >= 0:
        other = contact[env, agent, slot]
        view_x, view_z, d = towards(
            position, env, agent, position[env, other, 0], position[env, other, 2]
        )
        if d > (HEAVY_STAND_OFF if kind[agent] == HEAVY else STAND_OFF) or not in_line(
            line, env, agent, other
        ):
            go_x, go_z = steer(
                bank_stand, bank_floor, position, env, agent, here, world, per_team, view_x, view_z
            )
    else:
        go_x, go_z = downhill(bank_distance, position, env, agent, here, world, per_team)
        view_x, view_z = go_x, go_z
        if zone_distance(bank_zone, position, env, agent, here) < SETTLED * bank_zone[here, 2]:
            corner = float32(world) if agent < per_team else float32(0.0)
            view_x, view_z, _ = towards(position, env, agent, corner, corner)
            go_x, go_z = float32(0.0), float32(0.0)
    walk(yaw, velocity, kind, env, agent, continuous, go_x, go_z, view_x, view_z)
    fight(env, agent, message, kind, heat, action_mask, continuous, binary, choices, slot)


@phase(lanes="agents", writes=WRITES)
def defender(
    env,
    agent,
    world,
    per_team,
    message,
    kind,
    chart,
    position,
    velocity,
    yaw,
    heat,
    contact,
    line,
    bank_zone,
    bank_distance,
    action_mask,
    continuous,
    binary,
    choices,
):
    """Stops as soon as it is inside the zone, on its own side, and shoots at what comes."""
    slot = choose_target(contact, line, env, agent, per_team)
    here = chart[env]
    corner = float32(world) if agent < per_team else float32(0.0)
    view_x, view_z, _ = towards(position, env, agent, corner, corner)
    go_x, go_z = float32(0.0), float32(0.0)
    if zone_distance(bank_zone, position, env, agent, here) > bank_zone[here, 2] - 0.5:
        go_x, go_z = downhill(bank_distance, position, env, agent, here, world, per_team)
        view_x, view_z = go_x, go_z
    view_x, view_z = look_at(position, contact, env, agent, slot, view_x, view_z)
    walk(yaw, velocity, kind, env, agent, continuous, go_x, go_z, view_x, view_z)
    fight(env, agent, message, kind, heat, action_mask, continuous, binary, choices, slot)
