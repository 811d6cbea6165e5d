"""What the table of the campaign says about seeds."""

import pytest

from benchmarks.campaign.__main__ import interquartile_mean


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0], 5.0),
        ([9.0, 1.0, 2.0], (0.25 * 1 + 2 + 0.25 * 9) / 1.5),  # three quarters of the lowest and of the highest are outside
        ([0.0, 2.0, 4.0, 100.0], 3.0),
        ([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -50.0], 3.5),
    ],
)
def test_the_interquartile_mean_by_hand(values, expected):
    assert interquartile_mean(values) == pytest.approx(expected)
