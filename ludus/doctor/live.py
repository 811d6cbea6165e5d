"""The watcher of a run in progress: takes each line as it is written, looks now and then, keeps one
record per finding.

Pure like all of the doctor: the trainer calls it, and writes down what it says. It looks whenever
the log has grown by a seventh, so that its cost per line stays the same however long the run gets,
and never more often than its share of time.
"""

from __future__ import annotations

import dataclasses
import math
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ludus.doctor.checks import USUALLY, Check, Early, declared
from ludus.doctor.finding import Finding, worst_first
from ludus.doctor.log import AS_GOOD_AS_INFINITE, STEPS, Curve, Log
from ludus.doctor.reference import Reference, track
from ludus.doctor.watch import checked

FIRST_LOOK = 20
"""Lines. Most checks need a dozen."""
GROWTH = 1.15
MOST_TIME = 0.005
"""Share of training time that looking may take: half of what is promised."""
MOST_ROWS = 4000
"""Of a column; longer ones keep every second row."""


class Column:
    """A growing column of numbers that never gets longer than MOST_ROWS."""

    def __init__(self) -> None:
        self.steps, self.values = array("d"), array("d")
        self.stride, self.count = 1, 0

    def add(self, step: float, value: float) -> None:
        if self.count % self.stride == 0:
            self.steps.append(step)
            self.values.append(value)
        self.count += 1
        if len(self.values) > MOST_ROWS:
            self.steps, self.values, self.stride = (
                self.steps[::2],
                self.values[::2],
                self.stride * 2,
            )

    def curve(self, name: str) -> Curve:
        return Curve(name, np.array(self.steps), np.array(self.values))


@dataclasses.dataclass(eq=False)
class Record:
    """A finding as it stands: what it says now, since when it is told, and when it was no longer
    seen (None: it still is)."""

    finding: Finding
    seen: int
    gone: int | None = None
    critical_looks: int = 0
    """In a row."""

    def as_json(self) -> dict[str, Any]:
        return {
            **dataclasses.asdict(self.finding),
            "seen": self.seen,
            "gone": self.gone,
            "critical_looks": self.critical_looks,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Record:
        known = {f.name for f in dataclasses.fields(Finding)}
        finding = Finding(**{k: v for k, v in data.items() if k in known})
        return Record(
            finding, int(data["seen"]), data.get("gone"), int(data.get("critical_looks", 0))
        )


class Watcher:
    """Call `add` with every line; where `due` says so, `look`."""

    def __init__(
        self,
        config: Mapping[str, Any],
        better_low: Iterable[str] = (),
        reference: Reference | None = None,
        began_with: str = "",
        own: Sequence[Check] = (),
    ) -> None:
        """`own`: checks of the user's own."""
        self.config, self.better_low, self.reference = (
            dict(config),
            frozenset(better_low),
            reference,
        )
        self.began_with = began_with
        self.own, self._declared = tuple(own), declared(own)
        self.notes: list[str] = []
        """What checks could not read, as of the last look."""
        self.track: Finding | None = None
        """On or off the recipe's usual track, as of the last look. Not among the findings: a change
        on purpose is off it too."""
        self.records: list[Record] = []
        self.spent = 0.0
        self._columns: dict[str, Column] = {}
        self._lists: dict[str, list[str]] = {}
        self._not_finite: dict[str, int] = {}
        self._rows, self._next = 0, FIRST_LOOK
        self._begin = time.perf_counter()

    # -- what comes in -----------------------------------------------------------------------------

    def add(self, line: Mapping[str, Any], *, diagnostics: bool = False) -> None:
        """One line of metrics.jsonl, or of diagnostics.jsonl."""
        step = float(line[STEPS])
        self._rows += not diagnostics
        for name, value in line.items():
            if isinstance(value, list):
                self._lists[name] = [str(v) for v in value]
            elif isinstance(value, int | float | np.number):
                self._number(name, step, float(value))
            elif value is None:
                self._number(name, step, math.nan)

    def _number(self, name: str, step: float, value: float) -> None:
        if abs(value) < AS_GOOD_AS_INFINITE:
            self._columns.setdefault(name, Column()).add(step, value)
        else:
            self._not_finite.setdefault(name, int(step))

    def log(self) -> Log:
        log = Log("this run", ours=True, config=self.config, began_with=self.began_with)
        log.curves = {name: column.curve(name) for name, column in self._columns.items()}
        log.lists, log.not_finite = dict(self._lists), dict(self._not_finite)
        log.better_low |= self.better_low
        return log

    # -- looking -----------------------------------------------------------------------------------

    def due(self) -> bool:
        return self._rows >= self._next and self.spent <= MOST_TIME * (
            time.perf_counter() - self._begin
        )

    def look(self, step: int, share: float) -> list[Finding]:
        """Examines what there is; returns what is now certain to be critical: at once, or seen in a
        second look."""
        begin = time.perf_counter()
        self._next = max(self._rows + 1, math.ceil(self._rows * GROWTH))
        log = self.log()
        found = checked(log, self.own)
        self.notes = log.notes
        self._update([self._held_back(f, share) for f in found], step)
        self.track = track(log, self.reference) if self.reference is not None else None
        certain = []
        for record in self.records:
            record.critical_looks = record.critical_looks + 1 if _is_critical(record) else 0
            if record.critical_looks == self._early(record.finding).looks:
                certain.append(record.finding)
        self.spent += time.perf_counter() - begin
        return certain

    def by_clock(self, finding: Finding) -> bool:
        """Does it come from wall-clock time, so that another program on the machine can cause
        it?"""
        found = self._declared.get(finding.check)
        return found is not None and found.by_clock

    def _early(self, finding: Finding) -> Early:
        found = self._declared.get(finding.check)
        return found.early if found is not None else USUALLY

    def _held_back(self, finding: Finding, share: float) -> Finding:
        """Less severe where it is too early in the run for what it says."""
        early = self._early(finding)
        if share < early.noted_until:
            return dataclasses.replace(finding, severity="info")
        too_early = finding.severity == "critical" and share < early.critical_from
        return dataclasses.replace(finding, severity="warning") if too_early else finding

    def conclude(self, findings: Iterable[Finding], step: int) -> None:
        """The verdict on the whole run replaces what was seen on the way."""
        self._update([f for f in findings if f.check != "not_seen"], step)

    def _update(self, found: list[Finding], step: int) -> None:
        """One record per finding. Its text may change with the numbers in it, so what is left over
        of a check is taken as the same finding in new words."""
        left = list(self.records)
        for same_words in (True, False):
            rest = []
            for finding in found:
                alike = (
                    r
                    for r in left
                    if r.finding.check == finding.check
                    and (r.finding.cause == finding.cause or not same_words)
                )
                match = next(alike, None)
                if match is None:
                    rest.append(finding)
                    continue
                left.remove(match)
                match.finding, match.gone = finding, None
            found = rest
        for record in left:
            record.gone = step if record.gone is None else record.gone
        self.records += [Record(finding, step) for finding in found]

    @property
    def findings(self) -> list[Finding]:
        """What is seen now, worst first."""
        return worst_first(r.finding for r in self.records if r.gone is None)

    # -- in and out of checkpoints -----------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {"records": [r.as_json() for r in self.records], "next": self._next}

    def load_state(
        self,
        state: Mapping[str, Any],
        lines: Iterable[Mapping[str, Any]],
        diagnostics: Iterable[Mapping[str, Any]],
    ) -> None:
        """As it was at a checkpoint: the log up to there, and what was found."""
        for line in lines:
            self.add(line)
        for line in diagnostics:
            self.add(line, diagnostics=True)
        self.records = [Record.from_json(r) for r in state["records"]]
        self._next = int(state["next"])


def _is_critical(record: Record) -> bool:
    return record.gone is None and record.finding.severity == "critical"
