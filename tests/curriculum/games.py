"""A game whose result is what its parameter says, so that every count can be worked out by hand."""

from ludus.sim import Choice, Game, Goal, Param, Role, Term, float32, phase


@phase(writes=("terminated", "outcome"))
def decide(env, agents, step, max_steps, heroes_win, terminated, outcome):
    terminated[env] = step[env] >= max_steps[env]
    if terminated[env]:
        for agent in range(agents):
            won = heroes_win[env] == 1
            if agent == agents - 1:
                won = not won
            outcome[env, agent] = 1 if won else -1


@phase(lanes="agents", writes=("observation", "term_win", "goal_victory"))
def look(
    env,
    agent,
    agents,
    step,
    max_steps,
    terminated,
    outcome,
    resetting,
    observation,
    term_win,
    goal_victory,
):
    observation[env, agent, 0] = float32(step[env]) / float32(max_steps[env])
    observation[env, agent, 1] = 1.0 if agent == agents - 1 else 0.0
    if not resetting[env] and terminated[env]:
        term_win[env, agent] = float32(outcome[env, agent])
        goal_victory[env, agent] = 1.0 if outcome[env, agent] > 0 else 0.0


DECIDED = Game(
    name="decided",
    summary="heroes and a rival; a parameter says who wins",
    sizes=dict(heroes=1),
    roles=[Role("hero", count="heroes"), Role("rival")],
    params=dict(
        heroes_win=Param(1, 0, 1, "1: the heroes win, 0: the rival"),
        max_steps=Param(10, 1, 1000, "length of an episode"),
        slope=Param(0.5, 0.0, 2.0, "unused"),
    ),
    observation=["time", "rival"],
    action=dict(card=Choice(("low", "high"))),
    rewards=dict(win=Term("goal", 1.0, least=-1, most=1)),
    goal_metrics=dict(victory=Goal("1 if won", share=True)),
    step=[decide, look],
    reset=[look],
)
