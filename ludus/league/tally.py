"""Counting who beats whom: recent results with intervals, and lines for matches.jsonl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.intervals import wilson

RECENT = (
    400  # episodes after which older results fade: about what a win rate needs to be known to ±5%
)


class Tally:
    """Episodes, won, drawn, lost by key; results fade as new ones come in."""

    def __init__(self) -> None:
        self.counts: dict[str, np.ndarray] = {}

    def add(self, key: str, result: np.ndarray) -> None:
        counts = self.counts.setdefault(key, np.zeros(4)) + result
        self.counts[key] = counts * min(1.0, RECENT / max(counts[0], 1.0))

    def win_rate(self, key: str, fallback: float = 0.5) -> float:
        counts = self.counts.get(key)
        return float(counts[1] / counts[0]) if counts is not None and counts[0] > 0 else fallback

    def score(self, key: str, fallback: float = 0.5) -> float:
        """The share of points: 1 for a win, a half for a draw."""
        counts = self.counts.get(key)
        return (
            float((counts[1] + 0.5 * counts[2]) / counts[0])
            if counts is not None and counts[0] > 0
            else fallback
        )

    def interval(self, key: str) -> tuple[float, float]:
        counts = self.counts.get(key, np.zeros(4))
        return wilson(float(counts[1]), float(counts[0]))

    def state(self) -> dict[str, list[float]]:
        return {key: counts.tolist() for key, counts in self.counts.items()}

    def load_state(self, state: Mapping[str, list[float]]) -> None:
        self.counts = {key: np.array(counts) for key, counts in state.items()}


class Matches:
    """Results since the last write, by (side, opponent)."""

    def __init__(self) -> None:
        self.pending: dict[tuple[str, str], np.ndarray] = {}

    def add(self, side: str, opponent: str, result: np.ndarray) -> None:
        self.pending[side, opponent] = self.pending.get((side, opponent), np.zeros(4)) + result

    def take(self, agent_steps: int, learner: int) -> list[dict[str, Any]]:
        """Lines for matches.jsonl: the learner is named by the snapshot it has come from."""
        lines = [
            {
                "progress/agent_steps": agent_steps,
                "learner": f"snapshot:{learner}",
                "side": side,
                "opponent": opponent,
                **dict(
                    zip(("episodes", "won", "drawn", "lost"), counts.round(3).tolist(), strict=True)
                ),
            }
            for (side, opponent), counts in self.pending.items()
        ]
        self.pending = {}
        return lines

    def state(self) -> list[list[Any]]:
        return [
            [side, opponent, counts.tolist()] for (side, opponent), counts in self.pending.items()
        ]

    def load_state(self, state: list[list[Any]]) -> None:
        self.pending = {(side, opponent): np.array(counts) for side, opponent, counts in state}
