"""Any scalar of a config may be a schedule over the run's budget.

0.01                    constant
0.05 -> 0.01            linear from the start to the end of the budget
0.05 -> 0.01 @ 0.5      linear over the first half, constant after
cosine 1e-3 -> 1e-5     half a cosine
0:0.05, 0.3:0.02, 1:0   straight lines between points share:value
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass

from ludus.errors import LudusError

Scalar = float | str
"""A number, or a schedule as text."""


@dataclass(frozen=True)
class Schedule:
    """Values at shares of the budget, in rising order; between them a line, or half a cosine."""

    points: tuple[tuple[float, float], ...]
    cosine: bool = False

    def __call__(self, share: float) -> float:
        first, last = self.points[0], self.points[-1]
        if share <= first[0]:
            return first[1]
        if share >= last[0]:
            return last[1]
        for (a, low), (b, high) in itertools.pairwise(self.points):
            if share <= b:
                way = (share - a) / (b - a)
                if self.cosine:
                    way = 0.5 - 0.5 * math.cos(math.pi * way)
                return low + (high - low) * way
        return last[1]

    @property
    def values(self) -> list[float]:
        return [value for _, value in self.points]


_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RAMP = re.compile(rf"(cosine\s+)?({_NUMBER})\s*->\s*({_NUMBER})(?:\s*@\s*({_NUMBER}))?")
_POINT = re.compile(rf"({_NUMBER})\s*:\s*({_NUMBER})")


def parse(scalar: Scalar, name: str = "schedule") -> Schedule:
    """The schedule a config value describes; refuses text that is none, and schedules that run
    backwards."""
    if not isinstance(scalar, str):
        return Schedule(((0.0, float(scalar)),))
    text = scalar.strip()
    if re.fullmatch(_NUMBER, text):
        return Schedule(((0.0, float(text)),))
    ramp = _RAMP.fullmatch(text)
    if ramp:
        end = float(ramp[4]) if ramp[4] else 1.0
        if not 0 < end <= 1:
            raise LudusError(
                f"{name} = '{scalar}' ends at {end} of the budget: use a share above 0 and up to 1"
            )
        return Schedule(((0.0, float(ramp[2])), (end, float(ramp[3]))), cosine=bool(ramp[1]))
    points = [_POINT.fullmatch(part.strip()) for part in text.split(",")]
    if len(points) < 2 or not all(points):
        raise LudusError(
            f"{name} = '{scalar}' is no schedule: write 0.05 -> 0.01, cosine 1e-3 -> 1e-5, or "
            "0:0.05, 0.5:0.02, 1:0.01"
        )
    pairs = tuple((float(p[1]), float(p[2])) for p in points if p)
    for (a, _), (b, _) in itertools.pairwise(pairs):
        if b <= a:
            raise LudusError(
                f"{name} = '{scalar}' runs backwards: the share {b} comes after {a}; put the "
                "points in rising order"
            )
    if pairs[0][0] < 0 or pairs[-1][0] > 1:
        raise LudusError(
            f"{name} = '{scalar}' has shares outside 0 to 1: they are parts of the budget"
        )
    return Schedule(pairs)
