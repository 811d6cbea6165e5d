"""The doctor at the trainer's side: hands it every line, keeps findings.jsonl, and does what
--doctor.on-critical says.

findings.jsonl holds one line per finding as it stands, and is written anew when one changes:
appended, a finding that lasts would be repeated for ever. A checkpoint's manifest holds the same
records, so that a resumed run has those of its checkpoint.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from ludus.config import flatten
from ludus.doctor.finding import Finding, worst_first
from ludus.doctor.live import Record, Watcher
from ludus.doctor.log import began_with, read_log
from ludus.doctor.options import option
from ludus.doctor.own_checks import load_checks
from ludus.doctor.reference import REFERENCES, find
from ludus.doctor.watch import examine
from ludus.files import read_lines, write_atomically
from ludus.protocols import Layout
from ludus.runs.run import Run

FILE = "findings.jsonl"


class RunDoctor:
    """Watches one run."""

    def __init__(self, run: Run, config: Any, layout: Layout) -> None:
        self.run, self.on_critical = run, config.doctor.on_critical
        self.own = load_checks(config.doctor.checks)
        self._told: set[str] = set()
        goals = layout.describe().get("goal_metrics", {})
        values = json.loads(json.dumps(flatten(config)))  # as config.json has them
        low = [name for name, goal in goals.items() if not goal["higher_is_better"]]
        begun = began_with(run.read_json("config.json"))
        self.watcher = Watcher(values, low, find(REFERENCES, values), begun, self.own)
        self.acts_on: Finding | None = None
        """The finding for which the run is to stop or to be rolled back."""

    @property
    def findings(self) -> list[Finding]:
        return self.watcher.findings

    def after_iteration(self, line: Mapping[str, Any], share: float) -> bool:
        """Takes the iteration's line. True: training should stop here, for `acts_on`."""
        self.watcher.add(line)
        if not self.watcher.due():
            return False
        step = int(line["progress/agent_steps"])
        try:
            certain = self.watcher.look(step, share)
        except (ArithmeticError, ValueError, LookupError) as error:
            # a mistake in the doctor must not cost hours of training
            print(
                f"ludus: the doctor failed at step {step:,} and training goes on: {error}",
                file=sys.stderr,
            )
            return False
        self.write()
        self._tell_of_own_checks(self.watcher.notes)
        if self.on_critical == "rollback":
            certain = [f for f in certain if not self.watcher.by_clock(f)]
        if certain and self.on_critical != "warn":
            self.acts_on = worst_first(certain)[0]
        return self.acts_on is not None

    def _tell_of_own_checks(self, notes: list[str]) -> None:
        """One of the user's checks that fails is mentioned once."""
        for check in self.own:
            failed = [note for note in notes if note.startswith(f"the check {check.name} ")]
            if failed and check.name not in self._told:
                self._told.add(check.name)
                print(f"ludus: {failed[0]}", file=sys.stderr)

    def not_finite(self, culprit: str, step: int) -> None:
        """The trainer met a NaN and will stop: a rollback may go on."""
        if self.on_critical == "rollback":
            rate = option(self.watcher.config, "learning_rate")
            self.acts_on = Finding(
                check="not_finite",
                severity="critical",
                cause=culprit,
                evidence=f"at step {step:,}",
                confidence=0.95,
                fix="lower the learning rate",
                first_step=step,
                overrides={rate: "*0.1"} if rate else {},
            )

    def conclude(self, step: int) -> None:
        """The verdict at the end: what `ludus doctor run` says about the whole log."""
        log = read_log(self.run.path)
        self.watcher.conclude(examine(log, self.own), step)
        self._tell_of_own_checks(log.notes)
        self.write()

    def write(self) -> None:
        text = "".join(json.dumps(record.as_json()) + "\n" for record in self.watcher.records)
        write_atomically(self.run.path / FILE, text)

    def state(self) -> dict[str, Any]:
        return self.watcher.state()

    def load_state(self, state: Mapping[str, Any] | None) -> None:
        """As at the checkpoint; the logs have been cut back to it. What was critical then does not
        stop the run again:
        whoever resumes has seen it."""
        empty = {"records": [], "next": 0}
        self.watcher.load_state(
            state or empty, self.run.metrics(), read_lines(self.run.path / "diagnostics.jsonl")
        )
        self.write()


def read_findings(run: Run) -> list[Record]:
    """What findings.jsonl says, the worst that is still seen first."""
    records = [Record.from_json(line) for line in read_lines(run.path / FILE)]
    order = {id(f): i for i, f in enumerate(worst_first(r.finding for r in records))}
    return sorted(records, key=lambda r: (r.gone is not None, order[id(r.finding)]))
