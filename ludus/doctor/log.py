"""A training log as curves under our names, whoever wrote it: a run folder, CSV, JSON lines or TensorBoard events.

Logs are read as they are found: still being written, cut off in the middle, with columns missing. What could not be seen is
noted, so that silence is never taken for health.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ludus.doctor.names import AGENT, full_name, is_ours, ours_for
from ludus.doctor.statistics import Array
from ludus.doctor.tensorboard import read_scalars
from ludus.errors import LudusError, nearest

STEPS, SECONDS = "progress/agent_steps", "progress/seconds"
AS_GOOD_AS_INFINITE = 1e100
"""Its square no longer fits a float."""
ALGORITHMS = ("ppo", "rainbow")
LEARNERS = ("loss", "value_loss", "policy_loss", "q_mean", "entropy")  # of a role: what only updates write
FEW_ROWS = 12
"""What most checks want before they speak: a start, an end and some noise to measure."""


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
    ours: bool = False
    """Written by Ludus, so absence of a column means something."""
    better_low: frozenset[str] = frozenset(("loss_rate", "draw_rate", "draw"))
    """Goal metrics that are no better for being higher."""

    def get(self, name: str) -> Curve | None:
        curve = self.curves.get(name)
        return curve if curve is not None and len(curve) else None

    def roles(self) -> list[str]:
        families = ("episode", "ppo", "goal", "rainbow")
        found = [n.split("/")[1] for n in self.curves if n.split("/")[0] in families and n.count("/") >= 2]
        return list(dict.fromkeys(found)) or [AGENT]

    def of(self, role: str, key: str) -> Curve | None:
        """The curve of a role: what its episodes or its learner say about `key`."""
        for name in (f"episode/{role}/{key}", *(f"{a}/{role}/{key}" for a in ALGORITHMS), *(f"{a}/{key}" for a in ALGORITHMS)):
            if (curve := self.get(name)) is not None:
                return curve
        return None

    def while_learning(self, role: str, key: str) -> Curve | None:
        """As `of`, without the rows in which a role among several is held still on purpose: a learning rate of 0."""
        curve, rate = self.of(role, key), self.of(role, "lr")
        if curve is None or rate is None or len(self.roles()) < 2:
            return curve
        learning = np.isin(curve.steps, rate.steps[rate.values > 0])
        return Curve(curve.name, curve.steps[learning], curve.values[learning]) if learning.any() else None

    def starting(self, prefix: str) -> list[Curve]:
        return [c for name, c in self.curves.items() if name.startswith(prefix) and len(c)]

    @property
    def steps(self) -> int:
        return max((c.last_step for c in self.curves.values() if len(c)), default=0)


def read_log(path: Path | str, columns: Mapping[str, str] | None = None) -> Log:
    """Reads whatever is at `path`. `columns` maps our names (short or full) to theirs, and wins over what is recognised."""
    path = Path(path)
    if not path.exists():
        raise LudusError(f"there is nothing at {path}: give a run folder, a CSV or JSON-lines file, or TensorBoard events")
    kind, files = _find(path)
    log = Log(source=str(path))
    if kind == "ludus":
        _read_run(path if path.is_dir() else path.parent, files[0], log)
    elif kind == "events":
        _fill(log, _event_cells(files), columns or {})
    else:
        rows, note = _csv_rows(files[0]) if kind == "csv" else _json_rows(files[0])
        if note:
            log.notes.append(note)
        _fill(log, _row_cells(rows, columns or {}, log), columns or {})
    longest = max((len(c) for c in log.curves.values()), default=0)
    if not log.curves:
        log.notes.append(f"{path} holds no finished row of metrics yet")
    elif longest < FEW_ROWS:
        log.notes.append(f"only {longest} rows: most checks wait for {FEW_ROWS} (log more often, or train longer)")
    return log


def _find(path: Path) -> tuple[str, list[Path]]:
    if path.is_dir():
        for name, kind in (("metrics.jsonl", "ludus"), ("progress.csv", "csv"), ("result.json", "json")):
            if (path / name).exists():
                return kind, [path / name]
        events = sorted(path.rglob("*tfevents*"))
        folders = sorted({str(e.parent) for e in events})
        if len(folders) > 1:
            raise LudusError(f"{path} holds {len(folders)} logs: choose one, for example {folders[0]}")
        if events:
            return "events", events
        tables = sorted([*path.glob("*monitor.csv"), *path.glob("*.csv")])
        if tables:
            return "csv", tables
        if (path / "config.json").exists():
            return "ludus", [path / "metrics.jsonl"]
        raise LudusError(f"{path} holds no log: there is no metrics.jsonl, progress.csv, result.json, events file or CSV in it")
    if "tfevents" in path.name:
        return "events", [path]
    if path.suffix in (".jsonl", ".json", ".ndjson"):
        return ("ludus" if path.name == "metrics.jsonl" else "json"), [path]
    return "csv", [path]


# -- readers -----------------------------------------------------------------------------------------------------------


def _read_run(folder: Path, metrics: Path, log: Log) -> None:
    """Our own folder: metrics, diagnostics beside them, and the config if it can be read."""
    log.ours = True
    rows, note = _json_rows(metrics) if metrics.exists() else ([], f"{metrics.name} is missing: no iteration was finished")
    cells = [(name, _step_of(row, i), value) for i, row in enumerate(rows) for name, value in row.items()]
    diagnostics, diagnostics_note = (
        _json_rows(folder / "diagnostics.jsonl") if (folder / "diagnostics.jsonl").exists() else ([], "")
    )
    for i, row in enumerate(diagnostics):
        for name, value in row.items():
            if isinstance(value, list):
                log.lists[name] = [str(v) for v in value]
            elif name not in (STEPS, "progress/iteration"):
                cells.append((name, _step_of(row, i), value))
    examined = _json_rows(folder / "examined.jsonl")[0] if (folder / "examined.jsonl").exists() else []
    cells += [(n, _step_of(row, i), v) for i, row in enumerate(examined) for n, v in row.items() if n.startswith("intervention/")]
    log.notes += [n for n in (note, diagnostics_note) if n]
    if not diagnostics:
        log.notes.append("diagnostics.jsonl is empty or missing: gradients per module, dead units and inputs were not seen")
    _fill(log, cells, {}, known=True)
    try:
        log.config = json.loads((folder / "config.json").read_text())["values"]
    except (OSError, ValueError, KeyError, TypeError):
        log.notes.append("config.json is missing or cannot be read: settings were not seen")
    try:
        goals = json.loads((folder / "game.json").read_text())["layout"]["goal_metrics"]
        log.better_low |= {name for name, goal in goals.items() if not goal["higher_is_better"]}
    except (OSError, ValueError, KeyError):
        log.notes.append("game.json is missing or cannot be read: which goal metrics should fall was not seen")


def _step_of(row: Mapping[str, Any], index: int) -> float:
    return float(row.get(STEPS, row.get("step", index)) or 0)


def _json_rows(path: Path) -> tuple[list[dict[str, Any]], str]:
    rows, broken = [], 0
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            broken += 1
            continue
        if isinstance(row, dict):
            rows.append(_flat(row))
    return rows, f"{path.name}: {broken} line(s) cut off or damaged, left out" if broken else ""


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            out |= _flat(value, f"{prefix}{name}/")
        else:
            out[f"{prefix}{name}"] = value
    return out


def _csv_rows(path: Path) -> tuple[list[dict[str, Any]], str]:
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return [], f"{path.name} is empty"
    delimiter = max(",;\t", key=lines[0].count)
    table = list(csv.reader(lines, delimiter=delimiter))
    names = [n.strip() for n in table[0]]
    whole = [row for row in table[1:] if len(row) == len(names)]
    note = f"{path.name}: {len(table) - 1 - len(whole)} row(s) cut off, left out" if len(whole) < len(table) - 1 else ""
    if whole and not text.endswith("\n") and whole[-1] is table[-1]:
        whole, note = whole[:-1], f"{path.name} is still being written: its last row, perhaps cut off, was left out"
    return [dict(zip(names, row, strict=True)) for row in whole], note


def _row_cells(rows: list[dict[str, Any]], columns: Mapping[str, str], log: Log) -> list[tuple[str, float, Any]]:
    """Cells with the step of their row: a column of steps if there is one, else summed lengths, else the row's number."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    chosen = columns.get("steps") or columns.get(STEPS)
    if chosen and chosen not in names:
        raise LudusError(f"--columns steps={chosen}: the log has no column '{chosen}': {nearest(chosen, names)}")
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
            total += _number(row.get(lengths[0])) or 0.0 if lengths else 1.0
            cells += [(name, total if lengths else float(i), value) for name, value in row.items()]
        return cells
    cells, step = [], 0.0
    for row in rows:
        read = _number(row.get(step_name))
        step = read if read is not None and abs(read) < AS_GOOD_AS_INFINITE else step
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


# -- from cells to curves ----------------------------------------------------------------------------------------------


def _number(value: Any) -> float | None:
    """A number, NaN for what is written as one (null, nan, inf), None for what is simply not there."""
    if value is None:
        return math.nan
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        text = value.strip()
        if text == "":
            return None
        try:
            return float(text)
        except ValueError:
            return None
    return None


def _fill(log: Log, cells: Iterable[tuple[str, float, Any]], columns: Mapping[str, str], known: bool = False) -> None:
    chosen = {theirs: full_name(ours) for ours, theirs in columns.items()}
    found: dict[str, tuple[list[float], list[float]]] = {}
    unknown: dict[str, None] = {}
    theirs_of: dict[str, str] = {}
    for theirs, step, value in cells:
        number = _number(value)
        if number is None:
            continue
        ours, sign = _translate(theirs, chosen, known)
        if ours is None or theirs_of.setdefault(ours, theirs) != theirs:
            unknown[theirs] = None  # not known, or a second name for what another column already says
            continue
        if not abs(number) < AS_GOOD_AS_INFINITE:
            log.not_finite.setdefault(ours, int(step))
            continue
        steps, values = found.setdefault(ours, ([], []))
        steps.append(step)
        values.append(sign * number)
    for theirs in chosen:
        if theirs not in theirs_of.values():
            raise LudusError(f"--columns: the log has no column '{theirs}': {nearest(theirs, [*theirs_of.values(), *unknown])}")
    for name, (steps, values) in found.items():
        order = np.argsort(np.array(steps), kind="stable")
        log.curves[name] = Curve(name, np.array(steps)[order], np.array(values)[order])
    if unknown and not known:
        log.notes.append(
            f"columns not used: {', '.join(list(unknown)[:12])}{' …' if len(unknown) > 12 else ''} (--columns OURS=THEIRS)"
        )


def _translate(theirs: str, chosen: Mapping[str, str], known: bool) -> tuple[str | None, float]:
    if theirs in chosen:
        return chosen[theirs], 1.0
    if known or theirs == SECONDS:
        return theirs, 1.0
    found = ours_for(theirs)
    if found is not None:
        return (None, 1.0) if found[0] in chosen.values() else found
    return (theirs, 1.0) if is_ours(theirs) else (None, 1.0)
