"""A game that changes on purpose while a run trains: what that explains is not blamed on learning.
Every check here speaks about the same curves where the game stays the same."""

import numpy as np
import pytest

from ludus.doctor.checks.environment import game_changed, game_values_change
from ludus.doctor.checks.learning import (
    evaluation_falls,
    learned_by_heart,
    return_falls,
    return_flat,
    return_swings,
)
from ludus.doctor.checks.reward_hacking import goal_not_reached, return_without_goal
from ludus.doctor.checks.self_play import forgetting, one_sided, only_beats_itself
from ludus.doctor.log import Curve, Log

ROWS = 100
STEPS = np.arange(1, ROWS + 1) * 1000.0
FALLING = np.concatenate([np.linspace(0, 100, 40), np.linspace(100, 10, 40), np.full(20, 10.0)])
CONFIG = {"envs": 8, "checkpoint.best_metric": "eval/self/finished"}


def interval(name, values, width=0.01):
    return {name: values, f"{name}_low": values - width, f"{name}_high": values + width}


def speed(until):
    """From 0.5 down to 0.25 at a share of the log; 0.25 is evaluated."""
    return {
        "game/speed": np.interp(STEPS / STEPS[-1], [0, until], [0.5, 0.25]),
        "game/speed_evaluated": np.full(ROWS, 0.25),
    }


def log(curves):
    curves = {"progress/episodes": STEPS, **curves}
    return Log(
        "here",
        {n: Curve(n, STEPS, np.asarray(v, float)) for n, v in curves.items()},
        config=CONFIG,
        ours=True,
    )


BLAMED = {
    one_sided: {
        "episode/chaser/won": np.full(ROWS, 0.99),
        "episode/runner/won": np.full(ROWS, 0.01),
        "goal/chaser/catch_rate": np.full(ROWS, 0.99),
    },
    return_falls: {"episode/a/return": FALLING},
    return_flat: {"episode/a/return": 20 + np.sin(STEPS), "learner/a/entropy": np.full(ROWS, 0.5)},
    return_swings: {
        "episode/a/return": np.where(
            np.arange(ROWS) < 5, 0.0, 65 + 35 * np.sin(np.arange(ROWS) / 2.5)
        )
    },
    return_without_goal: {
        "episode/a/return": np.linspace(0, 10, ROWS),
        "goal/a/done": np.linspace(0.6, 0.1, ROWS),
    },
    only_beats_itself: {
        "goal/a/done": np.linspace(0, 1, ROWS),
        "eval/bot:b/done": np.full(ROWS, 0.1),
    },
    forgetting: interval("eval/bot:b/done", np.interp(STEPS, [0, 5e4, 1e5], [0.1, 0.9, 0.1])),
    evaluation_falls: interval(
        "eval/self/finished", np.interp(STEPS, [0, 5e4, 1e5], [0.1, 0.9, 0.1])
    ),
    goal_not_reached: {"eval/self/finished": np.zeros(ROWS)},
    learned_by_heart: {
        **interval("league/bot:b/win_rate", np.full(ROWS, 0.9)),
        **interval("eval/bot:b/win_rate", np.full(ROWS, 0.4)),
    },
    game_changed: {
        "episode/a/return": np.where(np.arange(ROWS) < 50, 100.0, 10.0) + np.sin(STEPS),
        "episode/a/length": np.where(np.arange(ROWS) < 50, 100.0, 10.0),
    },
}


@pytest.mark.parametrize("check", BLAMED, ids=lambda check: check.__name__)
def test_what_a_schedule_explains_is_not_blamed_on_learning(check):
    assert [f.check for f in check(log(BLAMED[check]))] == [check.__name__]
    assert not list(check(log({**BLAMED[check], **speed(1.5)})))  # still on its way


@pytest.mark.parametrize(
    "check",
    [one_sided, forgetting, goal_not_reached, learned_by_heart],
    ids=lambda check: check.__name__,
)
def test_what_holds_in_the_game_that_is_evaluated_is_told(check):
    assert [f.check for f in check(log({**BLAMED[check], **speed(0.3)}))] == [check.__name__]


def test_sides_are_judged_by_the_game_as_it_is_now():
    """A fast chaser catches everybody; slowed down at half of the run it wins every second game."""
    won = np.where(STEPS <= 52_000, 1.0, 0.5)
    sides = {"episode/chaser/won": won, "episode/runner/won": 1 - won}
    assert list(one_sided(log(sides)))  # in every second row of the run
    assert not list(one_sided(log({**sides, **speed(0.5)})))


def test_training_is_compared_with_evaluation_only_after_episodes_of_the_same_game():
    """A win rate is of the last episodes: those of the easier game have to be gone."""
    found = {
        **BLAMED[learned_by_heart],
        **speed(0.5),
        "progress/episodes": np.linspace(40, 50, ROWS),
    }
    assert not list(learned_by_heart(log(found)))


def test_it_says_what_changed():
    assert not list(game_values_change(log({"episode/a/return": FALLING})))
    (on_its_way,) = game_values_change(log(speed(2.0)))
    assert (
        on_its_way.severity == "info"
        and "speed 0.499 at first, 0.375 now (0.25 in evaluations)" in on_its_way.cause
    )
    (arrived,) = game_values_change(log(speed(0.5)))
    assert (
        "the game changed while training" in arrived.cause
        and "last change at step 50,000" in arrived.evidence
    )
    (other,) = game_values_change(log({**speed(0.5), "game/speed_evaluated": np.full(ROWS, 0.1)}))
    assert "another game than evaluation" in other.cause


def test_first_episodes_do_not_make_a_goal_fall():
    """The first to end are those that succeeded: catches seem to fall from 1 to what they are,
    while the return rises."""
    first = np.arange(ROWS) < 20
    curves = {
        "progress/episodes": np.where(first, 0.3 * np.arange(ROWS), STEPS),
        "episode/a/return": np.where(first, 0.0, 8.0) + np.sin(STEPS),
        "goal/a/done": np.where(first, 1.0, 0.3) + 0.01 * np.sin(STEPS),
    }
    assert not list(return_without_goal(log(curves)))
    assert list(return_without_goal(log({**curves, "progress/episodes": STEPS})))
