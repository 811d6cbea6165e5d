"""Small statistics for noisy curves. Rows of a training log resemble their neighbours, so errors count effective rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Mean:
    value: float
    error: float
    """Standard error, with neighbours' resemblance taken into account."""


def mean(values: Array) -> Mean:
    """The mean of a stretch of a curve. Rows that repeat their neighbour (a moving average) count for less than one."""
    n = len(values)
    if n < 2:
        return Mean(float(values.mean()) if n else math.nan, math.inf)
    centred = values - values.mean()
    variance = float(centred @ centred) / (n - 1)
    if variance == 0:
        return Mean(float(values.mean()), 0.0)
    alike = max(0.0, min(0.95, float(centred[1:] @ centred[:-1]) / float(centred @ centred)))
    effective = max(1.0, n * (1 - alike) / (1 + alike))
    return Mean(float(values.mean()), math.sqrt(variance / effective))


def certainty(a: Mean, b: Mean) -> float:
    """By how many standard errors b lies above a."""
    error = math.hypot(a.error, b.error)
    if error == 0:
        return 0.0 if a.value == b.value else math.copysign(math.inf, b.value - a.value)
    return (b.value - a.value) / error


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
