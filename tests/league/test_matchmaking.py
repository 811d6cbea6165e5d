"""Which snapshots are met, which are dropped, how results are counted."""

import numpy as np
import pytest

from ludus.intervals import wilson
from ludus.league.matchmaking import SAMPLERS, draw
from ludus.league.tally import RECENT, Tally
from ludus.runs.snapshots import crowded


def test_samplers_by_hand():
    rates = np.array([0.9, 0.5, 0.0])
    assert np.allclose(SAMPLERS["uniform"](rates), 1)
    assert np.allclose(SAMPLERS["latest"](rates), [0, 0, 1])
    assert np.allclose(SAMPLERS["hard"](rates), [0.01, 0.25, 1], atol=0.002)
    assert np.allclose(SAMPLERS["even"](rates), [0.09, 0.25, 0], atol=0.002)


def test_an_opponent_that_always_draws_is_of_equal_strength():
    tally = Tally()
    tally.add("draws", np.array([10.0, 0.0, 10.0, 0.0]))
    tally.add("loses", np.array([10.0, 10.0, 0.0, 0.0]))
    tally.add("half", np.array([10.0, 5.0, 0.0, 5.0]))
    scores = np.array([tally.score(name) for name in ("draws", "loses", "half", "unknown")])
    assert scores.tolist() == [0.5, 1.0, 0.5, 0.5]
    weights = SAMPLERS["even"](scores)
    assert weights[0] == weights[2] > 100 * weights[1]


def test_recent_draws_the_newest_tenth_99_times_of_100():
    weights = SAMPLERS["recent"](np.zeros(50))
    assert weights[-5:].sum() == pytest.approx(0.99) and weights[:-5].sum() == pytest.approx(0.01)
    assert SAMPLERS["recent"](np.zeros(1)).sum() == pytest.approx(1.0)


def test_draws_follow_the_weights():
    random = np.random.default_rng(0)
    drawn = [draw("hard", [10, 20, 30], {10: 1.0, 20: 0.5, 30: 0.0}, random) for _ in range(4000)]
    shares = [drawn.count(step) / 4000 for step in (10, 20, 30)]
    assert shares == pytest.approx([0.001, 0.2, 0.8], abs=0.03)


def test_thinning_keeps_the_ends_and_drops_where_snapshots_are_dense():
    steps = [0, 100, 200, 210, 220, 400]
    assert crowded(steps) == 210
    for _ in range(3):
        steps.remove(crowded(steps))
    assert steps[0] == 0 and steps[-1] == 400 and len(steps) == 3


def test_wilson_by_hand():
    assert wilson(90, 100) == pytest.approx((0.8256, 0.9448), abs=1e-3)
    assert wilson(0, 0) == (0.0, 1.0)


def test_old_results_fade():
    tally = Tally()
    tally.add("x", np.array([RECENT, 0, 0, RECENT], float))
    assert tally.win_rate("x") == 0 and tally.win_rate("unknown") == 0.5
    tally.add("x", np.array([RECENT, RECENT, 0, 0], float))
    assert tally.win_rate("x") == pytest.approx(0.5) and tally.counts["x"][0] == pytest.approx(
        RECENT
    )
