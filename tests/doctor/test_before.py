"""What is judged before training, with evidence made by hand: the healthy one is silent, each
change is named."""

import dataclasses

import numpy as np
import pytest

from ludus.doctor.before import budget, earnings, flow, overfit, spaces
from ludus.doctor.before.budget import Budget
from ludus.doctor.before.earnings import Earnings, Play
from ludus.doctor.before.flow import Flow
from ludus.doctor.before.overfit import Overfit
from ludus.doctor.before.spaces import Spaces

SPREAD = np.tile([-1.0, 0.0, 1.0, 0.0], 5)


def play(player: str, pay: float, caught: float, **changes) -> Play:
    """Twenty episodes that earn `pay` and catch `caught`, give or take 1 and 0.1; the first goal at
    step 30, the last at 80."""
    values = dict(
        player=player,
        returns=pay + SPREAD,
        goals={"catch_rate": caught + 0.1 * SPREAD},
        terms={"catch": pay},
        earliest={"catch": 30, "near": 3},
        first_goal=np.full(10, 30.0),
        last_goal=np.full(10, 80.0),
        lengths=np.full(20, 100.0),
    )
    return Play(**{**values, **changes})


def earned(*plays: Play, **changes) -> Earnings:
    values = dict(
        role="seeker",
        plays=plays or (play("random", 2, 0.1), play("still", 0, 0.0), play("bot:hunter", 40, 0.9)),
        goal_terms=("catch",),
        other_terms=("near",),
        max_steps=200,
        gamma=0.99,
        first_lengths=np.arange(1.0, 200.0),
    )
    return Earnings(**{**values, **changes})


WATCHES = play("still", 45, 0.0, terms={"near": 45.0})
CASES = {
    # standing still earns 45, of which all is 'near'; hunting earns 40 and catches
    "goal_out_earned": earned(play("random", 2, 0.1), WATCHES, play("bot:hunter", 40, 0.9)),
    "no_signal": earned(
        play("random", 2, 0.1, returns=np.full(20, 2.0)), play("bot:hunter", 40, 0.9)
    ),
    "term_never_earned": earned(play("random", 2, 0.1, earliest={"near": 3})),
    # 0.9 ** 60 is 0.002
    "goal_beyond_the_discount": earned(
        play("bot:hunter", 40, 0.9, first_goal=np.full(9, 60.0), earliest={"catch": 60}), gamma=0.9
    ),
    # bots are done by step 80, episodes last 400
    "episodes_too_long": earned(max_steps=400),
    # nothing can be earned before step 150 of 200, so three quarters of first episodes are cut
    # before
    "first_episodes_cut": earned(play("bot:hunter", 40, 0.9, earliest={"catch": 150})),
    # caught while it was seen: 50 are taken, and the 60 for having been seen are paid back
    "punishment_paid_back": earned(
        play("random", 2, 0.1, punished={"caught": np.full(8, -50.0), "cover": np.full(8, 60.0)})
    ),
}


def serious(findings) -> list[str]:
    return [f.check for f in findings if f.severity != "info"]


def test_a_sound_reward_is_silent_and_told_term_by_term():
    found = earnings.judge(earned())
    assert serious(found) == []
    assert (
        "random 2, catch_rate 0.1" in found[-1].evidence
        and "bot:hunter 40, catch_rate 0.9" in found[-1].evidence
    )


@pytest.mark.parametrize("check", CASES)
def test_what_is_wrong_with_earnings_is_named(check):
    assert check in serious(earnings.judge(CASES[check]))


def lasting(**changes) -> Earnings:
    """Another role of the same game, whose bots have earned their goal by step 250 of 400."""
    builds = play(
        "bot:builder", 40, 0.9, first_goal=np.full(10, 200.0), last_goal=np.full(10, 250.0)
    )
    return earned(play("random", 2, 0.1), builds, role="builder", max_steps=400, **changes)


HIDES = play("bot:hider", 5, 0.0, first_goal=np.full(10, 400.0), last_goal=np.full(10, 400.0))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (lasting(), []),  # would be cut off before it has built anything
        (lasting(goal_terms=()), ["episodes_too_long"]),  # nothing it has to do in time
        # is paid when the time is up, whenever that is
        (earned(HIDES, role="hider", max_steps=400), ["episodes_too_long"]),
        (earned(play("random", 2, 0.1), role="miner", max_steps=400), []),  # no bot: who knows
        (
            earned(
                play("bot:miner", 2, 0.1, first_goal=np.zeros(0), last_goal=np.zeros(0)),
                role="miner",
                max_steps=400,
            ),
            [],
        ),
    ],
)
def test_episodes_are_too_long_only_if_no_role_needs_them(other, expected):
    seeker = CASES["episodes_too_long"]
    found = earnings.judge(seeker, other)
    assert [f.check for f in found if f.check == "episodes_too_long"] == expected
    # takes longer, or was not done in time
    for changes in ({"last_goal": np.full(40, 300.0)}, {"whole": False}):
        against_bots = play("bot:hunter", 40, 0.9, **changes)
        assert "episodes_too_long" not in serious(
            earnings.judge(dataclasses.replace(seeker, contested=against_bots))
        )


def test_what_sets_gamma_is_named():
    (found,) = [
        f
        for f in earnings.judge(
            dataclasses.replace(CASES["goal_beyond_the_discount"], gamma_option="rainbow.gamma")
        )
        if f.check == "goal_beyond_the_discount"
    ]
    assert found.fix.startswith("--rainbow.gamma 0.98") and list(found.overrides) == [
        "rainbow.gamma"
    ]


def test_a_term_is_not_missed_where_the_time_ran_out_and_that_is_told():
    found = earnings.judge(
        earned(play("random", 2, 0.1, earliest={"near": 3}), unfinished=("bot:hunter",))
    )
    assert (
        serious(found) == []
        and "bot:hunter: the time ran out before its episodes did" in found[-1].evidence
    )
    nobody = earnings.judge(earned(unfinished=("random", "still", "bot:hunter"), plays=()))
    assert serious(nobody) == []


def test_an_idle_player_that_earns_more_is_critical_and_the_term_is_named():
    (finding,) = [
        f for f in earnings.judge(CASES["goal_out_earned"]) if f.check == "goal_out_earned"
    ]
    assert (
        finding.severity == "critical"
        and "'near' pays for it" in finding.cause
        and "near 45" in finding.evidence
    )
    careful = play("bot:careful", 45, 0.3)
    (finding,) = [
        f
        for f in earnings.judge(earned(careful, play("bot:hunter", 40, 0.9)))
        if f.check == "goal_out_earned"
    ]
    assert finding.severity == "warning"


def test_a_goal_that_should_be_low_is_better_low():
    slow, quick = play("still", 45, 0.9), play("bot:quick", 40, 0.1)
    assert "goal_out_earned" not in serious(earnings.judge(earned(slow, quick)))
    assert "goal_out_earned" in serious(
        earnings.judge(earned(slow, quick, lower_is_better=frozenset(["catch_rate"])))
    )


@pytest.mark.parametrize(
    ("back", "told"),
    [
        ([60.0] * 8, True),
        ([60.0] * 4, False),  # too few to say
        ([40.0] * 8, False),  # less than was taken
        ([60.0] * 5 + [0.0] * 30, False),  # now and then something good happens in the same step
    ],
)
def test_punishment_is_paid_back_where_losing_pays_often(back, told):
    took = {"caught": np.full(len(back), -50.0), "cover": np.array(back)}
    found = [
        f
        for f in earnings.judge(earned(play("random", 2, 0.1, punished=took)))
        if f.check == "punishment_paid_back"
    ]
    assert bool(found) is told
    if told:
        assert (
            found[0].severity == "critical"
            and "caught -50, cover 60, together 10" in found[0].evidence
        )


# -- spaces ----------------------------------------------------------------------------------------

SPACES = Spaces(
    role="seeker",
    entries=("x", "y"),
    low=np.array([-1.0, 0.0]),
    high=np.array([1.0, 5.0]),
    not_finite=(),
    normalised=True,
    dead_actions=(),
    never_allowed=(),
    situations=64,
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"differs": "position"}, ["not_deterministic"]),
        ({"not_finite": ("x",)}, ["observation_not_finite"]),
        ({"high": np.array([1.0, 3e5])}, ["observation_scale"]),
        ({"high": np.array([1.0, 50.0])}, []),  # the normaliser mends it
        ({"high": np.array([1.0, 50.0]), "normalised": False}, ["observation_scale"]),
        ({"high": np.array([1.0, 0.0])}, []),  # one constant entry is only noted
        ({"low": np.array([1.0, 5.0])}, ["observation_constant"]),
        ({"dead_actions": ("jump",)}, ["action_without_effect"]),
        ({"never_allowed": ("jump",)}, []),
    ],
)
def test_spaces(changes, expected):
    assert serious(spaces.judge(dataclasses.replace(SPACES, **changes))) == expected


# -- budget, gradients, one seed -------------------------------------------------------------------

HEALTHY = Budget(
    iterations=500, updates=8000, episodes_per_env=50, buffer_bytes=1e8, free_bytes=1e10, threads=2, cores=2,
    epsilon={0.1: 0.7, 0.5: 0.02, 0.9: 0.02}, warm_up_share=0.01, checkpoints=30, iterations_per_checkpoint=10,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"refused": "one rollout is 100 but the budget is 10: lower it"}, ["refused"]),
        ({"iterations": 3}, ["few_updates"]),
        ({"episodes_per_env": 0.5}, ["few_episodes"]),
        ({"buffer_bytes": 6e9}, ["memory_short"]),
        ({"threads": 8}, ["too_many_threads"]),
        ({"epsilon": {0.1: 0.02, 0.5: 0.02, 0.9: 0.02}}, ["exploration_budget"]),
        ({"epsilon": {0.1: 0.02, 0.5: 0.02, 0.9: 0.02}, "noisy": True}, []),
        ({"epsilon": {0.1: 0.99, 0.5: 0.95, 0.9: 0.91}}, ["exploration_budget"]),
        ({"warm_up_share": 0.5}, ["warm_up_long"]),
        ({"checkpoints": 0.1}, ["checkpoint_rate"]),
        ({"checkpoints": 1e5, "iterations_per_checkpoint": 0.001}, ["checkpoint_rate"]),
        ({"checkpoints": 40.0, "iterations_per_checkpoint": 1.0}, []),
    ],
)
def test_budget(changes, expected):
    assert serious(budget.judge(dataclasses.replace(HEALTHY, **changes))) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"gradients": {"actor": 0.1, "critic": 0.0}}, [("parameter_without_gradient", "warning")]),
        (
            {"gradients": {"actor": 0.0, "critic": 0.0}},
            [("parameter_without_gradient", "critical")],
        ),
        ({"inputs": {"own state": 0.2, "message": 0.0}}, [("input_ignored", "warning")]),
    ],
)
def test_flow(changes, expected):
    healthy = Flow(
        role="seeker",
        gradients={"actor": 0.1, "critic": 2.0},
        inputs={"own state": 0.2, "message": 1e-4},
    )
    assert [
        (f.check, f.severity) for f in flow.judge(dataclasses.replace(healthy, **changes))
    ] == expected


@pytest.mark.parametrize(
    ("after", "best", "expected"),
    [
        (20.0, 30.0, "seed_mastered"),  # more than half way from 2 to 30
        (10.0, 30.0, "seed_not_mastered"),  # better, and less than half way
        (2.0, -np.inf, "seed_not_mastered"),
        (20.0, -np.inf, "seed_mastered"),
        (2.0, 1.0, "seed_mastered"),  # no bot is better than the beginner
    ],
)
def test_one_fixed_seed(after, best, expected):
    tried = Overfit(
        role="seeker", before=2 + SPREAD, after=after + SPREAD, best_bot=best, seconds=10
    )
    assert [f.check for f in overfit.judge(tried)] == [expected]
