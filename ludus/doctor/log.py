"""A training log as curves under our names, whoever wrote it: a run folder, CSV, JSON lines or
TensorBoard events.

Logs are read as they are found: still being written, cut off in the middle, with columns missing.
What could not be seen is noted, so that silence is never taken for health.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.doctor.learners import by_learner
from ludus.doctor.names import AGENT, OF_VALUES, full_name, is_bookkeeping, is_ours, ours_for
from ludus.doctor.options import option
from ludus.doctor.statistics import Array
from ludus.doctor.tables import csv_names, csv_rows, json_rows, number, without_unit
from ludus.doctor.tensorboard import read_scalars
from ludus.errors import LudusError, nearest
from ludus.files import read_json

STEPS, SECONDS = "progress/agent_steps", "progress/seconds"
GIVE = "give a run folder, a CSV or JSON-lines file, or TensorBoard events"
AS_GOOD_AS_INFINITE = 1e100
"""Its square no longer fits a float."""
JUMPS_BACK = 0.1
"""Share of the highest step so far: envs that write side by side are a little out of order."""
FEW_ROWS = 12
"""What most checks want before they speak: a start, an end and some noise to measure."""
OF_OLDER_VERSIONS = ("ppo/", "rainbow/")
NOT_LEARNING = ("progress/", "speed/", "memory/", "intervention/")
"""Families of curves that say nothing about what is learnt."""


@dataclass(frozen=True)
class Curve:
    """Finite values of one column and the steps they were written at."""

    name: str
    steps: Array
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def first_step(self) -> int:
        return int(self.steps[0])

    @property
    def last_step(self) -> int:
        return int(self.steps[-1])


@dataclass(frozen=True)
class GameValue:
    """A value of the game that changes on purpose while the run trains: on a schedule, or from
    stage to stage."""

    name: str
    first: float
    now: float
    evaluated: float
    """What evaluations play."""
    since: float
    """The last step at which it still changed; -1: it never has."""

    @property
    def differs(self) -> bool:
        """Does training play another game than evaluations do?"""
        return not math.isclose(self.now, self.evaluated, rel_tol=1e-4, abs_tol=1e-9)


def enough_episodes(finished: Any, envs: float) -> Any:
    """Has every env finished an episode, on average? Before that, means are of the episodes that
    end first, which are the short ones:
    where success ends an episode, they are all successful."""
    return finished >= envs


@dataclass
class Log:
    """Curves by our names. `lists` holds what diagnostics write that is no number."""

    source: str
    curves: dict[str, Curve] = field(default_factory=dict)
    not_finite: dict[str, int] = field(default_factory=dict)
    """Columns that held NaN or infinity, and the first step at which they did."""
    lists: dict[str, list[str]] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What could not be read or seen."""
    theirs: dict[str, str] = field(default_factory=dict)
    """What a log of another library calls a curve, by our name."""
    ours: bool = False
    """Written by Ludus, so absence of a column means something."""
    began_with: str = ""
    """The run whose policy it began with, the part that acts included."""
    self_play: bool = False
    """One policy plays agents against each other, so that its return need not rise."""
    better_low: frozenset[str] = frozenset(("loss_rate", "draw_rate", "draw"))
    """Goal metrics that are no better for being higher."""

    @property
    def by_values(self) -> bool:
        """Does it choose by the values of actions? Such a learner logs them, or how often it acts
        at random."""
        return any(self.of(role, key) is not None for role in self.roles() for key in OF_VALUES)

    def option(self, key: str) -> str:
        """What the run calls the setting `key` of its algorithm: "gamma" → "ppo.gamma". A key with
        a dot is a whole name. "" where the run has no such setting, as in logs of other
        libraries."""
        return option(self.config, key)

    def setting(self, key: str) -> Any:
        """The value of that setting; None where the run has none."""
        return self.config.get(self.option(key))

    def get(self, name: str) -> Curve | None:
        curve = self.curves.get(name)
        return curve if curve is not None and len(curve) else None

    def in_this_stage(self, curve: Curve) -> Curve:
        """What was logged since a curriculum last moved on: before, the opponents were others."""
        stage = self.get("curriculum/stage")
        if stage is None or not np.diff(stage.values).any():
            return curve
        changed = np.flatnonzero(np.diff(stage.values))
        late = curve.steps >= stage.steps[changed[-1] + 1]
        return Curve(curve.name, curve.steps[late], curve.values[late])

    def game_values(self) -> list[GameValue]:
        """Those that have changed so far, or that differ from what evaluations play."""
        out = []
        for curve in self.starting("game/") if self.ours else ():
            evaluated = self.get(f"{curve.name}_evaluated")
            if evaluated is None:
                continue
            changes = np.flatnonzero(np.diff(curve.values))
            since = float(curve.steps[changes[-1] + 1]) if len(changes) else -1.0
            first, now = float(curve.values[0]), float(curve.values[-1])
            value = GameValue(
                curve.name.removeprefix("game/"), first, now, float(evaluated.values[-1]), since
            )
            if len(changes) or value.differs:
                out.append(value)
        return out

    def in_this_game(self, curve: Curve) -> Curve:
        """What was logged since the game last changed: its opponents with a stage, or a value on a
        schedule. Before, it was another game, so that a curve may rise or fall without anything
        being learned or lost."""
        curve, since = (
            self.in_this_stage(curve),
            max((v.since for v in self.game_values()), default=-1.0),
        )
        if not len(curve) or curve.steps[0] > since:
            return curve
        late = curve.steps > since
        return Curve(curve.name, curve.steps[late], curve.values[late])

    def evaluated_as_trained(self) -> bool:
        """Does training play the game of the evaluations now? Else what differs between them may be
        the game's doing."""
        return not any(value.differs for value in self.game_values())

    def roles(self) -> list[str]:
        families = ("episode", "learner", "goal")
        found = [
            n.split("/")[1]
            for n in self.curves
            if n.split("/")[0] in families and n.count("/") >= 2
        ]
        return list(dict.fromkeys(found)) or [AGENT]

    def of(self, role: str, key: str) -> Curve | None:
        """The curve of a role: what its episodes or its learner say about `key`."""
        for name in (
            f"episode/{role}/{key}",
            f"learner/{role}/{key}",
            f"learner/{key}",
        ):
            if (curve := self.get(name)) is not None:
                return curve
        return None

    def while_learning(self, role: str, key: str) -> Curve | None:
        """As `of`, without the rows in which a role among several is held still on purpose: a
        learning rate of 0."""
        curve, rate = self.of(role, key), self.of(role, "lr")
        if curve is None or rate is None or len(self.roles()) < 2:
            return curve
        learning = np.isin(curve.steps, rate.steps[rate.values > 0])
        return (
            Curve(curve.name, curve.steps[learning], curve.values[learning])
            if learning.any()
            else None
        )

    def after_first_episodes(self, curve: Curve) -> Curve:
        """Without the rows from before every env has had an episode, on average: those that end
        first are the short ones."""
        episodes, envs = self.get("progress/episodes"), self.config.get("envs")
        if episodes is None or envs is None:
            return curve
        began = episodes.steps[enough_episodes(episodes.values, float(envs))]
        late = curve.steps >= (began[0] if len(began) else np.inf)
        return Curve(curve.name, curve.steps[late], curve.values[late])

    def starting(self, prefix: str) -> list[Curve]:
        return [c for name, c in self.curves.items() if name.startswith(prefix) and len(c)]

    @property
    def rows(self) -> int:
        """Rows in which something about learning was logged, of metrics: diagnostics and
        experiments beside them have their own."""
        told = max(
            (len(c) for name, c in self.curves.items() if not name.startswith(NOT_LEARNING)),
            default=0,
        )
        lines = self.get(STEPS)
        return min(told, len(lines)) if self.ours and lines is not None else told

    @property
    def steps(self) -> int:
        return max((c.last_step for c in self.curves.values() if len(c)), default=0)


def read_log(path: Path | str, columns: Mapping[str, str] | None = None) -> Log:
    """Reads whatever is at `path`. `columns` maps our names (short or full) to theirs, and wins
    over what is recognised."""
    path = Path(path)
    if not path.exists():
        raise LudusError(f"there is nothing at {path}: {GIVE}")
    kind, files = _find(path)
    log, columns = Log(source=str(path)), columns or {}
    if kind == "ludus" and _is_run(files[0]):
        _read_run(path if path.is_dir() else path.parent, files[0], log, columns)
    elif kind == "events":
        _fill(log, _event_cells(files), columns)
        by_learner(log)
    else:
        rows, note = csv_rows(files[0]) if kind == "csv" else json_rows(files[0])
        _refuse_other_files(files[0], kind, rows, columns)
        log.notes += [note] if note else []
        if len(files) > 1:
            log.notes.append(
                f"{files[0].name} was read, {len(files) - 1} other CSV file(s) beside it were not"
            )
        _fill(log, _row_cells(rows, columns, log), columns)
        by_learner(log)
    if not log.curves:
        log.notes.append(f"{path} holds no finished row of metrics yet")
    return log


def _find(path: Path) -> tuple[str, list[Path]]:
    if path.is_dir():
        for name, kind in (
            ("metrics.jsonl", "ludus"),
            ("progress.csv", "csv"),
            ("result.json", "json"),
        ):
            if (path / name).is_file():
                return kind, [path / name]
        if _has_settings(path):
            return "ludus", [path / "metrics.jsonl"]
        events = sorted(path.rglob("*tfevents*"))
        folders = sorted({str(e.parent) for e in events})
        if len(folders) > 1:
            raise LudusError(
                f"{path} holds {len(folders)} logs: choose one, for example {folders[0]}"
            )
        if events:
            return "events", events
        tables = sorted(path.glob("*.csv"))
        if tables:
            return "csv", tables
        if (path / "config.json").exists():
            return "ludus", [path / "metrics.jsonl"]
        raise LudusError(
            f"{path} holds no log: there is no metrics.jsonl, progress.csv, result.json, events "
            "file or CSV in it"
        )
    if "tfevents" in path.name:
        return "events", [path]
    if path.suffix in (".jsonl", ".json", ".ndjson"):
        return ("ludus" if path.name == "metrics.jsonl" else "json"), [path]
    return "csv", [path]


def _refuse_other_files(
    file: Path, kind: str, rows: list[dict[str, Any]], columns: Mapping[str, str]
) -> None:
    """Source code, a config, a letter: what has no column that is known. A log that is still empty
    may become one."""
    names = {*csv_names(file)} if kind == "csv" else {name for row in rows for name in row}
    known = any(
        name in columns.values() or is_ours(name) or ours_for(name) is not None for name in names
    )
    # their columns can be named
    numbers = any(number(value) is not None for row in rows for value in row.values())
    if file.stat().st_size and not known and not numbers:
        raise LudusError(f"{file} is not a training log: it has no column of numbers; {GIVE}")


# -- readers ---------------------------------------------------------------------------------------


def _has_settings(folder: Path) -> bool:
    """A folder of ours whose metrics are missing: others write a config.json, too, but not of our
    shape."""
    try:
        return set(read_json(folder / "config.json")) >= {"values", "origins"}
    except (OSError, ValueError, TypeError):
        return False


def _is_run(metrics: Path) -> bool:
    """Others call their files metrics.jsonl, too: ours say how many agent-steps were made, in every
    line."""
    rows = json_rows(metrics)[0] if metrics.is_file() else []
    return not rows or any(STEPS in row for row in rows)


def _read_run(folder: Path, metrics: Path, log: Log, columns: Mapping[str, str]) -> None:
    """Our own folder: metrics, diagnostics beside them, and the config if it can be read."""
    log.ours = True
    rows, note = (
        json_rows(metrics)
        if metrics.is_file()
        else ([], f"{metrics.name} is missing: no iteration was finished")
    )
    if any(name.startswith(OF_OLDER_VERSIONS) for row in rows[:1] for name in row):
        log.notes.append(
            "what the learner wrote has the names of an older version of Ludus (ppo/…, rainbow/…) "
            "and was not looked at"
        )
    cells = list(_timed(rows))
    if not rows and (events := sorted(folder.rglob("*tfevents*"))):
        cells, note = (
            _event_cells(events),
            f"{metrics.name} is missing or empty: TensorBoard events were read in its place",
        )
    elif not rows:
        note = note or f"{metrics.name} has no finished row yet"
    diagnostics, diagnostics_note = (
        json_rows(folder / "diagnostics.jsonl")
        if (folder / "diagnostics.jsonl").exists()
        else ([], "")
    )
    for name, step, value in _timed(diagnostics):
        if isinstance(value, list):
            log.lists[name] = [str(v) for v in value]
        elif name not in (STEPS, "progress/iteration"):
            cells.append((name, step, value))
    examined = (
        json_rows(folder / "examined.jsonl")[0] if (folder / "examined.jsonl").exists() else []
    )
    cells += [cell for cell in _timed(examined) if cell[0].startswith("intervention/")]
    log.notes += [n for n in (note, diagnostics_note) if n]
    if not diagnostics:
        log.notes.append(
            "diagnostics.jsonl is empty or missing: gradients per module, dead units and inputs "
            "were not seen"
        )
    _fill(log, cells, columns, known=True)
    try:
        stored = read_json(folder / "config.json")
        log.config, log.began_with = dict(stored["values"]), began_with(stored)
    except (OSError, ValueError, KeyError, TypeError):
        log.notes.append("config.json is missing or cannot be read: settings were not seen")
    try:
        goals = read_json(folder / "game.json")["layout"]["goal_metrics"]
        log.better_low |= {name for name, goal in goals.items() if not goal["higher_is_better"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        log.notes.append(
            "game.json is missing or cannot be read: which goal metrics should fall was not seen"
        )


def began_with(stored: Mapping[str, Any]) -> str:
    """What --init-from named, where config.json (`stored`) says so and --init-modules did not leave
    the actions out."""
    acts = not stored.get("init_modules") or any(
        name in "action_head" for name in stored["init_modules"]
    )
    return str(stored.get("init_from") or "") if acts else ""


def _timed(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, float, Any]]:
    """Cells with the step of their row; a row that does not say has that of the one before."""
    step = 0.0
    for row in rows:
        read = number(row.get(STEPS, ""))
        step = read if read is not None and abs(read) < AS_GOOD_AS_INFINITE else step
        yield from ((name, step, value) for name, value in row.items())


def _row_cells(
    rows: list[dict[str, Any]], columns: Mapping[str, str], log: Log
) -> list[tuple[str, float, Any]]:
    """Cells with the step of their row: a column of steps if there is one, else summed lengths,
    else the row's number."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    chosen = columns.get("steps") or columns.get(STEPS)
    if chosen and chosen not in names:
        raise LudusError(
            f"--columns steps={chosen}: the log has no column '{chosen}': {nearest(chosen, names)}"
        )
    candidates = [n for n in names if (known := ours_for(n)) and known[0] == STEPS]
    step_name = chosen or next(iter(candidates), None)
    if step_name is None:
        lengths = [n for n in ("l", "length") if n in names]
        log.notes.append(
            "no column of steps was found: "
            + ("lengths were summed" if lengths else "rows were counted")
            + " (--columns steps=NAME)"
        )
        total = 0.0
        cells = []
        for i, row in enumerate(rows):
            total += number(row.get(lengths[0])) or 0.0 if lengths else 1.0
            cells += [(name, total if lengths else float(i), value) for name, value in row.items()]
        return cells
    cells, step, unit = [], 0.0, without_unit(step_name)[1]
    for row in rows:
        read = number(row.get(step_name))
        step = unit * read if read is not None and abs(read) < AS_GOOD_AS_INFINITE else step
        cells += [(name, step, value) for name, value in row.items()]
    return cells


def _event_cells(files: Iterable[Path]) -> list[tuple[str, float, Any]]:
    cells: list[tuple[str, float, Any]] = []
    start: float | None = None
    seen = -1
    for file in files:
        for tag, step, value, wall in read_scalars(file):
            cells.append((tag, float(step), value))
            start = wall if start is None else start
            if step > seen:  # the clock, once per step
                cells.append((SECONDS, float(step), wall - start))
                seen = step
    return cells


# -- from cells to curves --------------------------------------------------------------------------


def _fill(
    log: Log,
    cells: Iterable[tuple[str, float, Any]],
    columns: Mapping[str, str],
    known: bool = False,
) -> None:
    chosen = {theirs: full_name(ours) for ours, theirs in columns.items()}
    found: dict[str, tuple[list[float], list[float]]] = {}
    unknown: dict[str, None] = {}
    texts: dict[str, Any] = {}
    theirs_of: dict[str, str] = {}
    for theirs, step, value in cells:
        read = number(value)
        if read is None:
            texts[theirs] = value
            continue
        ours, factor = _translate(theirs, chosen, known)
        if ours is None or theirs_of.setdefault(ours, theirs) != theirs:
            unknown[theirs] = (
                None  # not known, or a second name for what another column already says
            )
            continue
        if not abs(read) < AS_GOOD_AS_INFINITE:
            log.not_finite.setdefault(ours, int(step))
            continue
        steps, values = found.setdefault(ours, ([], []))
        steps.append(step)
        values.append(factor * read)
    for theirs in chosen:
        if theirs not in theirs_of.values() and theirs in texts:
            raise LudusError(
                f"--columns: the column '{theirs}' holds no numbers, but for example "
                f"'{texts[theirs]}'"
            )
        if theirs not in theirs_of.values():
            raise LudusError(
                f"--columns: the log has no column '{theirs}': "
                f"{nearest(theirs, [*theirs_of.values(), *unknown])}"
            )
    again = 0
    for name, (steps, values) in found.items():
        whole = name.startswith("intervention/")  # of checkpoints, looked at in any order
        kept = np.arange(len(steps)) if whole else _last_attempt(np.array(steps))
        again = max(again, len(steps) - len(kept))
        order = kept[np.argsort(np.array(steps)[kept], kind="stable")]
        log.curves[name] = Curve(name, np.array(steps)[order], np.array(values)[order])
    if again:
        log.notes.append(
            f"steps go back, as where a run was started again: {again} row(s) of what came before "
            "were left out"
        )
    if unknown and all(name.startswith("progress/") for name in found):
        raise LudusError(
            f"{log.source} has no column whose name is known, only {_few(unknown)}: say what they "
            "are, --columns return=NAME"
        )
    if known:
        return
    log.theirs = theirs_of
    unused = [
        name
        for name in unknown
        if not is_bookkeeping(name) and _translate(name, {}, False)[0] not in theirs_of
    ]
    if unused:
        log.notes.append(f"columns not used: {_few(unused)} (--columns OURS=THEIRS)")


def _last_attempt(steps: Array) -> NDArray[np.int64]:
    """Which rows to read. Where steps jump back, a run was started again in the same log: what it
    did over counts."""
    highest = np.maximum.accumulate(steps)
    kept = np.ones(len(steps), bool)
    for i in np.flatnonzero(steps[1:] < (1 - JUMPS_BACK) * highest[:-1]) + 1:
        if steps[i] < steps[i - 1]:
            kept[:i] &= steps[:i] < steps[i]
    return np.flatnonzero(kept).astype(np.int64)


def _few(names: Iterable[str]) -> str:
    all_of_them = list(names)
    return ", ".join(all_of_them[:12]) + (" …" if len(all_of_them) > 12 else "")


def _translate(theirs: str, chosen: Mapping[str, str], known: bool) -> tuple[str | None, float]:
    if theirs in chosen:
        return chosen[theirs], without_unit(theirs)[1]
    if known or theirs == SECONDS:
        return theirs, 1.0
    found = ours_for(theirs)
    if found is not None:
        return (None, 1.0) if found[0] in chosen.values() else found
    return (theirs, 1.0) if is_ours(theirs) else (None, 1.0)
