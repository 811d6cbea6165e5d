"""What hits do: each mech gathers what others did to it, then pays for heat, falls and fire of its
own.

`harm[victim, shooter]` is what a foe's fire took from a victim in this step, never more than the
victim had left; splash on friends hurts them but counts for nobody. `harmed` remembers foes that
helped, for assists.
"""

import math

from ludus.games.mechs.classes import (
    DAMAGE,
    DISSIPATION,
    DOWN_SECONDS,
    ECCM_HEAT,
    ECM_HEAT,
    GAUSS,
    HALF,
    HEAT_CAP,
    JET_HEAT,
    LOW,
    MAX_HP,
    MAX_LEGS,
    MISSILE,
    PAINT_BONUS,
    REAR_BONUS,
    REAR_COS,
    RESTART,
    RISES_AT,
    SHAKE,
    STABILITY,
    STABILITY_REGAIN,
    STEP_SECONDS,
    TALL,
    VENT,
)
from ludus.games.mechs.movement import in_floor
from ludus.games.mechs.projectiles import BURSTS, MISSILE_BURST, SPLASH
from ludus.games.mechs.voxels import MOLTEN, WET
from ludus.games.mechs.weapons import (
    HIT_DAMAGE,
    HIT_LOW,
    HIT_PAINT,
    HIT_SCORCH,
    HIT_SHAKE,
    HIT_SUPPRESS,
    NOBODY,
    bearing,
    foes,
)
from ludus.sim import float32, phase

LAVA_HEAT, LAVA_DAMAGE, WATER_COOLING = 40.0, 5.0, 30.0  # a second
STEADIEST, LEGGED_SHARE, MOVING_SHARE, SUPPRESSED_SHARE = 0.1, 0.5, 0.5, 0.75


def splash(burst, position, kind, env, shooter, which, agent):
    """The part of a burst's effect that reaches a mech: 1 at its body, 0 from the splash radius
    on."""
    half, tall = HALF[kind[agent]], TALL[kind[agent]]
    dx = max(abs(burst[env, shooter, which, 0] - position[env, agent, 0]) - half, 0.0)
    dz = max(abs(burst[env, shooter, which, 2] - position[env, agent, 2]) - half, 0.0)
    over = burst[env, shooter, which, 1] - position[env, agent, 1]
    dy = max(max(-over, over - tall), 0.0)
    return max(1.0 - math.sqrt(dx * dx + dy * dy + dz * dz) / SPLASH[which], 0.0)


def take(hp, legs, env, agent, amount, low):
    """Takes hit points; low hits take those of the legs first, as long as there are any. Returns
    what was taken."""
    taken = float32(0.0)
    if low:
        taken = min(amount, legs[env, agent])
        legs[env, agent] -= taken
    if taken == 0.0:
        taken = min(amount, hp[env, agent])
        hp[env, agent] -= taken
    return taken


@phase(
    lanes="agents",
    writes=("hp", "legs", "heat", "stability", "suppressed", "painted", "harm", "harmed", "killer"),
)
def suffer(
    env,
    agent,
    agents,
    per_team,
    kind,
    wreck,
    target,
    hit,
    burst,
    burst_live,
    position,
    facing,
    hp,
    legs,
    heat,
    stability,
    suppressed,
    painted,
    harm,
    harmed,
    killer,
):
    """Gathers every hit and burst on this mech. The foe that took most in this step is its killer,
    should it be destroyed."""
    suppressed[env, agent] = max(suppressed[env, agent] - STEP_SECONDS, 0.0)
    was_painted = painted[env, agent] > 0.0
    painted[env, agent] = max(painted[env, agent] - STEP_SECONDS, 0.0)
    killer[env, agent] = NOBODY
    most = float32(0.0)
    bonus = float32(PAINT_BONUS if was_painted else 1.0)
    for i in range(agents):
        shooter = i if agent >= per_team else (i + per_team) % agents  # foes first, for both teams
        harm[env, agent, shooter] = 0.0
        if wreck[env, agent]:
            continue
        taken = float32(0.0)
        hostile = foes(agent, shooter, per_team)
        if target[env, shooter] == agent:
            if hit[env, shooter, HIT_DAMAGE] > 0.0:
                taken += take(
                    hp,
                    legs,
                    env,
                    agent,
                    bonus * hit[env, shooter, HIT_DAMAGE],
                    hit[env, shooter, HIT_LOW] > 0.0,
                )
                stability[env, agent] -= hit[env, shooter, HIT_SHAKE]
                heat[env, agent] += hit[env, shooter, HIT_SCORCH]
                suppressed[env, agent] = max(
                    suppressed[env, agent], hit[env, shooter, HIT_SUPPRESS]
                )
            if hit[env, shooter, HIT_PAINT] > 0.0:
                painted[env, agent] = hit[env, shooter, HIT_PAINT]
                harmed[env, agent, shooter] = True
        for which in range(BURSTS):
            if burst_live[env, shooter, which]:
                part = splash(burst, position, kind, env, shooter, which, agent)
                if part > 0.0:
                    weapon = MISSILE if which == MISSILE_BURST else GAUSS
                    dx = position[env, shooter, 0] - position[env, agent, 0]
                    dz = position[env, shooter, 2] - position[env, agent, 2]
                    amount = bonus * part * DAMAGE[weapon]
                    if bearing(facing, env, agent, dx, dz) < REAR_COS:
                        amount *= REAR_BONUS
                    low = (
                        burst[env, shooter, which, 1]
                        < position[env, agent, 1] + LOW * TALL[kind[agent]]
                    )
                    taken += take(hp, legs, env, agent, amount, low)
                    stability[env, agent] -= part * SHAKE[weapon]
        if hostile and taken > 0.0:
            harm[env, agent, shooter] = taken
            harmed[env, agent, shooter] = True
            if taken > most:
                most = taken
                killer[env, agent] = shooter


@phase(lanes="agents", writes=("hp", "heat", "stability", "down", "shut", "wreck", "killed"))
def tend(
    env,
    agent,
    kind,
    chart,
    position,
    velocity,
    legs,
    suppressed,
    jetting,
    ecm,
    eccm,
    action_vent,
    bank_floor,
    bank_ground,
    hp,
    heat,
    stability,
    down,
    shut,
    wreck,
    killed,
):
    """Heat, balance and the floor, over the whole step; a mech without hit points is a wreck from
    now on."""
    killed[env, agent] = False
    if wreck[env, agent]:
        return
    what = kind[agent]
    floor = in_floor(bank_floor, bank_ground, position, env, agent, chart[env])
    gain = JET_HEAT * jetting[env, agent]
    gain += ECM_HEAT if ecm[env, agent] else (ECCM_HEAT if eccm[env, agent] else 0.0)
    gain -= DISSIPATION[what] * (VENT if action_vent[env, agent] != 0 else 1.0)
    if floor == MOLTEN:
        gain += LAVA_HEAT
        hp[env, agent] -= LAVA_DAMAGE * STEP_SECONDS
    elif floor == WET:
        gain -= WATER_COOLING
    heat[env, agent] = max(heat[env, agent] + gain * STEP_SECONDS, 0.0)
    if heat[env, agent] > HEAT_CAP[what]:
        shut[env, agent] = True
    elif heat[env, agent] < RESTART * HEAT_CAP[what]:
        shut[env, agent] = False
    if down[env, agent] > 0.0:
        down[env, agent] = max(down[env, agent] - STEP_SECONDS, 0.0)
        if down[env, agent] < 1e-4:
            down[env, agent] = 0.0
            stability[env, agent] = RISES_AT
    elif stability[env, agent] <= 0.0:
        stability[env, agent] = 0.0
        down[env, agent] = DOWN_SECONDS
    else:
        steady = 1.0
        if legs[env, agent] <= 0.0:
            steady -= LEGGED_SHARE
        if abs(velocity[env, agent, 0]) + abs(velocity[env, agent, 2]) > 0.5:
            steady -= MOVING_SHARE
        if suppressed[env, agent] > 0.0:
            steady -= SUPPRESSED_SHARE
        regained = STABILITY_REGAIN * max(steady, STEADIEST) * STEP_SECONDS
        stability[env, agent] = min(stability[env, agent] + regained, STABILITY)
    if hp[env, agent] <= 0.0:
        hp[env, agent] = 0.0
        wreck[env, agent] = True
        killed[env, agent] = True


@phase(
    lanes="agents",
    writes=(
        "hp",
        "legs",
        "heat",
        "stability",
        "suppressed",
        "painted",
        "down",
        "shut",
        "wreck",
        "killed",
        "killer",
        "harm",
        "harmed",
    ),
)
def repair(
    env,
    agent,
    agents,
    kind,
    hp,
    legs,
    heat,
    stability,
    suppressed,
    painted,
    down,
    shut,
    wreck,
    killed,
    killer,
    harm,
    harmed,
):
    hp[env, agent] = MAX_HP[kind[agent]]
    legs[env, agent] = MAX_LEGS[kind[agent]]
    heat[env, agent] = 0.0
    stability[env, agent] = STABILITY
    suppressed[env, agent] = 0.0
    painted[env, agent] = 0.0
    down[env, agent] = 0.0
    shut[env, agent] = False
    wreck[env, agent] = False
    killed[env, agent] = False
    killer[env, agent] = NOBODY
    for other in range(agents):
        harm[env, agent, other] = 0.0
        harmed[env, agent, other] = False
