"""The match: who holds the zone, what everybody earns, when it is over and who has won."""

import math

from ludus.games.mechs.classes import MOST_HP, STEP_SECONDS, TONS
from ludus.sim import float32, phase

WON_AT = 0.5  # of the episode's seconds, as score
EARNED_DAMAGE, EARNED_KILLS, EARNED_ASSISTS, EARNED_DEATHS = range(4)
EARNED = 4


def zone_distance(bank_zone, position, env, agent, chart):
    """Metres from the zone's middle, over the ground."""
    dx, dz = (
        position[env, agent, 0] - bank_zone[chart, 0],
        position[env, agent, 2] - bank_zone[chart, 1],
    )
    return math.sqrt(dx * dx + dz * dz)


def closeness(bank_zone, position, env, agent, chart, world):
    """The potential: 0 in the zone, falling with the distance to it, to -1 a world away."""
    away = zone_distance(bank_zone, position, env, agent, chart) - bank_zone[chart, 2]
    return -min(max(away, 0.0) / float32(world), 1.0)


@phase(lanes="agents", writes="earned")
def earn(env, agent, per_team, harm, harmed, killed, killer, earned):
    """What this mech itself did in this step. A kill pays its killer; everybody else who helped
    gets one assist for it."""
    damage, kills, assists = float32(0.0), 0, 0
    first = per_team if agent < per_team else 0
    for victim in range(first, first + per_team):
        damage += harm[env, victim, agent]
        if killed[env, victim]:
            if killer[env, victim] == agent:
                kills += 1
            elif harmed[env, victim, agent]:
                assists += 1
    earned[env, agent, EARNED_DAMAGE] = damage
    earned[env, agent, EARNED_KILLS] = float32(kills)
    earned[env, agent, EARNED_ASSISTS] = float32(assists)
    earned[env, agent, EARNED_DEATHS] = 1.0 if killed[env, agent] else 0.0


@phase(writes=("score", "tick", "left", "terminated", "outcome"))
def judge(
    env,
    agents,
    per_team,
    step,
    max_steps,
    kind,
    wreck,
    hp,
    chart,
    position,
    bank_zone,
    score,
    tick,
    left,
    terminated,
    outcome,
):
    """The heavier team in the zone scores by its margin. Half the episode's seconds win, or
    elimination, or more at the end."""
    tons_0, tons_1, hp_0, hp_1 = 0.0, 0.0, 0.0, 0.0
    left[env, 0] = 0
    left[env, 1] = 0
    for agent in range(agents):
        if wreck[env, agent]:
            continue
        inside = (
            zone_distance(bank_zone, position, env, agent, chart[env]) <= bank_zone[chart[env], 2]
        )
        tons = TONS[kind[agent]] if inside else 0.0
        if agent < per_team:
            left[env, 0] += 1
            hp_0 += hp[env, agent]
            tons_0 += tons
        else:
            left[env, 1] += 1
            hp_1 += hp[env, agent]
            tons_1 += tons
    margin = (tons_0 - tons_1) / max(tons_0 + tons_1, 1.0)
    tick[env, 0] = max(margin, 0.0)
    tick[env, 1] = max(-margin, 0.0)
    score[env, 0] += tick[env, 0] * STEP_SECONDS
    score[env, 1] += tick[env, 1] * STEP_SECONDS
    enough = WON_AT * STEP_SECONDS * float32(max_steps[env]) - 1e-3
    eliminated = left[env, 0] == 0 or left[env, 1] == 0
    by_score = score[env, 0] >= enough or score[env, 1] >= enough
    terminated[env] = eliminated or by_score or step[env] >= max_steps[env]
    if not terminated[env]:
        return
    lead = float32(left[env, 0] - left[env, 1]) if eliminated else 0.0
    if lead == 0.0:  # nobody is left, or both teams are
        lead = score[env, 0] - score[env, 1]
        if abs(lead) < 1e-3:
            lead = hp_0 - hp_1
    won = 1 if lead > 0.0 else (-1 if lead < 0.0 else 0)
    for agent in range(agents):
        outcome[env, agent] = won if agent < per_team else -won


def mixed(earned, env, agent, per_team, what, team_share):
    """What an agent is paid: its own, with a share of it replaced by the team's mean."""
    first = 0 if agent < per_team else per_team
    total = float32(0.0)
    for mate in range(first, first + per_team):
        total += earned[env, mate, what]
    return (1.0 - team_share) * earned[env, agent, what] + team_share * total / float32(per_team)


@phase(
    lanes="agents",
    writes=(
        "potential",
        "idle",
        "term_zone",
        "term_approach",
        "term_damage",
        "term_kill",
        "term_assist",
        "term_death",
        "term_win",
        "goal_win",
        "goal_draw",
        "goal_zone_share",
        "goal_survival",
    ),
)
def pay(
    env,
    agent,
    world,
    per_team,
    team_share,
    chart,
    wreck,
    position,
    bank_zone,
    earned,
    tick,
    score,
    terminated,
    outcome,
    potential,
    idle,
    term_zone,
    term_approach,
    term_damage,
    term_kill,
    term_assist,
    term_death,
    term_win,
    goal_win,
    goal_draw,
    goal_zone_share,
    goal_survival,
):
    """Rewards and goals. A wreck takes no more decisions, but still wins or loses with its team."""
    team = 0 if agent < per_team else 1
    share = team_share[env]
    if not wreck[env, agent]:
        now = closeness(bank_zone, position, env, agent, chart[env], world)
        term_approach[env, agent] = now - potential[env, agent]
        potential[env, agent] = now
        term_zone[env, agent] = tick[env, team]
    if not idle[env, agent]:  # it lived when the step began
        term_damage[env, agent] = mixed(earned, env, agent, per_team, EARNED_DAMAGE, share)
        term_kill[env, agent] = mixed(earned, env, agent, per_team, EARNED_KILLS, share)
        term_assist[env, agent] = mixed(earned, env, agent, per_team, EARNED_ASSISTS, share)
        term_death[env, agent] = mixed(earned, env, agent, per_team, EARNED_DEATHS, share)
    idle[env, agent] = wreck[env, agent]
    total = score[env, 0] + score[env, 1]
    goal_zone_share[env, agent] = score[env, team] / total if total > 0.0 else 0.5
    goal_survival[env, agent] = 0.0 if wreck[env, agent] else 1.0
    if terminated[env]:
        term_win[env, agent] = float32(outcome[env, agent])
        goal_win[env, agent] = 1.0 if outcome[env, agent] > 0 else 0.0
        goal_draw[env, agent] = 1.0 if outcome[env, agent] == 0 else 0.0


@phase(writes=("score", "tick", "left"))
def start(env, per_team, score, tick, left):
    for team in range(2):
        score[env, team] = 0.0
        tick[env, team] = 0.0
        left[env, team] = per_team


@phase(lanes="agents", writes=("potential", "earned"))
def line_up(env, agent, world, chart, position, bank_zone, potential, earned):
    potential[env, agent] = closeness(bank_zone, position, env, agent, chart[env], world)
    for i in range(EARNED):
        earned[env, agent, i] = 0.0


# What damage can add up to: every foe's hit points and legs.
MOST_DAMAGE = f"{MOST_HP:.0f} * per_team"
