"""How surely a stage's metric is reached: by the last evaluation, or over the training episodes of
the stage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ludus.intervals import Z, wilson

RECENT_EPISODES = 2000  # older training episodes no longer count
FEWEST_ITERATIONS = 5  # whose means say how much the mean varies


class Measured:
    """A metric since the stage began. Training episodes are grouped by the iteration that they
    ended in: within one, agents of an env and envs of a rollout are alike, so the spread of the
    iterations' means is what the bound is made of."""

    def __init__(self) -> None:
        self.evaluation: tuple[float, float] | None = None  # bounds of the last one
        self.iterations: list[tuple[float, float]] = []  # episodes, and their mean

    def evaluated(self, record: Mapping[str, Any], metric: str) -> None:
        if f"{metric}_low" in record:
            self.evaluation = (float(record[f"{metric}_low"]), float(record[f"{metric}_high"]))

    def trained(self, record: Mapping[str, Any], metric: str) -> None:
        """The episodes of an iteration: `goal/ROLE/GOAL`."""
        role = metric.split("/")[1]
        if metric in record and metric.startswith("goal/"):
            self.iterations.append(
                (float(record[f"episode/{role}/episodes"]), float(record[metric]))
            )
            while sum(count for count, _ in self.iterations[1:]) >= RECENT_EPISODES:
                del self.iterations[0]

    def bound(self, *, share: bool, upper: bool) -> tuple[float, float | None] | None:
        """The lower (or upper) bound, and over how many training episodes; None: too little to
        say."""
        if self.evaluation is not None:
            return self.evaluation[1 if upper else 0], None
        if len(self.iterations) < FEWEST_ITERATIONS:
            return None
        total = sum(count for count, _ in self.iterations)
        mean = sum(count * value for count, value in self.iterations) / total
        spread = sum((count * (value - mean)) ** 2 for count, value in self.iterations) / total**2
        half = Z * math.sqrt(spread * len(self.iterations) / (len(self.iterations) - 1))
        low, high = mean - half, mean + half
        if share:
            inner_low, inner_high = wilson(mean * total, total)
            low, high = max(0.0, min(low, inner_low)), min(1.0, max(high, inner_high))
        return (high if upper else low), total

    def state(self) -> dict[str, Any]:
        return {"evaluation": self.evaluation, "iterations": self.iterations}

    def load_state(self, state: Mapping[str, Any]) -> None:
        evaluation = state["evaluation"]
        self.evaluation = (float(evaluation[0]), float(evaluation[1])) if evaluation else None
        self.iterations = [(float(count), float(mean)) for count, mean in state["iterations"]]
