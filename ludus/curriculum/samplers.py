"""Which task an env plays next, found by name (curriculum.tasks.sampler) or by import path.

One of the user's own is a function: TaskScores → a weight per task. It is called once per
iteration, and has no state: what it may depend on is kept with the pool, so that a resumed run
draws as one that was never interrupted.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ludus.errors import LudusError, nearest
from ludus.imports import is_path
from ludus.league.own_sampler import load_sampler, weights_of

if TYPE_CHECKING:
    from ludus.curriculum.learning_progress import TaskPool

SETTING = "curriculum.tasks.sampler"
NEW = 1.0  # weight that a new task has on top


class Sampler(Protocol):
    """What draws tasks from a pool."""

    def draw(self, pool: TaskPool, source: random.Random) -> int:
        """The place of a task."""

    def weights(self, pool: TaskPool) -> np.ndarray:
        """How often each task is drawn, in relative numbers."""

    def worth(self, pool: TaskPool) -> np.ndarray | None:
        """Per task what tells which to keep: those of least make room for new ones. None: all
        stay."""


class LearningProgress:
    """The sigmoid of a task's progress in standard deviations from the mean, and 1 more while the
    task is new."""

    def draw(self, pool: TaskPool, source: random.Random) -> int:
        """Proposes by weights that are never below the real ones: 1 for every task, NEW more for
        new ones."""
        size, extra = len(pool.tasks), NEW * len(pool.new)
        mean, deviation = pool.standard()
        while True:
            at = source.random() * (extra + size)
            if at < extra:
                return pool.new[int(at / NEW)]
            place = min(int(at - extra), size - 1)
            if source.random() < self.weight(pool, place, mean, deviation):
                return place

    def weight(self, pool: TaskPool, place: int, mean: float, deviation: float) -> float:
        """Without what new tasks have on top."""
        z = (pool.progress[place] - mean) / deviation if pool.count[place] and deviation else 0.0
        return 1.0 / (1.0 + math.exp(-min(max(z, -50.0), 50.0)))

    def weights(self, pool: TaskPool) -> np.ndarray:
        standard = pool.standard()
        places = range(len(pool.tasks))
        weights = np.array([self.weight(pool, place, *standard) for place in places])
        weights[pool.new] += NEW
        return weights

    def worth(self, pool: TaskPool) -> np.ndarray | None:
        return np.array(pool.progress)


class Uniform:
    """Each as often."""

    def draw(self, pool: TaskPool, source: random.Random) -> int:
        return int(source.random() * len(pool.tasks))

    def weights(self, pool: TaskPool) -> np.ndarray:
        return np.ones(len(pool.tasks))

    def worth(self, pool: TaskPool) -> np.ndarray | None:
        return None


# -- the user's own --------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskScores:
    """What a sampler of the user's own is told: an entry per task of the pool."""

    values: Mapping[str, np.ndarray]
    """Of the parameters that vary, by name."""
    episodes: np.ndarray
    """How many were completed."""
    fast: np.ndarray
    """Fast moving average of the scores (higher is better); 0 before the first."""
    slow: np.ndarray
    """Slow moving average of them."""
    baseline: float
    """Score of random play."""


class OwnSampler:
    """By the weights of a function of the user's own. Tasks of least weight make room."""

    def __init__(self, path: str) -> None:
        self.path, self.weigh = path, load_sampler(SETTING, path)
        self._known = (-1, -1)  # what the weights were computed from
        self._weights, self._sums = np.zeros(0), list[float]()

    def weights(self, pool: TaskPool) -> np.ndarray:
        known = (pool.completed, pool.evicted)
        if known != self._known:
            told, count = scores_of(pool), len(pool.tasks)
            self._weights = weights_of(SETTING, self.path, self.weigh, told, count)
            self._sums, self._known = self._weights.cumsum().tolist(), known
        return self._weights.copy()

    def draw(self, pool: TaskPool, source: random.Random) -> int:
        self.weights(pool)
        return source.choices(range(len(pool.tasks)), cum_weights=self._sums)[0]

    def worth(self, pool: TaskPool) -> np.ndarray | None:
        return self.weights(pool)


def scores_of(pool: TaskPool) -> TaskScores:
    columns = np.array(pool.tasks, float).T
    return TaskScores(
        {bucket.name: column for bucket, column in zip(pool.buckets, columns, strict=True)},
        np.array(pool.count),
        np.array(pool.fast),
        np.array(pool.slow),
        pool.baseline,
    )


SAMPLERS: dict[str, type[LearningProgress | Uniform]] = {
    "learning_progress": LearningProgress,
    "uniform": Uniform,
}


def find_sampler(name: str) -> Sampler:
    """The sampler of this name or import path."""
    if is_path(name):
        return OwnSampler(name)
    if name not in SAMPLERS:
        raise LudusError(
            f"{SETTING}={name} is unknown: {nearest(name, SAMPLERS)} (your own: "
            "package.module:function)"
        )
    return SAMPLERS[name]()
