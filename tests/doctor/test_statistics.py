"""Noise, certainty and progress on curves whose answers are known."""

import numpy as np
import pytest

from ludus.doctor.log import Curve
from ludus.doctor.progress import progress
from ludus.doctor.statistics import certainty, noise


def resembling(rows: int, alike: float, seed: int) -> np.ndarray:
    """Noise of deviation 1 in which each row resembles the last by `alike`."""
    rng = np.random.default_rng(seed)
    values = np.zeros(rows)
    for i in range(rows):
        values[i] = (
            alike * values[i - 1] + rng.normal() * np.sqrt(1 - alike**2) if i else rng.normal()
        )
    return values


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.9])
def test_noise_is_measured_whatever_the_trend(alike):
    values = resembling(20_000, alike, seed=0) + np.linspace(0, 300, 20_000)
    found = noise(values)
    assert found.alike == pytest.approx(alike, abs=0.05) and found.deviation == pytest.approx(
        1.0, rel=0.15
    )


def test_error_of_independent_rows_is_the_textbooks():
    assert noise(resembling(50_000, 0.0, seed=1)).error(100) == pytest.approx(0.1, rel=0.1)


def test_certainty_counts_standard_errors():
    a, b = resembling(400, 0.0, seed=2), resembling(400, 0.0, seed=3) + 1.0
    assert certainty(a, b) == pytest.approx(1.0 / np.sqrt(2 / 400), rel=0.2)


def curve(values: np.ndarray) -> Curve:
    return Curve("return", np.arange(1, len(values) + 1) * 1000.0, values)


@pytest.mark.parametrize("alike", [0.0, 0.8])
@pytest.mark.parametrize("rows", [60, 1000])
def test_noise_alone_is_seldom_called_a_rise(rows, alike):
    called = sum(progress(curve(resembling(rows, alike, seed))).learned for seed in range(40))
    assert called <= 10


@pytest.mark.parametrize("rows", [60, 300, 3000])
def test_a_rise_of_ten_deviations_is_never_missed(rows):
    for seed in range(30):
        values = resembling(rows, 0.8, seed) + 10 / (
            1 + np.exp(-12 * (np.linspace(0, 1, rows) - 0.4))
        )
        judged = progress(curve(values))
        assert judged.learned and judged.lost < 0.5


def test_what_was_gained_and_lost_again():
    up_and_down = np.concatenate(
        [np.linspace(0, 10, 50), np.linspace(10, 1, 50)]
    ) + 0.1 * resembling(100, 0.0, seed=4)
    judged = progress(curve(up_and_down))
    assert judged.learned and judged.lost > 0.7 and judged.failing


def test_a_log_that_begins_late_is_not_judged():
    late = Curve("return", np.arange(900.0, 1000.0), np.zeros(100))
    assert not progress(late).flat
