"""Missiles and shells in flight, the heavies' point defence, and what bursts do to voxels.

A mech has at most one missile and one shell in the air: both fly for less time than their weapon
waits.
"""

import math

from ludus.games.mechs.classes import (
    CHEST,
    DAMAGE,
    DT,
    GAUSS,
    HALF,
    HEAVY,
    MISSILE,
    STEP_SECONDS,
    SUBSTEPS,
    TALL,
)
from ludus.games.mechs.movement import GRAVITY
from ludus.games.mechs.voxels import MISS, TOP_LAYER, cast, hit_voxel
from ludus.games.mechs.weapons import NOBODY, able, foes
from ludus.sim import float32, geometry, phase, random

BURSTS = 2  # kinds of burst: of a missile, of a shell
MISSILE_BURST, SHELL_BURST = 0, 1
SPLASH = (3.0, 2.0)  # radius in metres
MISSILE_SPEED = 25.0
# a missile flies this much above its target per metre left, until it dives
LOFT, HIGHEST_LOFT, DIVE = 0.5, 12.0, 6.0
INTO = 0.02  # a burst lies this part of the way inside the voxel that was met
NEAR = 0.7  # a missile bursts this near to the chest it homes on
DEFENCE_RANGE, DEFENCE_CHANCE, DEFENCE_SECONDS = 5.5, 0.6, 1.0

INTERCEPT = 61  # stream of randomness


def set_burst(burst, burst_live, env, agent, which, x, y, z):
    burst[env, agent, which, 0] = x
    burst[env, agent, which, 1] = y
    burst[env, agent, which, 2] = z
    burst_live[env, agent, which] = True


@phase(lanes="agents", writes=("missile", "missile_left", "missile_from", "burst", "burst_live"))
def fly_missile(
    env,
    agent,
    world,
    kind,
    wreck,
    chart,
    position,
    missile_target,
    bank_solid,
    patch_solid,
    patch_key,
    touched,
    missile,
    missile_left,
    missile_from,
    burst,
    burst_live,
):
    """Homes on the target from above and bursts at its chest, in a wall, or when its time is
    over."""
    burst_live[env, agent, MISSILE_BURST] = False
    foe = missile_target[env, agent]
    if missile_left[env, agent] <= 0.0 or foe == NOBODY:
        missile_left[env, agent] = 0.0
        return
    x, y, z = missile[env, agent, 0], missile[env, agent, 1], missile[env, agent, 2]
    missile_from[env, agent, 0] = x
    missile_from[env, agent, 1] = y
    missile_from[env, agent, 2] = z
    missile_left[env, agent] = max(missile_left[env, agent] - STEP_SECONDS, 0.0)
    over = missile_left[env, agent] <= 0.0 or wreck[env, foe]
    to_x, to_z = position[env, foe, 0], position[env, foe, 2]
    to_y = position[env, foe, 1] + CHEST * TALL[kind[foe]]
    reach = MISSILE_SPEED * DT
    for _ in range(SUBSTEPS):
        dx, dz = to_x - x, to_z - z
        flat = math.sqrt(dx * dx + dz * dz)
        dy = to_y + (min(LOFT * flat, HIGHEST_LOFT) if flat > DIVE else float32(0.0)) - y
        d = math.sqrt(dx * dx + dy * dy + dz * dz)
        if d <= reach + NEAR and flat <= DIVE:
            x, y, z, over = to_x, to_y, to_z, True
        if over:
            break
        new_x, new_y, new_z = x + dx / d * reach, y + dy / d * reach, z + dz / d * reach
        wall = cast(
            bank_solid,
            patch_solid,
            patch_key,
            touched,
            env,
            chart[env],
            world,
            x,
            y,
            z,
            new_x,
            new_y,
            new_z,
        )
        if wall < MISS:
            wall, over = min(wall + INTO, 1.0), True
            new_x, new_y, new_z = (
                x + wall * (new_x - x),
                y + wall * (new_y - y),
                z + wall * (new_z - z),
            )
        x, y, z = new_x, new_y, new_z
        if over:
            break
    missile[env, agent, 0] = x
    missile[env, agent, 1] = y
    missile[env, agent, 2] = z
    if over:
        missile_left[env, agent] = 0.0
        set_burst(burst, burst_live, env, agent, MISSILE_BURST, x, y, z)


def body_met(position, kind, wreck, env, agent, agents, x, y, z, dx, dy, dz, length):
    """How far along a path of this length and unit direction the first other mech is met, or
    FAR."""
    nearest = float32(geometry.FAR)
    for other in range(agents):
        if other == agent or wreck[env, other]:
            continue
        half, tall = HALF[kind[other]], TALL[kind[other]]
        ox, oy, oz = position[env, other, 0], position[env, other, 1], position[env, other, 2]
        d = geometry.box_distance(
            x, y, z, dx, dy, dz, ox - half, oy, oz - half, ox + half, oy + tall, oz + half
        )
        if d <= length:
            nearest = min(nearest, d)
    return nearest


@phase(lanes="agents", writes=("shell", "shell_left", "burst", "burst_live"))
def fly_shell(
    env,
    agent,
    agents,
    world,
    kind,
    wreck,
    chart,
    position,
    bank_solid,
    patch_solid,
    patch_key,
    touched,
    shell,
    shell_left,
    burst,
    burst_live,
):
    """Flies on a parabola and bursts at the first mech or voxel it meets; at the end of its range
    it is gone."""
    burst_live[env, agent, SHELL_BURST] = False
    if shell_left[env, agent] <= 0.0:
        return
    shell_left[env, agent] = max(shell_left[env, agent] - STEP_SECONDS, 0.0)
    for _ in range(SUBSTEPS):
        x, y, z = shell[env, agent, 0], shell[env, agent, 1], shell[env, agent, 2]
        shell[env, agent, 4] -= GRAVITY * DT
        move_x, move_y, move_z = (
            shell[env, agent, 3] * DT,
            shell[env, agent, 4] * DT,
            shell[env, agent, 5] * DT,
        )
        length = max(math.sqrt(move_x * move_x + move_y * move_y + move_z * move_z), 1e-3)
        body = body_met(
            position,
            kind,
            wreck,
            env,
            agent,
            agents,
            x,
            y,
            z,
            move_x / length,
            move_y / length,
            move_z / length,
            length,
        )
        wall = cast(
            bank_solid,
            patch_solid,
            patch_key,
            touched,
            env,
            chart[env],
            world,
            x,
            y,
            z,
            x + move_x,
            y + move_y,
            z + move_z,
        )
        part = min(body / length, wall + INTO)
        if part <= 1.0 + INTO:
            set_burst(
                burst,
                burst_live,
                env,
                agent,
                SHELL_BURST,
                x + part * move_x,
                y + part * move_y,
                z + part * move_z,
            )
            shell_left[env, agent] = 0.0
            return
        x, y, z = x + move_x, y + move_y, z + move_z
        if x < 0.0 or z < 0.0 or x >= float32(world) or z >= float32(world) or y < 0.0:
            shell_left[env, agent] = 0.0
            return
        shell[env, agent, 0] = x
        shell[env, agent, 1] = y
        shell[env, agent, 2] = z


def near_path(missile_from, missile, env, owner, x, y, z):
    """How near a missile's way in this step came to a point."""
    ax, ay, az = (
        missile_from[env, owner, 0],
        missile_from[env, owner, 1],
        missile_from[env, owner, 2],
    )
    dx, dy, dz = (
        missile[env, owner, 0] - ax,
        missile[env, owner, 1] - ay,
        missile[env, owner, 2] - az,
    )
    t = ((x - ax) * dx + (y - ay) * dy + (z - az) * dz) / max(dx * dx + dy * dy + dz * dz, 1e-6)
    t = geometry.clamp(t, 0.0, 1.0)
    dx, dy, dz = x - ax - t * dx, y - ay - t * dy, z - az - t * dz
    return math.sqrt(dx * dx + dy * dy + dz * dz)


@phase(lanes="agents", writes=("defence_wait", "intercepts"))
def defend(
    env,
    agent,
    agents,
    per_team,
    key,
    kind,
    wreck,
    down,
    shut,
    position,
    missile,
    missile_from,
    missile_left,
    burst_live,
    defence_wait,
    intercepts,
):
    """A heavy tries, once a second, to shoot down the nearest hostile missile whose way comes near
    it."""
    intercepts[env, agent] = NOBODY
    defence_wait[env, agent] = max(defence_wait[env, agent] - STEP_SECONDS, 0.0)
    if (
        kind[agent] != HEAVY
        or defence_wait[env, agent] > 0.0
        or not able(wreck, down, shut, env, agent)
    ):
        return
    y = position[env, agent, 1] + CHEST * TALL[HEAVY]
    nearest, chosen = float32(DEFENCE_RANGE), NOBODY
    for owner in range(agents):
        flying = missile_left[env, owner] > 0.0 or burst_live[env, owner, MISSILE_BURST]
        if flying and foes(agent, owner, per_team):
            d = near_path(
                missile_from,
                missile,
                env,
                owner,
                position[env, agent, 0],
                y,
                position[env, agent, 2],
            )
            if d <= nearest:
                nearest, chosen = d, owner
    if chosen != NOBODY:
        defence_wait[env, agent] = DEFENCE_SECONDS
        if random.uniform(key[env], INTERCEPT, agent) < DEFENCE_CHANCE:
            intercepts[env, agent] = chosen


@phase(lanes="agents", writes=("missile_left", "burst_live"))
def lose_missile(env, agent, agents, intercepts, missile_left, burst_live):
    """A missile that was shot down neither flies on nor bursts."""
    for other in range(agents):
        if intercepts[env, other] == agent:
            missile_left[env, agent] = 0.0
            burst_live[env, agent, MISSILE_BURST] = False


@phase(
    writes=(
        "patch_key",
        "patch_solid",
        "patch_opaque",
        "patch_debris",
        "patch_wear",
        "touched",
        "patches",
    )
)
def crumble(
    env,
    agents,
    world,
    chart,
    burst,
    burst_live,
    bank_solid,
    bank_opaque,
    bank_breakable,
    bank_strength,
    patch_key,
    patch_solid,
    patch_opaque,
    patch_debris,
    patch_wear,
    touched,
    patches,
):
    """Bursts damage the voxels around them: one at the middle in full, its neighbours by half."""
    for agent in range(agents):
        for which in range(BURSTS):
            if not burst_live[env, agent, which]:
                continue
            damage = DAMAGE[MISSILE] if which == MISSILE_BURST else DAMAGE[GAUSS]
            mid_x, mid_z = int(burst[env, agent, which, 0]), int(burst[env, agent, which, 2])
            mid_y = int(burst[env, agent, which, 1])
            for x in range(max(mid_x - 1, 0), min(mid_x + 2, world)):
                for z in range(max(mid_z - 1, 0), min(mid_z + 2, world)):
                    for y in range(max(mid_y - 1, 0), min(mid_y + 2, TOP_LAYER + 1)):
                        away = abs(x - mid_x) + abs(y - mid_y) + abs(z - mid_z)
                        if away <= 1:
                            hit_voxel(
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
                                chart[env],
                                x,
                                y,
                                z,
                                damage if away == 0 else 0.5 * damage,
                            )


@phase(lanes="agents", writes=("defence_wait", "intercepts", "burst", "burst_live", "missile_from"))
def clear_air(env, agent, defence_wait, intercepts, burst, burst_live, missile_from):
    defence_wait[env, agent] = 0.0
    intercepts[env, agent] = NOBODY
    for i in range(3):
        missile_from[env, agent, i] = 0.0
    for which in range(BURSTS):
        burst_live[env, agent, which] = False
        for i in range(3):
            burst[env, agent, which, i] = 0.0
