"""Pursuit, declared: the smallest complete game. `docs/write-your-own-game.md` walks through it."""

from ludus.games.pursuit.bots import flee, greedy
from ludus.games.pursuit.rules import judge, leave, move, observe, reach_out, spawn
from ludus.sim import Binary, Continuous, Game, Goal, Headline, Param, Role, Term, each, f32, flag

GAME = Game(
    name="pursuit",
    summary="one chaser, several runners on a torus; the example game",
    sizes=dict(runners=3),
    size_limits=dict(runners=(1, 64)),
    roles=[Role("chaser"), Role("runner", count="runners")],
    state=dict(position=f32("agents", 2), heading=f32("agents"), caught=flag("agents")),
    params=dict(
        speed=Param(0.20, 0.01, 2.0, "distance a runner covers in a step"),
        chaser_speed=Param(0.25, 0.01, 2.0, "distance the chaser covers in a step"),
        reach=Param(0.5, 0.05, 3.0, "distance at which a runner is caught"),
        max_steps=Param(200, 10, 10_000, "steps until the episode is cut off"),
    ),
    observation=["heading_x", "heading_y", each("other", ["alive", "ahead", "left"], "runners")],
    action=dict(turn=Continuous(), go=Binary()),
    rewards=dict(
        catch=Term("goal", 10.0, most="runners", roles="chaser", help="for every runner caught"),
        caught=Term("goal", -10.0, most=1, roles="runner"),
        near=Term(
            "shaping",
            0.01,
            most="max_steps",
            roles="chaser",
            help="1 beside a runner, 0 a world away",
        ),
    ),
    goal_metrics=dict(
        catch_rate=Goal("share of the runners caught", roles="chaser", share=True),
        survival=Goal("1 if never caught", roles="runner", share=True),
    ),
    headline=Headline("catch_rate", against="bot:flee"),
    step=[move, reach_out, leave, judge, observe],
    reset=[spawn, observe],
    bots=dict(chaser=[greedy], runner=[flee]),
    presets=dict(easy=dict(speed=0.1)),
)
