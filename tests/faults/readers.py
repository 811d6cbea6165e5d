"""Everything that reads a run folder, called as a command or a program does. What a reader finds
out is compared with what it finds in the run as it was."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ludus
from ludus import api
from ludus.commands import doctor_compare, doctor_run, games_diff, summary
from ludus.commands import league as league_command
from ludus.films.film import plain
from ludus.play.replay import Replay
from ludus.runs import checkpoint
from ludus.runs.load import load_policies
from ludus.runs.run import Run
from ludus.training import start
from ludus.training.report import write_report
from ludus.viewer.library import Library

MOST_SECONDS = 10
HEALTHY = "healthy"  # a run in the same folder


class Hangs(BaseException):
    """A reader that does not come to an end."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def without_pictures() -> Iterator[None]:
    """Drawing takes longer than everything else together."""

    class Nothing:
        def savefig(self, path: Path, dpi: int) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ludus.league.plots.figure", lambda ratings, tables: Nothing())
        patch.setattr("ludus.training.report._figures", lambda lines, records, config: [])
        patch.setattr("ludus.training.report._league", lambda run: [])
        yield


# -- readers: each takes the run's folder ----------------------------------------------------------


def load(path: Path) -> str:
    """Which weights it has, of which step: must be one of the run's own checkpoints. Then it acts
    once."""
    policies, layout = load_policies(str(path))
    agent = ludus.load(path)
    agent.act(np.zeros(len(layout["observation"]), np.float32))
    digest = hashlib.sha256()
    for role, policy in sorted(policies.items()):
        for name, tensor in sorted(policy.state_dict().items()):
            digest.update(f"{role}/{name}".encode() + tensor.numpy().tobytes())
    return f"{layout['step']}: {digest.hexdigest()}"


def doctor(path: Path) -> None:
    doctor_run.main([str(path), "--json"])


def report(path: Path) -> None:
    write_report(Run(path))


def listing(path: Path) -> None:
    json.dumps(plain(Library(path.parent).listing()), allow_nan=False)


def page(path: Path) -> None:
    library = Library(path.parent)
    json.dumps(plain(library.whole(path.name)), allow_nan=False)
    for file in library.replays(library.run(path.name)).values():
        Replay(file)


def league(path: Path) -> None:
    """Its table; drawing the picture takes longer than everything else together."""
    with without_pictures():
        league_command.main([str(path)])


def end(path: Path) -> None:
    """What `ludus train` and `ludus resume` print at the end."""
    summary.report(Run(path), False, True)


def marks(path: Path) -> None:
    """What resume, fork and eval do first."""
    run = Run(path)
    for mark in (None, "best", "0", "x"):
        try:
            checkpoint.Checkpoint(run, checkpoint.find(run, mark)).verify()
        except ludus.LudusError:
            continue
    start.forkable(path)


def compared(path: Path) -> None:
    """With a healthy run beside it."""
    doctor_compare.main([str(path.parent / HEALTHY), str(path)])


def meaning(path: Path) -> None:
    games_diff.main([str(path.parent / HEALTHY), str(path)])


CHEAP: dict[str, Callable[[Path], Any]] = {
    f.__name__: f for f in (load, doctor, listing, page, league, end, marks, compared, meaning)
}


# -- those that take longer ------------------------------------------------------------------------


def evaluate(path: Path) -> str:
    found = api.evaluate(path, ["self", "bots", "snapshots"], episodes=2)
    return json.dumps(found["metrics"], sort_keys=True)


def export(path: Path) -> None:
    from ludus.export.onnx import export_run

    export_run(str(path), path.parent / "exported")


def payoff(path: Path) -> None:
    with without_pictures():
        league_command.main([str(path), "--payoff", "2", "--episodes", "2"])


COSTLY: dict[str, Callable[[Path], Any]] = {
    f.__name__: f for f in (report, evaluate, export, payoff)
}
