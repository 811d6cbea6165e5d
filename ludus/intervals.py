"""Confidence intervals (95%)."""

from __future__ import annotations

import math

import numpy as np

Z = 1.96


def wilson(successes: float, count: float) -> tuple[float, float]:
    """Wilson's interval for a share."""
    if count <= 0:
        return 0.0, 1.0
    share = successes / count
    centre = (share + Z * Z / (2 * count)) / (1 + Z * Z / count)
    half = Z / (1 + Z * Z / count) * math.sqrt(max(0.0, share * (1 - share)) / count + Z * Z / (4 * count * count))
    return max(0.0, centre - half), min(1.0, centre + half)


def interval(values: np.ndarray) -> dict[str, float]:
    """Mean and interval: Wilson's for shares, else the normal one."""
    n, mean = len(values), float(values.mean())
    if np.isin(values, (0.0, 1.0)).all():
        low, high = wilson(float(values.sum()), n)
        return {"mean": mean, "low": low, "high": high}
    half = Z * float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else float("inf")
    return {"mean": mean, "low": mean - half, "high": mean + half}
