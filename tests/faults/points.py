"""Where a short training can be disturbed, and what then has to hold."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.faults.operations import NEEDS_SPACE, Fault, Files, Operation
from tests.faults.trial import (
    Ended,
    config,
    differences,
    in_child,
    leftovers,
    load_everything,
    outcome,
    resume,
    train,
)

RUN = "runs/one"


class Shelf:
    """A folder with one undisturbed run of each kind that was asked for, and room for disturbed
    ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._traces: dict[str, list[Operation]] = {}
        self._whole: dict[str, dict] = {}

    def trace(self, kind: str) -> list[Operation]:
        """Every operation of a training to which nothing happens."""
        if kind not in self._traces:
            load_everything(kind, self.folder / f"{kind}-first")
            home = self._empty(self.folder / f"{kind}-whole")

            def whole() -> list[Operation]:
                with Files(home) as files:
                    train(config(kind), home / RUN)
                return files.trace

            ended = in_child(whole)
            assert ended.how == "done", ended.what
            self._traces[kind], self._whole[kind] = ended.what, outcome(home / RUN)
        return self._traces[kind]

    def whole(self, kind: str) -> dict:
        self.trace(kind)
        return self._whole[kind]

    def disturbed(self, kind: str, fault: Fault) -> tuple[Ended, Path]:
        """A training that meets a fault: how it ended, and the folder of its run (which may not be
        there)."""
        home = self._empty(self.folder / f"{kind}-disturbed")

        def run() -> int:
            with Files(home, fault) as files:
                train(config(kind), home / RUN)
            return files.count

        return in_child(run), home / RUN

    @staticmethod
    def _empty(folder: Path) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    # -- what has to hold --------------------------------------------------------------------------

    def check_resumed(self, kind: str, path: Path, found: Counter[str]) -> str:
        """What is wrong, or nothing. A run that had not been committed yet is not there, not even
        in part."""
        if not path.exists():
            found["no run yet"] += 1
            return ""
        ended = in_child(lambda: resume(path))
        if ended.how != "done":
            return f"resume {ended.how}: {ended.what}"
        found[ended.what] += 1
        wrong = differences(path, self.whole(kind), ended.what == "resumed")
        if wrong:
            return f"{ended.what}, and then other than undisturbed: {', '.join(wrong)}"
        left = leftovers(path) if ended.what == "resumed" else []
        return f"left over: {', '.join(left)}" if left else ""


def crash_points(trace: Iterable[Operation]) -> list[Fault]:
    """Before every operation, and in the middle of every write."""
    points = []
    for at, operation in enumerate(trace, 1):
        points.append(Fault(at))
        if operation.kind == "write":
            points.append(Fault(at, half=True))
    return points


def full_disk_points(trace: Iterable[Operation], error: int, lasting: bool) -> list[Fault]:
    """Every operation that needs space fails; of a write half is written."""
    wanted = [(at, o) for at, o in enumerate(trace, 1) if o.kind in NEEDS_SPACE]
    return [Fault(at, half=o.kind == "write", error=error, lasting=lasting) for at, o in wanted]


def broken_disk_points(trace: Iterable[Operation], error: int, lasting: bool) -> list[Fault]:
    """Every operation fails."""
    return [Fault(at, error=error, lasting=lasting) for at, _ in enumerate(trace, 1)]
