"""Who knows of whom: lines of sight through voxels and smoke, radar under jamming, paint and heat.

`line[a, b]` holds for a of team 0 and b of team 1: lines are the same both ways, so each is cast
once per step.
"""

import math

from ludus.games.mechs.classes import EYE, HEAT_CAP, SMOKE_RADIUS, TALL
from ludus.games.mechs.voxels import MISS, cast
from ludus.games.mechs.weapons import NOBODY, foes, in_line
from ludus.sim import float32, geometry, phase

CONTACTS = 5
RADAR = 14.0  # metres, times the quality of the radar
# a mech hotter than this part of its cap is noticed from this far, walls or not
HOT, HEAT_SIGHT = 0.7, 20.0
EWAR_RANGE = 50.0
JAM, COUNTER = 0.85, 0.65
WORST_QUALITY, BEST_QUALITY = 0.25, 1.5


def in_smoke(smoke, smoke_left, env, agents, ax, ay, az, bx, by, bz):
    """Does the segment from a to b pass through a cloud?"""
    dx, dy, dz = bx - ax, by - ay, bz - az
    length = max(dx * dx + dy * dy + dz * dz, 1e-6)
    for thrower in range(agents):
        if smoke_left[env, thrower] <= 0.0:
            continue
        sx, sy, sz = (
            smoke[env, thrower, 0] - ax,
            smoke[env, thrower, 1] - ay,
            smoke[env, thrower, 2] - az,
        )
        t = geometry.clamp((sx * dx + sy * dy + sz * dz) / length, 0.0, 1.0)
        sx, sy, sz = sx - t * dx, sy - t * dy, sz - t * dz
        if sx * sx + sy * sy + sz * sz < SMOKE_RADIUS * SMOKE_RADIUS:
            return True
    return False


@phase(lanes=("agents", "agents"), writes="line")
def look(
    env,
    agent,
    other,
    agents,
    per_team,
    world,
    sight_range,
    kind,
    wreck,
    chart,
    position,
    smoke,
    smoke_left,
    bank_opaque,
    patch_opaque,
    patch_key,
    touched,
    line,
):
    """Is the line between the eyes of two foes free?"""
    if agent >= per_team or other < per_team:
        return
    line[env, agent, other] = False
    if wreck[env, agent] or wreck[env, other]:
        return
    ax, az, bx, bz = (
        position[env, agent, 0],
        position[env, agent, 2],
        position[env, other, 0],
        position[env, other, 2],
    )
    if (ax - bx) * (ax - bx) + (az - bz) * (az - bz) > sight_range[env] * sight_range[env]:
        return
    ay = position[env, agent, 1] + EYE * TALL[kind[agent]]
    by = position[env, other, 1] + EYE * TALL[kind[other]]
    if (
        cast(
            bank_opaque,
            patch_opaque,
            patch_key,
            touched,
            env,
            chart[env],
            world,
            ax,
            ay,
            az,
            bx,
            by,
            bz,
        )
        < MISS
    ):
        return
    line[env, agent, other] = not in_smoke(smoke, smoke_left, env, agents, ax, ay, az, bx, by, bz)


def distance(position, env, a, b):
    dx = position[env, a, 0] - position[env, b, 0]
    dy = position[env, a, 1] - position[env, b, 1]
    dz = position[env, a, 2] - position[env, b, 2]
    return math.sqrt(dx * dx + dy * dy + dz * dz)


def radar_quality(position, ecm, eccm, wreck, env, agent, agents, per_team):
    """What is left of the radar under the strongest hostile jammer, with the strongest friendly
    counter."""
    jam, counter = float32(0.0), float32(0.0)
    for other in range(agents):
        if (ecm[env, other] or eccm[env, other]) and not wreck[env, other]:
            strength = max(1.0 - distance(position, env, agent, other) / EWAR_RANGE, 0.0)
            if ecm[env, other] and foes(agent, other, per_team):
                jam = max(jam, strength)
            elif eccm[env, other] and not foes(agent, other, per_team):
                counter = max(counter, strength)
    return geometry.clamp(1.0 - JAM * jam + COUNTER * counter, WORST_QUALITY, BEST_QUALITY)


def insert(contact, contact_distance, env, agent, first, count, other, d):
    """Puts a mech among the contacts from slot `first` on, the nearest first. Returns how many
    slots are taken."""
    at = min(count, CONTACTS - 1)
    if count == CONTACTS and d >= contact_distance[env, agent, at]:
        return count
    while at > first and contact_distance[env, agent, at - 1] > d:
        contact_distance[env, agent, at] = contact_distance[env, agent, at - 1]
        contact[env, agent, at] = contact[env, agent, at - 1]
        at -= 1
    contact_distance[env, agent, at] = d
    contact[env, agent, at] = other
    return min(count + 1, CONTACTS)


@phase(lanes="agents", writes=("quality", "contact", "contact_distance"))
def spot(
    env,
    agent,
    agents,
    per_team,
    kind,
    wreck,
    position,
    line,
    painted,
    heat,
    ecm,
    eccm,
    quality,
    contact,
    contact_distance,
):
    """The contacts: the nearest foes it knows of, then the nearest friends in the slots left."""
    for slot in range(CONTACTS):
        contact[env, agent, slot] = NOBODY
        contact_distance[env, agent, slot] = 0.0
    if wreck[env, agent]:
        return
    quality[env, agent] = radar_quality(position, ecm, eccm, wreck, env, agent, agents, per_team)
    foe_first, friend_first = (per_team, 0) if agent < per_team else (0, per_team)
    count = 0
    for other in range(foe_first, foe_first + per_team):
        if wreck[env, other]:
            continue
        d = distance(position, env, agent, other)
        known = (
            in_line(line, env, agent, other)
            or d <= RADAR * quality[env, agent]
            or painted[env, other] > 0.0
        )
        if known or (d <= HEAT_SIGHT and heat[env, other] > HOT * HEAT_CAP[kind[other]]):
            count = insert(contact, contact_distance, env, agent, 0, count, other, d)
    num_foes = count
    if num_foes < CONTACTS:
        for other in range(friend_first, friend_first + per_team):
            if other != agent and not wreck[env, other]:
                count = insert(
                    contact,
                    contact_distance,
                    env,
                    agent,
                    num_foes,
                    count,
                    other,
                    distance(position, env, agent, other),
                )
