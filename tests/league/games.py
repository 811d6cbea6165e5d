"""A game of two sides whose every result can be worked out by hand."""

from ludus.sim import Choice, Game, Goal, Param, Role, Term, float32, phase


@phase(writes=("terminated", "outcome"))
def compare(env, action_card, bonus, terminated, outcome):
    """The higher card wins; the first player's counts `bonus` more."""
    lead = float32(action_card[env, 0] - action_card[env, 1]) + bonus[env]
    result = 1 if lead > 0 else (-1 if lead < 0 else 0)
    outcome[env, 0] = result
    outcome[env, 1] = -result
    terminated[env] = True


@phase(lanes="agents", writes=("observation", "term_win", "goal_card"))
def look(env, agent, action_card, outcome, resetting, observation, term_win, goal_card):
    observation[env, agent, 0] = 1.0
    if not resetting[env]:
        term_win[env, agent] = float32(outcome[env, agent])
        goal_card[env, agent] = float32(action_card[env, agent])


@phase(lanes="agents", writes="action_card")
def middle(env, agent, action_card):
    action_card[env, agent] = 1


HIGH_CARD = Game(
    name="high_card",
    summary="both sides show a card; the higher one wins",
    roles=[Role("player", teams=2)],
    params=dict(
        bonus=Param(0.0, -10.0, 10.0, "added to the first player's card"),
        max_steps=Param(1, 1, 1, "one card each"),
    ),
    observation=["one"],
    action=dict(card=Choice(("low", "middle", "high"))),
    rewards=dict(win=Term("goal", 1.0, least=-1, most=1)),
    goal_metrics=dict(card=Goal("the card that was shown")),
    step=[compare, look],
    reset=[look],
    bots=dict(player=[middle]),
)
