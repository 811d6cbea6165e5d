"""Small statistics for noisy curves. Rows of a training log resemble their neighbours, so errors
count effective rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STRETCH = 15
"""Rows over which a trend is taken to be straight; with fewer, slow noise would pass for trend."""
MOST_ALIKE = 0.97
"""A moving average over a hundred episodes, written every few, comes close to this."""


@dataclass(frozen=True)
class Noise:
    """What a curve does besides its trend: deviation of a row, and how much a row resembles the one
    before."""

    deviation: float
    alike: float

    def error(self, rows: float) -> float:
        """Standard error of a mean over so many consecutive rows."""
        effective = max(1.0, rows * (1 - self.alike) / (1 + self.alike))
        return self.deviation / math.sqrt(effective)


def noise(values: Array) -> Noise:
    """From differences of rows one and two apart: for noise in which a row resembles the last by r,
    their variances are 2 s^2 (1 - r) and 2 s^2 (1 - r^2), so that their ratio is 1 + r. The trend
    is taken off stretch by stretch."""
    if len(values) < 4:
        return Noise(float(values.std()) if len(values) else 0.0, 0.0)
    one, two = _around_trend(values[1:] - values[:-1]), _around_trend(values[2:] - values[:-2])
    if one == 0:
        return Noise(0.0, 0.0)
    alike = min(max(two / one - 1, 0.0), MOST_ALIKE)
    return Noise(min(math.sqrt(one / (2 * (1 - alike))), float(values.std())), alike)


def _around_trend(differences: Array) -> float:
    """Mean square of differences, less what the slope of each stretch explains."""
    parts = windows(differences, max(1, min(10, len(differences) // STRETCH)))
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    return squares / max(1, len(differences) - len(parts))


def certainty(before: Array, after: Array, of: Noise | None = None) -> float:
    """By how many standard errors the mean of `after` lies above that of `before`. `of`: noise of
    the whole curve, if known."""
    of = of or noise(np.concatenate([before, after]))
    error = math.hypot(of.error(len(before)), of.error(len(after)))
    rise = float(after.mean() - before.mean())
    if error == 0:
        return 0.0 if rise == 0 else math.copysign(math.inf, rise)
    return rise / error


def windows(values: Array, count: int = 10) -> list[Array]:
    """Consecutive stretches of about equal length, none shorter than three rows."""
    return np.array_split(values, max(1, min(count, len(values) // 3)))


def medians(values: Array, count: int = 10) -> Array:
    return np.array([np.median(part) for part in windows(values, count)])


def tail(values: Array, share: float = 0.5) -> Array:
    """The last part of a curve."""
    return values[len(values) - max(1, round(len(values) * share)) :]


def head(values: Array, share: float = 0.1) -> Array:
    """The first part of a curve, three rows at least."""
    return values[: max(3, round(len(values) * share))]
