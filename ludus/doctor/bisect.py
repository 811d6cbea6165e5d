"""Which of the differences between a run that works and one that does not makes it fail? Found by
running subsets of them.

A *trial* is the good run with some of the bad one's differences and a seed. Whoever calls hands in
`measure`, which runs trials (or remembers them) and tells a number for each; nothing here knows
what a run is. The search is delta debugging (Zeller & Hildebrandt 2002): halves first, then finer
parts and what is left without them, until every difference that remains is needed. Then the rest is
tried without the culprits, in case there is a second cause, and the culprits one by one.

A trial fails where its number is nearer to the bad run's than to the good one's. Seeds are paired:
every subset is tried with the same ones, in the same order, and no more of them than are needed
until the confidence bound of the mean leaves the middle.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ludus.errors import LudusError

Subset = frozenset[str]
Z = 1.96
SMALLEST_NOISE = 0.05
"""Share of the gap between good and bad: a few seeds that happen to agree are no proof of no
noise."""
NARROW = 2.0
"""Standard errors that good and bad must be apart before anything can be told."""


@dataclass(frozen=True)
class Trial:
    subset: Subset
    seed: int


@dataclass(frozen=True)
class Measured:
    """What a trial came to. `value` None: it could not be run (the settings do not go together).
    `stopped`: it broke off, with the reason, which counts as failing."""

    value: float | None
    agent_steps: int = 0
    seconds: float = 0.0
    stopped: str = ""


Measure = Callable[[Sequence[Trial]], list[Measured]]


@dataclass(frozen=True)
class Verdict:
    """Of one subset: does it fail, in how many of how many seeds, how sure."""

    fails: bool
    failed: int
    seeds: int
    certainty: float
    possible: bool = True

    def __str__(self) -> str:
        return f"{self.failed} of {self.seeds} seeds" if self.possible else "cannot be run"


@dataclass
class Cause:
    """Differences that together make it fail, and none of which can be left out."""

    keys: tuple[str, ...]
    verdict: Verdict
    provable: float
    """What so few seeds can prove at most: three good and three bad numbers fall apart by chance
    once in twenty."""
    alone: dict[str, Verdict] = field(default_factory=dict)
    """Of a cause of several: each by itself."""

    @property
    def certainty(self) -> float:
        return min(
            self.provable,
            self.verdict.certainty * math.prod(v.certainty for v in self.alone.values()),
        )


@dataclass
class Answer:
    differences: tuple[str, ...]
    causes: list[Cause]
    good: list[float]
    bad: list[float]
    tried: dict[Subset, Verdict]
    runs: int
    agent_steps: int
    seconds: float

    @property
    def harmless(self) -> dict[str, Verdict]:
        """Single differences that were tried by themselves and do not fail."""
        return {
            next(iter(s)): v
            for s, v in self.tried.items()
            if len(s) == 1 and not v.fails and v.possible
        }


class Bisect:
    """`differences` likeliest first; `jobs`: trials that `measure` may run at the same time."""

    def __init__(
        self, differences: Sequence[str], seeds: Sequence[int], measure: Measure, jobs: int = 1
    ) -> None:
        if not differences:
            raise LudusError("the runs do not differ in any setting: there is nothing to bisect")
        self.differences, self.seeds, self.measure, self.jobs = (
            tuple(differences),
            list(seeds),
            measure,
            jobs,
        )
        self.known: dict[Trial, Measured] = {}
        self.tried: dict[Subset, Verdict] = {}
        self.good = self.bad = self.noise = 0.0

    def search(self) -> Answer:
        everything = frozenset(self.differences)
        good, bad = self._anchors(everything)
        causes, rest = [], list(self.differences)
        while rest and self.fails(frozenset(rest)):
            keys = self._smallest(rest)
            alone = {k: self.verdict(frozenset([k])) for k in keys} if len(keys) > 1 else {}
            provable = 1 - 1 / math.comb(2 * len(self.seeds), len(self.seeds))
            confirmed = self._confirm(frozenset(keys))
            if not confirmed.fails:
                # its first seeds were unlucky: with all of them it does not fail, and the search
                # goes on elsewhere
                continue
            causes.append(Cause(tuple(keys), confirmed, provable, alone))
            rest = [d for d in rest if d not in keys]
        done = self.known.values()
        steps, seconds = sum(m.agent_steps for m in done), sum(m.seconds for m in done)
        return Answer(
            self.differences, causes, good, bad, dict(self.tried), len(self.known), steps, seconds
        )

    # -- good and bad ------------------------------------------------------------------------------

    def _anchors(self, everything: Subset) -> tuple[list[float], list[float]]:
        """Both ends with all seeds: what good and bad is, and how noisy."""
        trials = [Trial(s, seed) for s in (frozenset[str](), everything) for seed in self.seeds]
        self._run(trials)
        good, bad = (
            [self._value(t) for t in trials if t.subset == s]
            for s in (frozenset[str](), everything)
        )
        if any(math.isnan(v) for v in good):
            raise LudusError(
                "the good run does not run to its end with these seeds: choose another, or a "
                "shorter budget"
            )
        finite = [v for v in bad if not math.isnan(v)]
        self.good = statistics.fmean(good)
        # a bad run that always breaks off has no number: then every run that does not is good
        self.bad = statistics.fmean(finite) if finite else math.nan
        if not finite:
            self.noise = 1.0
        else:
            gap = self.bad - self.good
            spread = [statistics.variance(v) if len(v) > 1 else 0.0 for v in (good, finite)]
            self.noise = max(math.sqrt(statistics.fmean(spread)), SMALLEST_NOISE * abs(gap))
            error = self.noise * math.sqrt(1 / len(good) + 1 / len(finite))
            if abs(gap) <= NARROW * error or gap == 0:
                raise LudusError(
                    f"good ({self.good:.4g}) and bad ({self.bad:.4g}) are only "
                    f"{abs(gap) / error if error else 0:.1f} standard errors "
                    f"apart over {len(good)} seeds: the failure does not show; use more seeds, a "
                    "longer budget or another --metric"
                )
        self.tried[frozenset()] = self._judge(frozenset(), self.seeds)
        self.tried[everything] = self._judge(everything, self.seeds)
        return good, bad

    # -- trials ------------------------------------------------------------------------------------

    def _run(self, trials: Sequence[Trial]) -> None:
        new = [t for t in trials if t not in self.known]
        if new:
            self.known.update(zip(new, self.measure(new), strict=True))

    def _value(self, trial: Trial) -> float:
        measured = self.known[trial]
        return math.nan if measured.stopped or measured.value is None else measured.value

    def _bad(self, trial: Trial) -> bool:
        """Nearer to bad than to good; broken off counts as bad."""
        value = self._value(trial)
        if math.isnan(value):
            return bool(self.known[trial].stopped)
        return not math.isnan(self.bad) and abs(value - self.bad) < abs(value - self.good)

    def _judge(self, subset: Subset, seeds: Sequence[int]) -> Verdict:
        trials = [Trial(subset, seed) for seed in seeds]
        failed = sum(self._bad(t) for t in trials)
        values = [v for t in trials if not math.isnan(v := self._value(t))]
        possible = bool(values) or any(self.known[t].stopped for t in trials)
        if not values or math.isnan(self.bad):
            return Verdict(failed * 2 > len(trials), failed, len(trials), 0.9, possible)
        middle = (self.good + self.bad) / 2
        broken = len(trials) - len(values)
        mean = (sum(values) + broken * self.bad) / len(trials)
        errors = abs(mean - middle) / (self.noise / math.sqrt(len(trials)))
        fails = abs(mean - self.bad) < abs(mean - self.good)
        return Verdict(
            fails, failed, len(trials), 0.5 * (1 + math.erf(errors / math.sqrt(2))), possible
        )

    def verdict(self, subset: Subset) -> Verdict:
        """Seed after seed (as many at once as there are jobs) until the bound of the mean leaves
        the middle."""
        if subset in self.tried:
            return self.tried[subset]
        used: list[int] = []
        while len(used) < len(self.seeds):
            batch = self.seeds[len(used) : len(used) + self.jobs]
            self._run([Trial(subset, seed) for seed in batch])
            used += batch
            judged = self._judge(subset, used)
            if not judged.possible or judged.certainty > SURE:
                break
        self.tried[subset] = judged
        return judged

    def _confirm(self, subset: Subset) -> Verdict:
        """With all seeds: what is accused deserves as much evidence as good and bad got."""
        self._run([Trial(subset, seed) for seed in self.seeds])
        self.tried[subset] = self._judge(subset, self.seeds)
        return self.tried[subset]

    def fails(self, subset: Subset) -> bool:
        """What cannot be run fails as little as the good run: it explains nothing."""
        return bool(subset) and self.verdict(subset).fails

    # -- delta debugging ---------------------------------------------------------------------------

    def _smallest(self, items: list[str]) -> list[str]:
        """A failing part of these of which nothing can be left out."""
        parts = 2
        while len(items) >= 2:
            chunks = _split(items, parts)
            smaller = next((c for c in chunks if self.fails(frozenset(c))), None)
            if smaller is not None:
                items, parts = smaller, 2
                continue
            others = [[i for i in items if i not in c] for c in chunks] if parts > 2 else []
            smaller = next((c for c in others if self.fails(frozenset(c))), None)
            if smaller is not None:
                items, parts = smaller, max(parts - 1, 2)
            elif parts >= len(items):
                break
            else:
                parts = min(len(items), 2 * parts)
        return items


SURE = 0.5 * (1 + math.erf(Z / math.sqrt(2)))


def _split(items: list[str], parts: int) -> list[list[str]]:
    """In consecutive parts of about equal size, the larger ones last: the likeliest suspects are
    alone soonest."""
    ends = [len(items) * i // parts for i in range(parts + 1)]
    return [items[a:b] for a, b in itertools.pairwise(ends) if b > a]
