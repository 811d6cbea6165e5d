"""Which tasks to play: those on which the score moves, and those that are played better than at
random.

A pool of tasks. Per task a fast and a slow moving average of its scores; progress is how far they
are apart, and a tenth of what the fast one is above the score of random play. By default a task is
drawn with a weight between 0 and 1, the sigmoid of its progress in standard deviations from the
mean of the pool, and 1 more while it was completed fewer than twice (`samplers.py`).

What an episode costs does not depend on the size of the pool: mean and deviation are kept as
running sums, and a task is drawn by proposing one at random and accepting it in proportion to its
weight (more than one in two is). Looking the whole pool over, to replace the tasks that lead
nowhere, happens once in three times as many completed episodes as there are tasks.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ludus.config import TasksConfig
from ludus.curriculum.buckets import Bucket
from ludus.curriculum.samplers import find_sampler

ABOVE_RANDOM = 0.1  # what being better than random play counts beside moving
SEEN = 2  # completions from which on a task is no longer new
REVIEW = 3  # completed episodes per task between two looks at the whole pool
LEAST_REVIEW = 256  # and at least so many


class TaskPool:
    """Tasks by their place in the pool. `number` is unique over the run: an evicted task's late
    results find no place."""

    def __init__(
        self, config: TasksConfig, buckets: Sequence[Bucket], baseline: float, source: random.Random
    ) -> None:
        self.config, self.buckets, self.baseline = config, buckets, baseline
        self.sampler = find_sampler(config.sampler)
        possible = math.prod(bucket.count for bucket in buckets)
        self.complete_list = possible <= config.pool  # then there is nothing to replace a task with
        if self.complete_list:
            self.tasks = [
                tuple(task) for task in itertools.product(*(bucket.every() for bucket in buckets))
            ]
        else:
            self.tasks = [self.new_task(source) for _ in range(config.pool)]
        size = len(self.tasks)
        self.number, self.next_number = list(range(size)), size
        self.place = {number: place for place, number in enumerate(self.number)}
        self.fast, self.slow, self.progress = [0.0] * size, [0.0] * size, [0.0] * size
        self.count = [0] * size
        self.new = list(range(size))  # places of tasks seen fewer than SEEN times, in no order
        self.place_in_new = {place: place for place in self.new}
        self.known = 0  # tasks with a score
        self.sum, self.sum_of_squares = 0.0, 0.0  # of the progress of known tasks
        self.completed, self.reviewed, self.evicted = 0, 0, 0

    def new_task(self, source: random.Random) -> tuple[float, ...]:
        return tuple(bucket.draw(source) for bucket in self.buckets)

    # -- one episode -------------------------------------------------------------------------------

    def complete(self, number: int, score: float, episodes: int = 1) -> None:
        """Notes `episodes` finished episodes of a task with this mean score."""
        self.completed += episodes
        place = self.place.get(number)
        if place is None:
            return
        before = self.count[place]
        old = self.progress[place]
        if before == 0:
            self.fast[place] = self.slow[place] = score
            self.known += 1
        else:
            self.fast[place] += (1 - (1 - self.config.fast_rate) ** episodes) * (
                score - self.fast[place]
            )
            self.slow[place] += (1 - (1 - self.config.slow_rate) ** episodes) * (
                score - self.slow[place]
            )
        self.count[place] = before + episodes
        if before < SEEN <= before + episodes:
            self.no_longer_new(place)
        fast, slow = self.fast[place], self.slow[place]
        progress = abs(fast - slow) + ABOVE_RANDOM * max(fast - self.baseline, 0.0)
        self.progress[place] = progress
        self.sum += progress - old
        self.sum_of_squares += progress * progress - old * old

    def draw(self, source: random.Random) -> int:
        """The place of a task, drawn by weight."""
        return self.sampler.draw(self, source)

    def standard(self) -> tuple[float, float]:
        """Mean and deviation of progress, over tasks that have a score."""
        mean = self.sum / max(1, self.known)
        variance = self.sum_of_squares / max(1, self.known) - mean * mean
        return mean, math.sqrt(variance) if variance > 1e-12 * mean * mean else 0.0

    def no_longer_new(self, place: int) -> None:
        at, last = self.place_in_new.pop(place), self.new.pop()
        if last != place:
            self.new[at], self.place_in_new[last] = last, at

    # -- the whole pool ----------------------------------------------------------------------------

    def review(self, source: random.Random) -> None:
        """Where enough was completed since the last time: replaces the tasks of least worth, and
        adds sums up anew."""
        if self.completed - self.reviewed < max(LEAST_REVIEW, REVIEW * len(self.tasks)):
            return
        self.reviewed = self.completed
        if not self.complete_list:
            for place in self.least():
                self.replace(place, source)
        progress = np.array(self.progress)  # 0 where there is no score
        # without what rounding added up
        self.sum, self.sum_of_squares = float(progress.sum()), float(progress @ progress)

    def least(self) -> list[int]:
        """The tasks that may be evicted: of those completed often enough, the share with the least
        worth."""
        worth = self.sampler.worth(self)
        if worth is None:
            return []
        known = np.flatnonzero(np.array(self.count) >= self.config.evict_after)
        order = worth[known].argsort(kind="stable")
        return known[order[: int(self.config.evict_share * len(known))]].tolist()

    def replace(self, place: int, source: random.Random) -> None:
        """A new task, about which nothing is known, in the place of an evicted one."""
        del self.place[self.number[place]]
        self.known -= self.count[place] > 0
        if self.count[place] >= SEEN:
            self.place_in_new[place] = len(self.new)
            self.new.append(place)
        self.tasks[place] = self.new_task(source)
        self.number[place], self.next_number = self.next_number, self.next_number + 1
        self.place[self.number[place]] = place
        self.fast[place] = self.slow[place] = self.progress[place] = 0.0
        self.count[place] = 0
        self.evicted += 1

    def weights(self) -> np.ndarray:
        return self.sampler.weights(self)

    def entropy(self) -> float:
        """Of the draw, as a share of that of a uniform one."""
        shares = self.weights()
        shares = shares[shares > 0] / shares.sum()
        return float(-(shares * np.log(shares)).sum() / math.log(len(self.tasks)))

    # -- checkpoints -------------------------------------------------------------------------------

    LISTS = ("number", "fast", "slow", "progress", "count", "new")
    NUMBERS = (
        "next_number",
        "known",
        "completed",
        "reviewed",
        "evicted",
        "baseline",
        "sum",
        "sum_of_squares",
    )

    def state(self) -> dict[str, Any]:
        return {
            "tasks": self.tasks,
            **{name: getattr(self, name) for name in (*self.LISTS, *self.NUMBERS)},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.tasks = [tuple(task) for task in state["tasks"]]
        for name in (*self.LISTS, *self.NUMBERS):
            setattr(self, name, state[name])
        self.place_in_new = {place: i for i, place in enumerate(self.new)}
        self.place = {number: place for place, number in enumerate(self.number)}
