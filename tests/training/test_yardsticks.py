"""Where nobody opposes, bots play the same worlds in the policy's place."""

from types import SimpleNamespace

import numpy as np

from ludus.games import load_game
from ludus.games.arena.spec import SMALL
from ludus.play.evaluate import better_than, measure
from ludus.sim import Batch, Goal


def test_better_counts_in_the_direction_of_the_goal_and_ties_do_not_count():
    game = SimpleNamespace(goal_metrics={"time": Goal(higher_is_better=False), "laps": Goal()})
    values = {
        "self/time": np.array([3.0, 5.0, 4.0]),
        "bot:a/time": np.array([4.0, 4.0, 4.0]),
        "self/laps": np.array([1.0, 2.0, 0.0]),
        "bot:a/laps": np.array([0.0, 2.0, 1.0]),
    }
    found = better_than(game, values, ["bot:a"])
    assert found["self/time_better_than/bot:a"].tolist() == [1, 0, 0]
    assert found["self/laps_better_than/bot:a"].tolist() == [1, 0, 0]


def test_bots_play_the_same_worlds():
    game = load_game("arena")[0]
    small = {**SMALL, "max_steps": 60}

    def make(num_envs):
        return Batch(game, num_envs, seed=3, overrides=small)

    gatherer, again, still = (
        measure(make, {}, f"bot:{name}", 6, 0) for name in ("gatherer", "gatherer", "still")
    )
    assert np.array_equal(gatherer["ore"], again["ore"]) and len(gatherer["ore"]) == 6
    assert gatherer["ore"].mean() > 0 and not still["ore"].any()
