"""Confidence intervals (95%)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Z = 1.96
LOW, HIGH, GREEDY = "_low", "_high", "_greedy"
"""What follows a metric's name where it is an end of its interval, or was played greedily."""


def is_plain(name: str) -> bool:
    """A metric itself, rather than an end of its interval or its greedy twin?"""
    return not name.endswith((LOW, HIGH, GREEDY))


def wilson(successes: float, count: float) -> tuple[float, float]:
    """Wilson's interval for a share."""
    if count <= 0:
        return 0.0, 1.0
    share = successes / count
    centre = (share + Z * Z / (2 * count)) / (1 + Z * Z / count)
    half = (
        Z
        / (1 + Z * Z / count)
        * math.sqrt(max(0.0, share * (1 - share)) / count + Z * Z / (4 * count * count))
    )
    # rounding must not put the share itself outside
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def newcombe(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Interval of the difference of two shares, each given as (successes, count): Newcombe's, from
    their Wilson intervals."""
    (p, (low, high)), (q, (lower, upper)) = (
        (s / n if n > 0 else 0.5, wilson(s, n)) for s, n in (first, second)
    )
    return p - q - math.hypot(p - low, upper - q), p - q + math.hypot(high - p, q - lower)


def difference(first: np.ndarray, second: np.ndarray) -> dict[str, float]:
    """Mean and interval of first − second, measured in the same worlds: Newcombe's for what is 0 or
    1 (wide enough whether or not a world decides both), else that of the differences world by
    world."""
    values = first - second
    if not np.isin([first, second], (0.0, 1.0)).all():
        half = (
            Z * float(values.std(ddof=1)) / math.sqrt(len(values))
            if len(values) > 1
            else float("inf")
        )
        return {
            "mean": float(values.mean()),
            "low": float(values.mean()) - half,
            "high": float(values.mean()) + half,
        }
    low, high = newcombe((float(first.sum()), len(first)), (float(second.sum()), len(second)))
    return {"mean": float(values.mean()), "low": low, "high": high}


def interval(values: np.ndarray, share: bool | None = None) -> dict[str, float]:
    """Mean and interval. Of a `share` (between 0 and 1): Wilson's, with as many episodes as a coin
    would need for the same standard error. Else the normal one; None: a share where all values are
    0 or 1."""
    if share is None:
        share = bool(np.isin(values, (0.0, 1.0)).all())
    if share:
        values = np.clip(values, 0.0, 1.0)
    n, mean = len(values), float(values.mean())
    if share:
        count = as_coins(values)
        low, high = wilson(mean * count, count)
        return {"mean": mean, "low": low, "high": high}
    half = Z * float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else float("inf")
    return {"mean": mean, "low": mean - half, "high": mean + half}


def by_world(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Results against several opponents in the same worlds, as one value per world. Episodes of one
    world are alike: counted one by one, they would make an interval look surer than it is."""
    return np.mean(np.stack(list(parts)), axis=0)


def as_coins(values: np.ndarray) -> float:
    """How many coins (values of 0 or 1) of this mean have a mean as sure as that of these values
    between 0 and 1: the effective sample size, as in surveys. The variance is taken with one more
    value as uncertain as a coin, so that a few values that happen to agree are no proof of no
    spread."""
    n, mean = len(values), float(values.mean())
    coin = mean * (1 - mean)
    # sums of float32 that should be 1 are nearly
    if np.isin(values.round(5), (0.0, 1.0)).all() or n < 2:
        return float(n)
    variance = (float(values.var(ddof=1)) * (n - 1) + coin) / n
    return max(float(n), n * coin / variance)
