"""Every kind of file in a run folder, damaged in every way: whoever reads the folder gets what the
run is, or one sentence."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import ludus
from ludus import LudusError, api
from ludus.examine.interventions import examine_run
from ludus.runs import checkpoint
from ludus.runs.run import Run
from tests.faults import readers
from tests.faults.mutations import damage, restore
from tests.faults.trial import config, final_tensors, in_child

MAY_CHANGE_RESULTS = {
    "config.json": "settings are for people to read, and say which game is played",
    "manifest.json": "it is what names and describes everything else of a checkpoint",
}
"""Files whose damaged content may be taken as it is, as far as weights are right: what is evaluated
or trained then differs."""


class Damaged:
    """A run with every kind of file, and room for a damaged copy of it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs" / "one"
        made = config("league", tensorboard=True)
        made.policy.memory, made.policy.memory_size = "lstm", 4
        with readers.without_pictures():
            ludus.train(made, run=self.path, quiet=True)
        readers.payoff(self.path)
        examine_run(str(self.path))
        (self.path / "lock").unlink(missing_ok=True)
        self.whole = folder / "whole"
        shutil.copytree(self.path, self.whole)
        shutil.copytree(self.path, self.path.with_name(readers.HEALTHY))
        self.files = sorted(p.relative_to(self.path) for p in self.path.rglob("*") if p.is_file())
        self.weights = {
            readers.load(Path(f"{self.path}@{step}")) for step in checkpoint.steps(Run(self.path))
        }
        self.evaluated = readers.evaluate(self.path)
        self.final = final_tensors(self.path)

    def targets(self, rng: random.Random, count: int) -> Iterable[Path]:
        """Files to damage: every kind equally often, and of it any."""
        kinds: dict[str, list[Path]] = defaultdict(list)
        for file in self.files:
            kinds[kind_of(file)].append(file)
        for i in range(count):
            yield rng.choice(list(kinds.values())[i % len(kinds)])

    def renew(self, file: Path) -> None:
        """Everything as it was."""
        restore(self.path / file, (self.whole / file).read_bytes())
        for path in sorted(self.path.rglob("*"), reverse=True):  # what readers wrote
            inside = path.relative_to(self.path)
            if path.is_file() and inside not in self.files:
                path.unlink()
        for name in ("report.html", "payoff.json"):
            shutil.copy2(self.whole / name, self.path / name)


def kind_of(file: Path) -> str:
    """policy.safetensors of any checkpoint is one kind; any snapshot is another."""
    if "tfevents" in file.name:
        return "tfevents"
    return file.parts[0] if file.parts[0] in ("snapshots", "replays") else file.name


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    return Damaged(tmp_path_factory.mktemp("damaged"))


def try_reader(
    reader: Callable[[Path], Any], path: Path, seconds: float = readers.MOST_SECONDS
) -> tuple[str, Any]:
    """How it ended: read, refused, or what is wrong."""
    try:
        with (
            readers.alarm(seconds),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            return "read", reader(path)
    except LudusError as error:
        return (
            ("refused", str(error))
            if "\n" not in str(error).strip()
            else ("not one sentence", str(error))
        )
    except readers.Hangs:
        return "hangs", "".join(traceback.format_exc().splitlines(keepends=True)[-8:])
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/ludus/" in f.filename]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        return f"{type(error).__name__} at {where}", str(error)[:200]


def wrong_result(damaged: Damaged, name: str, kind: str, result: Any) -> str:
    if name == "load" and result not in damaged.weights:
        return "WRONG WEIGHTS"
    if name == "evaluate" and result != damaged.evaluated and kind not in MAY_CHANGE_RESULTS:
        return "other results"
    return ""


def check(
    damaged: Damaged, rng: random.Random, count: int, costly: int, resumes: int
) -> Counter[str]:
    """Damages a file, lets everybody read, restores it; so many times. Every so often the costly
    readers, and resume."""
    found: Counter[str] = Counter()
    wrong: dict[str, list[str]] = defaultdict(list)
    for i, file in enumerate(damaged.targets(rng, count)):
        kind = kind_of(file)
        way = damage(rng, damaged.path / file)
        chosen = {**readers.CHEAP, **(readers.COSTLY if costly and i % costly == 0 else {})}
        for name, reader in chosen.items():
            how, result = try_reader(
                reader, damaged.path, readers.MOST_SECONDS * (1 if name in readers.CHEAP else 12)
            )
            problem = (
                wrong_result(damaged, name, kind, result)
                if how == "read"
                else ""
                if how == "refused"
                else how
            )
            found[f"{how if how in ('read', 'refused') else 'wrong'}"] += 1
            if problem:
                wrong[f"{name}: {problem}"].append(f"{i} {file} {way}: {result}")
        if resumes and i % resumes == 0:
            how, problem = try_resume(damaged, kind)
            found[f"resume {how}"] += 1
            if problem:
                wrong[f"resume: {problem}"].append(f"{i} {file} {way}")
        damaged.renew(file)
    assert not wrong, "\n" + "\n".join(
        f"{len(v)} × {k}\n    " + "\n    ".join(v[:3])
        for k, v in sorted(wrong.items(), key=lambda e: -len(e[1]))
    )
    return found


def try_resume(damaged: Damaged, kind: str) -> tuple[str, str]:
    """Goes on from the checkpoint before the last one. It ends as the run did, or refuses."""
    step = checkpoint.steps(Run(damaged.whole))[-2]
    copy = damaged.path.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(damaged.path, copy, symlinks=True, ignore=pipes)
    ended = in_child(lambda: api.resume(f"{copy}@{step}", quiet=True) and None)
    if ended.how == "refused":
        return "refused", ""
    if ended.how != "done":
        lines = [line for line in str(ended.what).splitlines() if line.strip()]
        return ended.how, f"{ended.how} {lines[-1][:200]} … {' '.join(lines[-4:-2])[:200]}"
    other = final_tensors(copy) != damaged.final
    if other and kind not in MAY_CHANGE_RESULTS:
        return "other", "other weights"
    return "done" if not other else "done with other weights", ""


def pipes(folder: str, names: list[str]) -> list[str]:
    """Pipes cannot be copied."""
    from stat import S_ISFIFO

    return [name for name in names if S_ISFIFO(os.lstat(os.path.join(folder, name)).st_mode)]


def test_a_sample_of_damaged_files(damaged):
    check(damaged, random.Random(0), count=24, costly=0, resumes=0)


@pytest.mark.slow
def test_thousands_of_damaged_files(damaged):
    print(dict(check(damaged, random.Random(1), count=3500, costly=25, resumes=25)))
