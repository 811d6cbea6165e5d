"""Runs the trials of a bisection: each in a process and a folder of its own, some at the same time.

`python -m ludus.examine.launch FOLDER` is one trial: it trains what FOLDER/trial.json says (or goes
on where it stopped) and writes FOLDER/result.json.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ludus import api
from ludus.config import unflatten
from ludus.doctor.bisect import Trial
from ludus.doctor.log import read_log
from ludus.doctor.options import CHOICES, sections_of
from ludus.doctor.trials import levels, read_result, write_result
from ludus.errors import LudusError
from ludus.runs import checkpoint
from ludus.runs.run import Run
from ludus.training import start

BULKY = ("checkpoints", "replays", "snapshots", "discarded")
POLL_SECONDS = 0.1


class Launcher:
    """`good` and `bad` are settings by dotted name; a trial has those of the good run but for its
    subset."""

    def __init__(
        self,
        good: Mapping[str, Any],
        bad: Mapping[str, Any],
        jobs: int,
        told: Callable[[Trial, Path], None] = lambda t, f: None,
    ) -> None:
        self.good, self.bad, self.jobs, self.told = good, bad, jobs, told

    def settings(self, trial: Trial) -> dict[str, Any]:
        values = dict(self.good)
        for choice in trial.subset & CHOICES.keys():
            # a component brings its own settings, and takes those of the other one with it
            mine, theirs = (sections_of(v).get(choice, "") for v in (self.good, self.bad))
            values = {n: v for n, v in values.items() if not (mine and n.startswith(mine))}
            values |= {n: v for n, v in self.bad.items() if theirs and n.startswith(theirs)}
        for key in trial.subset:
            if key in self.bad:
                values[key] = self.bad[key]
            else:
                values.pop(key, None)
        return {**values, "seed": trial.seed}

    def __call__(self, trials: Sequence[tuple[Trial, Path]]) -> None:
        waiting, running = list(trials), dict[subprocess.Popen, tuple[Trial, Path]]()
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    trial, folder = waiting.pop(0)
                    running[self._start(trial, folder)] = (trial, folder)
                time.sleep(POLL_SECONDS)
                for process in [p for p in running if p.poll() is not None]:
                    trial, folder = running.pop(process)
                    if not (folder / "result.json").exists():
                        why = (folder / "errors.txt").read_text().strip()[-300:]
                        raise LudusError(
                            f"a trial of the bisection ended without a result ({folder}): "
                            f"{why or 'killed'}"
                        )
                    self.told(trial, folder)
        finally:
            # interrupted: trials stop after their iteration, with a checkpoint, and are resumed
            # another time
            for process in running:
                process.terminate()
            for process in running:
                process.wait()

    def _start(self, trial: Trial, folder: Path) -> subprocess.Popen:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "trial.json").exists():
            (folder / "trial.json").write_text(
                json.dumps(
                    {"subset": sorted(trial.subset), "values": self.settings(trial)}, indent=1
                )
            )
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        with open(folder / "errors.txt", "w") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "ludus.examine.launch", str(folder)],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=env,
            )


def run_trial(folder: Path) -> None:
    """A bisection that was killed may have left this very trial running, and two may share a
    folder: then one process trains, and the other waits for its result."""
    import fcntl

    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if read_result(folder) is None:
            _train(folder)


def _train(folder: Path) -> None:
    run = folder / "run"
    stopped, possible = "", True
    try:
        if (run / "config.json").exists() and checkpoint.steps(Run(run)):
            api.resume(run, quiet=True, trust=True)  # a trial is ours
        else:
            shutil.rmtree(run, ignore_errors=True)
            config = unflatten(json.loads((folder / "trial.json").read_text())["values"])
            start.train(config, {}, run, quiet=True)
    except LudusError as error:
        # refused before the first step: these settings do not go together
        possible = (run / "metrics.jsonl").exists()
        stopped = str(error) if possible else ""
        if "has spent its budget" in stopped:
            stopped = ""
    log = read_log(run) if possible else None
    budget = json.loads((folder / "trial.json").read_text())["values"]["train.total_agent_steps"]
    if log is not None and not stopped and log.steps < budget:
        return  # asked to stop: goes on another time
    clock = log.get("progress/seconds") if log is not None else None
    result = {
        "levels": levels(log) if log is not None else {},
        "agent_steps": log.steps if log is not None else 0,
        "seconds": float(clock.values[-1]) if clock is not None else 0.0,
        "stopped": stopped,
    }
    write_result(folder, result)
    for name in BULKY:
        shutil.rmtree(run / name, ignore_errors=True)


if __name__ == "__main__":
    run_trial(Path(sys.argv[1]))
