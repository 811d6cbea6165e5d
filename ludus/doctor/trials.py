"""What trials of a bisection came to, on disk: one file each, so that an interrupted search goes on
where it was."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ludus.doctor.bisect import Measured, Trial
from ludus.doctor.log import Log
from ludus.files import read_json

LAST = 0.2
"""The part of a run, by steps, whose mean is its result."""

Launch = Callable[[Sequence[tuple[Trial, Path]]], None]
"""Runs trials to their end, each in its folder, and writes result.json there: {"levels",
"agent_steps", "seconds", "stopped"}."""


def levels(log: Log) -> dict[str, float]:
    """The mean of every curve over the last fifth of the run's steps."""
    out = {}
    for name, curve in log.curves.items():
        late = curve.values[curve.steps >= (1 - LAST) * log.steps]
        if len(late):
            out[name] = float(late.mean())
    return out


def folder_of(root: Path, trial: Trial) -> Path:
    """A name that does not depend on the order of differences."""
    digest = (
        hashlib.sha256("\n".join(sorted(trial.subset)).encode()).hexdigest()[:12]
        if trial.subset
        else "good"
    )
    return root / f"{digest}-{trial.seed}"


class Trials:
    """Remembers, and launches only what is missing."""

    def __init__(self, root: Path, metric: str, launch: Launch) -> None:
        self.root, self.metric, self.launch = root, metric, launch
        self.launched = 0

    def __call__(self, trials: Sequence[Trial]) -> list[Measured]:
        missing = [(t, folder_of(self.root, t)) for t in trials if self._read(t) is None]
        if missing:
            self.launched += len(missing)
            self.launch(missing)
        return [self._measured(t) for t in trials]

    def _read(self, trial: Trial) -> dict[str, Any] | None:
        return read_result(folder_of(self.root, trial))

    def _measured(self, trial: Trial) -> Measured:
        result = self._read(trial)
        if result is None:
            return Measured(None)
        value = result["levels"].get(self.metric)
        return Measured(
            value, int(result["agent_steps"]), float(result["seconds"]), str(result["stopped"])
        )


def read_result(folder: Path) -> dict[str, Any] | None:
    try:
        result: dict[str, Any] = read_json(folder / "result.json")
    except (OSError, ValueError):
        return None
    return result


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Whole or not at all."""
    partial = folder / "result.partial"
    partial.write_text(json.dumps(result))
    os.replace(partial, folder / "result.json")
