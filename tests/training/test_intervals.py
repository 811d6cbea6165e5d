"""Intervals of what an evaluation measures: known values, never outside of what is possible, wide
enough."""

import numpy as np
import pytest

from ludus.intervals import as_coins, by_world, interval, wilson
from ludus.play.evaluate import intervals
from ludus.sim import Goal

# Wilson's, by hand: (1/4 + z²/16) / (1 + z²/8) ± …
TWO_OF_EIGHT = pytest.approx((0.0715, 0.5907), abs=1e-3)


def bounds(told):
    return told["low"], told["high"]


def test_wilson_by_hand():
    """One of four: centre (0.25 + 0.4802) / 1.9604, half width 1.96 / 1.9604 · sqrt(0.046875 +
    0.06003)."""
    assert wilson(1, 4) == pytest.approx((0.3725 - 0.3269, 0.3725 + 0.3269), abs=2e-4)
    assert wilson(2, 8) == TWO_OF_EIGHT


def test_shares_of_zero_and_one_get_wilsons_and_lengths_do_not():
    """survival 0.250 of four episodes was told as [-0.033, 0.533]."""
    goals = {"survival": Goal(share=True), "lasted": Goal(share=True), "hearts": Goal()}
    one_of_four, half = np.array([1.0, 0, 0, 0]), np.array([0.5, 0.0, 0.5, 0.0])
    measured = {
        "bot:seeker/survival": one_of_four,
        "bot:seeker/hider/win_rate": one_of_four,
        "lasted": half,
        "hearts": half * 4,
        "length": np.ones(4),
        "return": np.ones(4),
    }
    told = intervals(measured, goals)
    for name in ("bot:seeker/survival", "bot:seeker/hider/win_rate"):
        assert bounds(told[name]) == pytest.approx(wilson(1, 4))
    assert (
        told["lasted"]["mean"] == 0.25
        and 0 < told["lasted"]["low"] < 0.25 < told["lasted"]["high"] < 1
    )
    # 1.96 · sqrt(4/3) / 2, no share
    assert bounds(told["hearts"]) == pytest.approx((1 - 1.1316, 1 + 1.1316), abs=1e-3)
    assert bounds(told["length"]) == (1.0, 1.0)
    assert told["return"]["low"] == pytest.approx(wilson(4, 4)[0])  # paid 0 or 1, it seems


def test_the_mean_of_two_coins_is_worth_twice_as_many():
    """Half of the agents survive in every second episode, all or none in the rest as often:
    variance 1/8, half of a coin's."""
    values = np.array([0.5, 0.5, 0.0, 1.0] * 250)
    assert as_coins(values) == pytest.approx(2000, rel=0.01)
    assert bounds(interval(values, share=True)) == pytest.approx(wilson(1000, 2000), abs=1e-3)
    assert as_coins(np.array([0.0, 1.0, 1.0])) == 3  # coins are coins
    # four that agree: one more as uncertain as a coin makes the variance a quarter of it
    assert as_coins(np.full(4, 0.5)) == 16


def test_it_stays_between_zero_and_one_however_few_there_are():
    for values in ([0.9, 1.0], [0.02], [1.0000001] * 4, [0.999999, 1.0], [0.0, 0.01, 0.0]):
        told = interval(np.array(values), share=True)
        assert (
            0 <= told["low"] <= told["mean"] <= told["high"] <= 1
            and told["high"] - told["low"] > 0.02
        )


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, shape: rng.binomial(2, 0.8, shape) / 2,
        lambda rng, shape: rng.beta(2, 6, shape),
        lambda rng, shape: rng.binomial(1, 0.1, shape) * 1.0,
    ],
    ids=["caught of two", "lasted", "rare"],
)
@pytest.mark.parametrize("episodes", [8, 64])
def test_it_holds_the_truth_in_nineteen_of_twenty(draw, episodes):
    rng = np.random.default_rng(0)
    truth = draw(rng, 200_000).mean()
    told = [interval(row, share=True) for row in draw(rng, (1000, episodes))]
    assert np.mean([t["low"] <= truth <= t["high"] for t in told]) > 0.92


def test_opponents_met_in_the_same_worlds_add_no_certainty_where_the_world_decides():
    """Half of the worlds are lost against everybody: 4 opponents tell what one does, and 25 worlds
    are 25 worlds."""
    lost = np.arange(25) % 2 * 1.0
    assert interval(by_world([lost] * 4), share=True) == interval(lost, share=True)
    returns = np.random.default_rng(0).normal(size=25)
    assert interval(by_world([returns] * 4)) == pytest.approx(interval(returns))


def test_the_interval_of_several_opponents_holds_the_truth_in_nineteen_of_twenty():
    """Worlds differ in how likely a win is, and opponents meet the same worlds; episodes counted
    one by one miss it twice as often."""
    random, held, naive = np.random.default_rng(1), 0, 0
    for _ in range(400):
        chance = random.uniform(size=40)
        parts = [(random.uniform(size=40) < chance) * 1.0 for _ in range(8)]
        told, alone = (
            interval(by_world(parts), share=True),
            interval(np.concatenate(parts), share=True),
        )
        held += told["low"] <= 0.5 <= told["high"]
        naive += alone["low"] <= 0.5 <= alone["high"]
    assert held / 400 > 0.93 and naive / 400 < 0.85
