"""The checks of a training log, one file per family. A check takes the log and yields findings; its
name is the finding's.

    @check(family="learning", figure="episode/ROLE/return")
    def return_stands_still(log: Log) -> Iterator[Finding]:
        ...

A docstring has three paragraphs for a newcomer: what the check sees, why it happens, what to do.
The handbook is made of them. Within a family checks run in the order of the file.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ludus.doctor.finding import Finding
from ludus.doctor.log import Log
from ludus.intervals import is_plain

# Causes before symptoms: among equally severe findings the first is the one to fix.
FAMILIES = (
    "gradients",
    "environment",
    "updates",
    "value",
    "entropy",
    "exploration",
    "reward_hacking",
    "self_play",
    "curriculum",
    "memory",
    "learning",
    "throughput",
)


@dataclass(frozen=True)
class Early:
    """How early in a run its watcher may act on a finding, in shares of the budget."""

    critical_from: float = 0.2
    """Until then a critical finding is a warning: a run may still get going."""
    noted_until: float = 0.0
    """Until then it is only a note."""
    looks: int = 2
    """Looks in a row in which a finding has to be critical before the watcher is certain."""


USUALLY = Early()
AT_ONCE = Early(critical_from=0.0, looks=1)
"""For what cannot recover by itself."""
SECOND_HALF = Early(critical_from=0.5)
"""For what says that nothing has been learned yet: some healthy runs begin to learn when a third of
their budget is spent."""


class Check:
    """A function that was declared to be a check; it is called like the function."""

    __name__: str

    def __init__(
        self,
        find: Callable[[Log], Iterable[Finding]],
        family: str,
        figure: tuple[str, ...],
        early: Early,
        by_clock: bool,
    ) -> None:
        self.find, self.family, self.figure = find, family, figure
        self.early, self.by_clock = early, by_clock
        functools.update_wrapper(self, find)

    @property
    def name(self) -> str:
        return self.__name__

    def __call__(self, log: Log) -> Iterable[Finding]:
        return self.find(log)

    def __repr__(self) -> str:
        return f"<check {self.name}>"


def check(
    *,
    family: str,
    figure: str | Iterable[str] = (),
    early: Early = USUALLY,
    by_clock: bool = False,
) -> Callable[[Callable[[Log], Iterable[Finding]]], Check]:
    """Declares a function of one argument, the log, to be a check.

    `family`: one of FAMILIES, or a new one, which comes last.
    `figure`: the metric that shows what the check sees, as in docs/metrics.md; words in capitals
    stand for any name: "learner/ROLE/grad_norm". Of several the first that the log has.
    `early`: how early in a run the watcher may act on it.
    `by_clock`: it goes by wall-clock time, so that another program on the machine can cause it: no
    run is rolled back for it.
    """
    shown = (figure,) if isinstance(figure, str) else tuple(figure)
    return lambda find: Check(find, family, shown, early, by_clock)


def checks_of(family: str) -> tuple[Check, ...]:
    """Those of Ludus, in the order of their file."""
    module = importlib.import_module(f"ludus.doctor.checks.{family}")
    own = (found for found in vars(module).values() if isinstance(found, Check))
    return tuple(found for found in own if found.__module__ == module.__name__)


def in_order(own: Iterable[Check] = ()) -> Iterator[Check]:
    """All checks, causes before symptoms: those of Ludus, and `own` at the end of their family."""
    theirs = list(own)
    for family in FAMILIES:
        yield from checks_of(family)
        yield from (one for one in theirs if one.family == family)
    new = dict.fromkeys(one.family for one in theirs if one.family not in FAMILIES)
    for family in new:
        yield from (one for one in theirs if one.family == family)


def declared(own: Iterable[Check] = ()) -> dict[str, Check]:
    """Every check by its name, which is that of its findings."""
    return {one.name: one for one in in_order(own)}


def curves_of(found: Check, names: Iterable[str], role: str = "") -> list[str]:
    """Which of these metrics show what the check sees. `role`: only those of one role."""
    metrics = list(names)
    for pattern in found.figure:
        parts = (
            re.escape(role) if role and part == "ROLE" else re.sub("[A-Z]{2,}", "[^/]+", part)
            for part in pattern.split("/")
        )
        matching = re.compile("/".join(parts))
        shown = [name for name in metrics if is_plain(name) and matching.fullmatch(name)]
        if shown:
            return shown
    return []
