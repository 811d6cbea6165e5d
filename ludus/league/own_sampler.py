"""Samplers of the user's own, by import path: functions that return a weight for each of what they
are told about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ludus.errors import FAULTS, LudusError
from ludus.imports import import_object, where_raised

Weigh = Callable[[Any], Any]


def load_sampler(setting: str, path: str) -> Weigh:
    """The function at an import path. `setting`: which one names it, for messages."""
    found = import_object(path, "sampler")
    if not callable(found) or isinstance(found, type):
        kind = "a class" if isinstance(found, type) else f"of the type {type(found).__name__}"
        raise LudusError(
            f"{setting}={path} is {kind}: name a function that returns an array of weights"
        )
    return found


def weights_of(setting: str, path: str, weigh: Weigh, told: Any, count: int) -> np.ndarray:
    """What the function at an import path returns, which must be `count` weights."""
    try:
        weights = np.asarray(weigh(told), float)
    except FAULTS as error:
        raise LudusError(f"{setting}={path} failed: {where_raised(error)}; fix it") from error
    fault = ""
    if weights.shape != (count,):
        fault = f"an array of the shape {weights.shape} for {count} weights: return ({count},)"
    elif not np.isfinite(weights).all():
        fault = f"the weight {weights[~np.isfinite(weights)][0]}: return finite numbers"
    elif (weights < 0).any():
        fault = f"the weight {weights[weights < 0][0]:g}: return 0 or more"
    elif not 0 < weights.sum() < np.inf:
        fault = f"weights that add up to {weights.sum():g}: give at least one more than 0"
    if fault:
        raise LudusError(f"{setting}={path} returned {fault}")
    return weights
