"""Did the return rise, and did it stay? The question that most checks ask before they call a
symptom an illness."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ludus.doctor.log import Curve, Log
from ludus.doctor.statistics import Array, Noise, certainty, head, noise, tail, windows

FEWEST_ROWS = 12
"""Four windows of three rows: with less, a rise cannot be told from noise."""
SURE = 3.0
SURE_OF_BEST = 3.5
"""Standard errors. The first is for the largest of a dozen ways to cut a curve in two, the second
for the best window of ten:
luck alone gets to about 2.5."""
CUTS = (0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LITTLE = 0.5
ALIKE = 1e-6
ONE_SIDE = 0.025
"""Chance on either side of an interval of 95%."""
LATE = 0.3
"""A log that starts after this share of its last step saw nothing of the beginning."""


@dataclass(frozen=True)
class Progress:
    start: float
    best: float
    end: float
    best_step: int
    noticeable: float
    """The smallest rise that would have been told from noise."""
    fall: float
    """Standard errors between the best window and the last."""
    worse: bool
    """The whole last half lies below the first rows, or the end is surely below the start."""
    learned: bool
    whole: bool
    """Long enough to judge, and the beginning is in it."""
    measure: str = "return"
    """What rose or did not."""

    @property
    def gain(self) -> float:
        return self.best - self.start

    @property
    def lost(self) -> float:
        """Share of the gain that is gone at the end, as far as it is sure: above 1 if the end is
        worse than the start."""
        return (self.best - self.end) / self.gain if self.gain > 0 and self.fall >= SURE else 0.0

    @property
    def flat(self) -> bool:
        return self.whole and not self.learned

    @property
    def little(self) -> bool:
        """So small a rise that the short episodes of a run's first rows may account for it."""
        return self.whole and self.gain < LITTLE * abs(self.start)

    @property
    def failing(self) -> bool:
        """Nothing was learnt, or most of it is gone."""
        return self.flat or (self.whole and self.learned and self.lost > 0.5)


def progress(curve: Curve | None) -> Progress:
    """How a curve whose higher values are better has gone. What cannot be judged is neither flat
    nor learnt."""
    if curve is None or len(curve) < FEWEST_ROWS:
        return Progress(
            math.nan, math.nan, math.nan, 0, math.nan, 0.0, worse=False, learned=False, whole=False
        )
    of, parts = noise(curve.values), windows(curve.values)
    means = [float(part.mean()) for part in parts]
    at = max(range(len(means)), key=means.__getitem__)
    return Progress(
        start=means[0],
        best=means[at],
        end=means[-1],
        best_step=int(windows(curve.steps)[at][0]),
        noticeable=SURE * math.sqrt(2) * of.error(len(curve) / 2),
        fall=-certainty(parts[at], parts[-1], of),
        worse=bool(tail(curve.values).max() < head(curve.values, 0.03).min())
        or -certainty(parts[0], parts[-1], of) >= SURE_OF_BEST,
        learned=_rises(curve.values, of) or certainty(parts[0], parts[at], of) >= SURE_OF_BEST,
        whole=curve.first_step <= LATE * curve.last_step,
    )


def _rises(values: Array, of: Noise) -> bool:
    """Is the part after some cut surely higher than the part before it, or everything late above
    everything early?"""
    if tail(values, 0.3).min() > head(values, 0.03).max():
        return True
    cuts = {max(2, round(share * len(values))) for share in CUTS}
    return any(certainty(values[:cut], values[cut:], of) >= SURE for cut in cuts)


def of_role(log: Log, role: str) -> Progress:
    """The return of a role. Among several learning roles a return says little: the others learn
    too. Where its own past is among its opponents, a fall says little: they get stronger with it.
    Of a curriculum, and of a game whose values follow a schedule, only what was logged since the
    last change counts. Nothing is judged by envs' first episodes."""
    sooner = same_but_sooner(log, role)
    curve = sooner or log.of(role, "return")
    here = log.in_this_game(curve) if curve is not None else None
    judged = progress(here)
    judged = (
        judged
        if sooner is None
        else dataclasses.replace(judged, measure="episode length, shorter counting as better")
    )
    # what came before was another game: what it had learnt there is not judged
    if here is not curve:
        judged = dataclasses.replace(judged, learned=True)
    judged = (
        judged if log.get("league/pool/win_rate") is None else dataclasses.replace(judged, fall=0.0)
    )
    return (
        dataclasses.replace(judged, whole=False)
        if competitive(log) or still_first_episodes(log, role)
        else judged
    )


def still_first_episodes(log: Log, role: str) -> bool:
    """Is too much of the log from before every env has had an episode? Those that end first are the
    short ones, which earn otherwise than the rest: without them the beginning is missing."""
    curve = log.of(role, "return")
    return curve is not None and curve.last_step < long_enough_at(log, curve)


def long_enough_at(log: Log, curve: Curve) -> float:
    """The step by which enough of the log comes after the first episodes; infinite while those are
    not over."""
    later = log.after_first_episodes(curve)
    return later.first_step / LATE if len(later) else math.inf


def same_but_sooner(log: Log, role: str) -> Curve | None:
    """Where every episode earns the same sum above zero at its end, and episodes differ in length,
    a discounted learner is paid for being quick: lengths, their sign turned, are what it learns by.
    None where the return says it all."""
    returns, lengths = log.get(f"episode/{role}/return"), log.get(f"episode/{role}/length")
    if (
        returns is None
        or lengths is None
        or len(returns) < FEWEST_ROWS
        or len(lengths) != len(returns)
    ):
        return None
    least = float(returns.values.min())
    if (
        least <= 0
        or float(np.ptp(returns.values)) > ALIKE * least
        or float(np.ptp(lengths.values)) == 0
    ):
        return None
    return Curve(lengths.name, lengths.steps, -lengths.values)


def competitive(log: Log) -> bool:
    return (
        log.self_play
        or sum(log.get(f"episode/{role}/return") is not None for role in log.roles()) > 1
    )


@dataclass(frozen=True)
class Fall:
    """From the evaluation that was most surely good to the last."""

    curve: Curve
    best: int
    """Which evaluation it was."""
    sure: float
    """Share of that value that is gone, as far as the intervals say so."""

    @property
    def step(self) -> int:
        return int(self.curve.steps[self.best])


def sure_fall(log: Log, curve: Curve, curves: int) -> Fall | None:
    """Does the whole of the last interval lie below that of some earlier evaluation, and would luck
    not do that? The best of many evaluations of many curves is a lucky one: the more there are, the
    wider an interval has to be to hold in all of them."""
    low, high = log.get(f"{curve.name}_low"), log.get(f"{curve.name}_high")
    if low is None or high is None or len(low) != len(curve) or len(high) != len(curve):
        return None
    best = int(low.values[:-1].argmax())
    if not float(high.values[-1]) < float(low.values[best]):
        return None
    value, last = float(curve.values[best]), float(curve.values[-1])
    error = math.hypot(value - float(low.values[best]), float(high.values[-1]) - last)
    wider = NormalDist().inv_cdf(1 - ONE_SIDE / (curves * (len(curve) - 1))) / NormalDist().inv_cdf(
        1 - ONE_SIDE
    )
    return (
        Fall(curve, best, (value - last - error) / (abs(value) or 1.0))
        if value - last > wider * error
        else None
    )
