"""Did the return rise, and did it stay? The question that most checks ask before they call a symptom an illness."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ludus.doctor.log import Curve, Log
from ludus.doctor.statistics import certainty, mean, windows

FEWEST_ROWS = 12
"""Four windows of three rows: with less, a rise cannot be told from noise."""
SURE = 3.0
"""Standard errors. The best of ten windows beats the first by two or so through luck alone."""
WOBBLES = 4.0
"""A rise is several times what one window differs from the next: a moving average drifts by three or so through luck alone."""
LATE = 0.3
"""A log that starts after this share of its last step saw nothing of the beginning."""


@dataclass(frozen=True)
class Progress:
    start: float
    best: float
    end: float
    best_step: int
    wobble: float
    """Median difference between neighbouring windows."""
    learned: bool
    whole: bool
    """Long enough to judge, and the beginning is in it."""

    @property
    def gain(self) -> float:
        return self.best - self.start

    @property
    def lost(self) -> float:
        """Share of the gain that is gone at the end: above 1 if the end is worse than the start."""
        return (self.best - self.end) / self.gain if self.gain > 0 else 0.0

    @property
    def flat(self) -> bool:
        return self.whole and not self.learned

    @property
    def failing(self) -> bool:
        """Nothing was learnt, or most of it is gone."""
        return self.flat or (self.whole and self.learned and self.lost > 0.5)


def progress(curve: Curve | None) -> Progress:
    """How a curve whose higher values are better has gone. What cannot be judged is neither flat nor learnt."""
    if curve is None or len(curve) < FEWEST_ROWS:
        return Progress(math.nan, math.nan, math.nan, 0, math.nan, learned=False, whole=False)
    parts = windows(curve.values)
    means = np.array([part.mean() for part in parts])
    at = int(means.argmax())
    steps = windows(curve.steps)
    wobble = float(np.median(np.abs(np.diff(means))))
    gain = float(means[at] - means[0])
    sure = certainty(mean(parts[0]), mean(parts[at])) >= SURE
    learned = gain > 0 and (sure or gain >= 2 * WOBBLES * wobble) and gain >= WOBBLES * wobble * (1 - 1e-9)
    whole = curve.first_step <= LATE * curve.last_step
    return Progress(float(means[0]), float(means[at]), float(means[-1]), int(steps[at][0]), wobble, learned, whole)


def of_role(log: Log, role: str) -> Progress:
    """The return of a role. Among several learning roles a return says little: the others learn too."""
    judged = progress(log.of(role, "return"))
    if competitive(log):
        return Progress(judged.start, judged.best, judged.end, judged.best_step, judged.wobble, judged.learned, whole=False)
    return judged


def competitive(log: Log) -> bool:
    return sum(log.get(f"episode/{role}/return") is not None for role in log.roles()) > 1
