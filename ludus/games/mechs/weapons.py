"""Choosing a target and firing at it. Everyone fires from where it stood when it last observed,
before anyone moves.

Weapons that hit at once (laser, flamer, autocannon, painter) write what they do into the shooter's
own row `hit`, for the target to gather; missiles and shells are launched and fly in `projectiles`.
"""

import math

from ludus.games.mechs.classes import (
    ARC_COS,
    AUTOCANNON,
    CHEST,
    COOLDOWN,
    DAMAGE,
    GAUSS,
    GUNS,
    HEAT,
    KEYS,
    LOADOUT,
    LOW,
    MISSILE,
    MUZZLE,
    NO_WEAPON,
    PAINT_SECONDS,
    PAINTED_RANGE,
    PAINTER,
    RANGE,
    REAR_BONUS,
    REAR_COS,
    SCORCH,
    SCOUT,
    SECONDARY,
    SHAKE,
    SMOKE_COOLDOWN,
    SMOKE_SECONDS,
    SMOKE_THROW,
    SPECIAL,
    STEP_SECONDS,
    SUPPRESS_SECONDS,
    TALL,
)
from ludus.games.mechs.movement import GRAVITY
from ludus.sim import float32, geometry, phase

NOBODY = -1
HIT_DAMAGE, HIT_SHAKE, HIT_SCORCH, HIT_SUPPRESS, HIT_PAINT, HIT_LOW = range(6)
HIT = 6
MISSILE_SECONDS = 4.0
SHELL_SPEED = 40.0


def foes(agent, other, per_team):
    return (agent < per_team) != (other < per_team)


def able(wreck, down, shut, env, agent):
    """Can it act: neither destroyed, nor fallen, nor shut down?"""
    return not wreck[env, agent] and down[env, agent] <= 0.0 and not shut[env, agent]


def in_line(line, env, a, b):
    return line[env, min(a, b), max(a, b)]


def offset(position, kind, env, a, b):
    """From the muzzle of a to the chest of b."""
    dx = position[env, b, 0] - position[env, a, 0]
    dz = position[env, b, 2] - position[env, a, 2]
    dy = position[env, b, 1] + CHEST * TALL[kind[b]] - position[env, a, 1] - MUZZLE * TALL[kind[a]]
    return dx, dy, dz


def reaches(weapon, distance, bearing_cos, clear, is_painted):
    """Does a weapon reach a target at this distance and bearing? A missile needs no line to what is
    painted."""
    if weapon == NO_WEAPON or bearing_cos < ARC_COS[weapon]:
        return False
    if weapon == MISSILE and is_painted and distance <= PAINTED_RANGE:
        return True
    return clear and distance <= RANGE[weapon]


def bearing(facing, env, agent, dx, dz):
    """The cosine of the angle between where a mech faces and a direction."""
    flat = math.sqrt(dx * dx + dz * dz)
    if flat < 1e-3:
        return float32(1.0)
    return (facing[env, agent, 0] * dx + facing[env, agent, 1] * dz) / flat


@phase(lanes="agents", writes=("target", "said", "ecm", "eccm"))
def aim(
    env,
    agent,
    per_team,
    message,
    kind,
    wreck,
    down,
    shut,
    contact,
    action_target,
    action_message,
    action_ewar,
    action_secondary,
    target,
    said,
    ecm,
    eccm,
):
    """The target is the foe in the chosen contact slot (0: none). What is said now is heard in the
    next observation."""
    target[env, agent] = NOBODY
    active = able(wreck, down, shut, env, agent)
    slot = action_target[env, agent] - 1
    if (
        active
        and slot >= 0
        and contact[env, agent, slot] != NOBODY
        and foes(agent, contact[env, agent, slot], per_team)
    ):
        target[env, agent] = contact[env, agent, slot]
    for i in range(message):
        said[env, agent, i] = (
            0.0 if wreck[env, agent] else geometry.clamp(action_message[env, agent, i], -1.0, 1.0)
        )
    scouting = active and kind[agent] == SCOUT
    ecm[env, agent] = scouting and action_ewar[env, agent] != 0
    eccm[env, agent] = scouting and action_secondary[env, agent] != 0 and not ecm[env, agent]


def shots(cooldown, env, agent, key_number, every, fires):
    """Counts a key's shots in this step, fired as soon as it is ready, and lets its waiting time
    pass."""
    wait, count = max(cooldown[env, agent, key_number], 0.0), 0
    while fires and wait < STEP_SECONDS - 1e-4:
        wait += every
        count += 1
    cooldown[env, agent, key_number] = max(wait - STEP_SECONDS, 0.0)
    return count


def launch_missile(missile, missile_left, missile_target, position, kind, env, agent, foe):
    missile[env, agent, 0] = position[env, agent, 0]
    missile[env, agent, 1] = position[env, agent, 1] + MUZZLE * TALL[kind[agent]]
    missile[env, agent, 2] = position[env, agent, 2]
    missile_left[env, agent] = MISSILE_SECONDS
    missile_target[env, agent] = foe


def launch_shell(shell, shell_left, position, kind, env, agent, dx, dy, dz):
    """A shell flies ballistically: it is aimed high by what it will drop."""
    length = max(math.sqrt(dx * dx + dy * dy + dz * dz), 1e-3)
    seconds = length / SHELL_SPEED
    shell[env, agent, 0] = position[env, agent, 0]
    shell[env, agent, 1] = position[env, agent, 1] + MUZZLE * TALL[kind[agent]]
    shell[env, agent, 2] = position[env, agent, 2]
    shell[env, agent, 3] = dx / seconds
    shell[env, agent, 4] = dy / seconds + 0.5 * GRAVITY * seconds
    shell[env, agent, 5] = dz / seconds
    shell_left[env, agent] = RANGE[GAUSS] / SHELL_SPEED


@phase(
    lanes="agents",
    writes=(
        "cooldown",
        "heat",
        "hit",
        "missile",
        "missile_left",
        "missile_target",
        "shell",
        "shell_left",
    ),
)
def fire(
    env,
    agent,
    kind,
    wreck,
    down,
    shut,
    target,
    line,
    position,
    facing,
    painted,
    action_primary,
    action_secondary,
    action_tertiary,
    action_vent,
    cooldown,
    heat,
    hit,
    missile,
    missile_left,
    missile_target,
    shell,
    shell_left,
):
    """Every key that is down fires at the target if that is in range, arc and line. A venting mech
    does not fire."""
    for i in range(HIT):
        hit[env, agent, i] = 0.0
    what, foe = kind[agent], target[env, agent]
    if wreck[env, agent]:
        return
    ready = able(wreck, down, shut, env, agent) and foe != NOBODY and action_vent[env, agent] == 0
    dx, dy, dz, distance, toward = 0.0, 0.0, 0.0, 0.0, 0.0
    if ready:
        dx, dy, dz = offset(position, kind, env, agent, foe)
        distance = math.sqrt(dx * dx + dy * dy + dz * dz)
        toward = bearing(facing, env, agent, dx, dz)
    for gun in range(GUNS):
        weapon = LOADOUT[what, gun]
        if weapon == NO_WEAPON:
            continue
        pressed = action_primary[env, agent] if gun == 0 else action_tertiary[env, agent]
        if gun == SECONDARY:
            pressed = action_secondary[env, agent]
        fires = False
        if ready and pressed != 0:
            fires = reaches(
                weapon, distance, toward, in_line(line, env, agent, foe), painted[env, foe] > 0.0
            )
        count = shots(cooldown, env, agent, gun, COOLDOWN[weapon], fires)
        if count == 0:
            continue
        heat[env, agent] += HEAT[weapon] * float32(count)
        if weapon == MISSILE:
            launch_missile(missile, missile_left, missile_target, position, kind, env, agent, foe)
        elif weapon == GAUSS:
            launch_shell(shell, shell_left, position, kind, env, agent, dx, dy, dz)
        else:
            hit[env, agent, HIT_DAMAGE] += DAMAGE[weapon] * float32(count)
            hit[env, agent, HIT_SHAKE] += SHAKE[weapon] * float32(count)
            hit[env, agent, HIT_SCORCH] += SCORCH[weapon] * float32(count)
            if weapon == AUTOCANNON:
                hit[env, agent, HIT_SUPPRESS] = SUPPRESS_SECONDS
            if weapon == PAINTER:
                hit[env, agent, HIT_PAINT] = PAINT_SECONDS
    if ready:
        if bearing(facing, env, foe, -dx, -dz) < REAR_COS:
            hit[env, agent, HIT_DAMAGE] *= REAR_BONUS
        muzzle = position[env, agent, 1] + MUZZLE * TALL[what]
        hit[env, agent, HIT_LOW] = (
            1.0 if muzzle < position[env, foe, 1] + LOW * TALL[kind[foe]] else 0.0
        )


@phase(lanes="agents", writes=("cooldown", "smoke", "smoke_left"))
def throw_smoke(
    env,
    agent,
    world,
    wreck,
    down,
    shut,
    action_special,
    action_vent,
    position,
    facing,
    cooldown,
    smoke,
    smoke_left,
):
    """A cloud ahead of the thrower; one of each mech at a time."""
    smoke_left[env, agent] = max(smoke_left[env, agent] - STEP_SECONDS, 0.0)
    fires = (
        able(wreck, down, shut, env, agent)
        and action_special[env, agent] != 0
        and action_vent[env, agent] == 0
    )
    if shots(cooldown, env, agent, SPECIAL, SMOKE_COOLDOWN, fires) > 0:
        smoke_left[env, agent] = SMOKE_SECONDS
        smoke[env, agent, 0] = geometry.clamp(
            position[env, agent, 0] + SMOKE_THROW * facing[env, agent, 0], 0.0, float32(world)
        )
        smoke[env, agent, 1] = position[env, agent, 1] + 1.0
        smoke[env, agent, 2] = geometry.clamp(
            position[env, agent, 2] + SMOKE_THROW * facing[env, agent, 1], 0.0, float32(world)
        )


@phase(
    lanes="agents",
    writes=(
        "target",
        "said",
        "ecm",
        "eccm",
        "cooldown",
        "hit",
        "missile_left",
        "missile_target",
        "shell_left",
        "smoke_left",
        "smoke",
        "missile",
        "shell",
    ),
)
def disarm(
    env,
    agent,
    message,
    target,
    said,
    ecm,
    eccm,
    cooldown,
    hit,
    missile_left,
    missile_target,
    shell_left,
    smoke_left,
    smoke,
    missile,
    shell,
):
    """A new episode: nothing is in the air, everything is ready."""
    target[env, agent] = NOBODY
    for i in range(message):
        said[env, agent, i] = 0.0
    ecm[env, agent] = False
    eccm[env, agent] = False
    for i in range(KEYS):
        cooldown[env, agent, i] = 0.0
    for i in range(HIT):
        hit[env, agent, i] = 0.0
    missile_left[env, agent] = 0.0
    missile_target[env, agent] = NOBODY
    shell_left[env, agent] = 0.0
    smoke_left[env, agent] = 0.0
    for i in range(3):
        smoke[env, agent, i] = 0.0
        missile[env, agent, i] = 0.0
    for i in range(6):
        shell[env, agent, i] = 0.0
