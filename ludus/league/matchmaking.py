"""Which snapshot to meet next, by the scores against each: 1 for a win, a half for a draw.

A sampler is a function: scores of the policy, oldest snapshot first → a weight for each. One of the
user's own has an import path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ludus.errors import LudusError, nearest
from ludus.imports import is_path
from ludus.league.own_sampler import load_sampler, weights_of

RECENT_SHARE = 0.99  # of draws that fall on the newest tenth
UNKNOWN = 0.5  # score against a snapshot that was not met yet


def uniform(scores: np.ndarray) -> np.ndarray:
    return np.ones(len(scores))


def recent(scores: np.ndarray) -> np.ndarray:
    """Nearly always one of the newest tenth, rarely an older one."""
    count = len(scores)
    newest = max(1, count // 10)
    weights = np.zeros(count)
    weights[-newest:] = (RECENT_SHARE if newest < count else 1.0) / newest
    if newest < count:
        weights[:-newest] = (1 - RECENT_SHARE) / (count - newest)
    return weights


def latest(scores: np.ndarray) -> np.ndarray:
    weights = np.zeros(len(scores))
    weights[-1] = 1.0
    return weights


def hard(scores: np.ndarray) -> np.ndarray:
    """Those that still win: (1 − x)² for a score x against them."""
    return (1 - scores) ** 2 + 1e-3


def even(scores: np.ndarray) -> np.ndarray:
    """Those of equal strength, whether they win half of the games or always draw: x(1 − x)."""
    return scores * (1 - scores) + 1e-3


SAMPLERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    f.__name__: f for f in (uniform, recent, latest, hard, even)
}


SETTING = "league.sampler"


def check_sampler(name: str) -> None:
    """Refuses one that is not there, or does not give a weight to each of a few snapshots."""
    if not is_path(name) and name not in SAMPLERS:
        raise LudusError(
            f"{SETTING}={name} is unknown: {nearest(name, SAMPLERS)} (your own: "
            "package.module:function)"
        )
    for count in (1, 2, 25):
        weights(name, np.linspace(0.0, 1.0, count))


def weights(name: str, scores: np.ndarray) -> np.ndarray:
    """By the sampler of this name or import path."""
    if is_path(name):
        return weights_of(SETTING, name, load_sampler(SETTING, name), scores.copy(), len(scores))
    return SAMPLERS[name](scores)


def draw(
    sampler: str, snapshots: Sequence[int], scores: Mapping[int, float], random: np.random.Generator
) -> int:
    """A snapshot (by its step), oldest first in `snapshots`."""
    weighed = weights(sampler, np.array([scores.get(s, UNKNOWN) for s in snapshots]))
    return int(snapshots[random.choice(len(snapshots), p=weighed / weighed.sum())])
