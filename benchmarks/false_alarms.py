"""How often does the doctor alarm on runs that are fine? Watches finished runs again, line by line
as they were written.

python -m benchmarks.false_alarms RUN|FOLDER … [--json]

A folder is searched for runs. A run belongs to the shipped recipe that its settings are nearest to;
where a setting that bears on learning differs it is counted apart, as "changed". Runs that did not
spend their budget are left out: they were stopped. Prints, per recipe: which seeds there are, in
how many runs something was critical or a warning in the verdict at the end, what it was, and what
had been told on the way and was gone by then; and below, which shipped recipes have fewer than
three seeds.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ludus.config import flatten
from ludus.doctor.finding import SEVERITIES, Finding
from ludus.doctor.live import FIRST_LOOK, GROWTH, Watcher
from ludus.doctor.log import read_log
from ludus.doctor.watch import examine
from ludus.errors import LudusError
from ludus.imports import section_name
from ludus.recipes import RECIPES, load_recipe

SPENT = 0.97
"""Of the budget: the last iteration seldom ends exactly on it."""
BEARS = (
    "policy.",
    "game_values",
    "league.",
    "curriculum.",
    "algorithm",
    "envs",
    "game",
)
"""Settings that bear on learning, by the beginning of their names; those of the algorithm do too."""
SEEDS = 3
"""Of every shipped recipe: with fewer, one odd run cannot be told from a rule."""


@dataclass
class Told:
    """What a run was told: check → worst severity."""

    seed: int = 0
    end: dict[str, str] = field(default_factory=dict)
    passing: dict[str, str] = field(default_factory=dict)

    def worst(self) -> str:
        return max(self.end.values(), key=SEVERITIES.index, default="info")


def find_runs(paths: list[Path]) -> list[Path]:
    found = sorted({log.parent for path in paths for log in path.rglob("metrics.jsonl")})
    return [run for run in found if (run / "config.json").exists()]


def share(values: Mapping[str, Any], line: Mapping[str, Any]) -> float:
    """How much of the budget is spent."""
    spent = [0.0]
    for total, so_far in (
        ("train.total_agent_steps", "progress/agent_steps"),
        ("train.total_seconds", "progress/seconds"),
    ):
        if values.get(total):
            spent.append(float(line[so_far]) / float(values[total]))
    return min(1.0, max(spent))


def recipe_of(values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The nearest recipe of the same game, and the settings in which the run differs from it."""
    game = str(values["game"])
    names = [
        name for name in RECIPES if _settings(name)["game"].split(":")[0] == game.split(":")[0]
    ]
    names = names or [game]
    differing = {name: _differing(values, _settings(name)) for name in names}
    nearest = min(names, key=lambda name: len(differing[name]))
    return nearest, differing[nearest]


def _differing(values: Mapping[str, Any], recipe: Mapping[str, Any]) -> list[str]:
    """What a recipe leaves to be derived (None) cannot differ; nor can what did not exist when the
    run was made. Parameters of the game are in the settings only where somebody set them."""
    bears = (*BEARS, f"{section_name(str(recipe['algorithm']))}.")
    changed = [
        k
        for k, v in recipe.items()
        if k.startswith(bears) and v is not None and k in values and values[k] != v
    ]
    return changed + [k for k in values if k.startswith("game.") and k not in recipe]


@cache
def _settings(recipe: str) -> dict[str, Any]:
    return dict(json.loads(json.dumps(flatten(load_recipe(recipe)))))


def watch_again(run: Path, lines: list[dict[str, Any]], values: Mapping[str, Any]) -> Told:
    """Looks as often as the live watcher does, then the verdict on the whole log."""
    log = read_log(run)
    watcher = Watcher(values, log.better_low)
    diagnostics = _lines(run / "diagnostics.jsonl")
    told, due = Told(int(values.get("seed", 0))), FIRST_LOOK
    for count, line in enumerate(lines, 1):
        while (
            diagnostics and diagnostics[0]["progress/agent_steps"] <= line["progress/agent_steps"]
        ):
            watcher.add(diagnostics.pop(0), diagnostics=True)
        watcher.add(line)
        if count >= due:
            watcher.look(int(line["progress/agent_steps"]), share(values, line))
            _note(told.passing, watcher.findings)
            due = max(count + 1, math.ceil(count * GROWTH))
    _note(told.end, examine(log))
    told.passing = {
        check: severity for check, severity in told.passing.items() if check not in told.end
    }
    return told


def _note(into: dict[str, str], findings: list[Finding]) -> None:
    for f in findings:
        if f.severity != "info" and SEVERITIES.index(f.severity) > SEVERITIES.index(
            into.get(f.check, "info")
        ):
            into[f.check] = f.severity


def _lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines only: a run that is killed leaves half of one."""
    if not path.exists():
        return []
    text = path.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines() if line.strip()]


def study(runs: list[Path]) -> tuple[dict[str, dict[str, Told]], list[str]]:
    """Recipe → run → what it was told; and the runs left out."""
    found: dict[str, dict[str, Told]] = {}
    left_out = []
    for run in runs:
        values, lines = (
            json.loads((run / "config.json").read_text())["values"],
            _lines(run / "metrics.jsonl"),
        )
        if not lines or share(values, lines[-1]) < SPENT:
            left_out.append(str(run))
            continue
        name, differing = recipe_of(values)
        found.setdefault(f"{name}, changed" if differing else name, {})[str(run)] = watch_again(
            run, lines, values
        )
    return found, left_out


def table(found: Mapping[str, Mapping[str, Told]]) -> str:
    lines = [
        "| recipe | runs | seeds | critical | warned | which (runs) | only on the way |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in sorted(found, key=lambda n: (n.endswith("changed"), n)):
        lines.append(_row(name, list(found[name].values())))
    for label, changed in (("all as shipped", False), ("all changed", True)):
        runs = [
            told
            for name, of in found.items()
            if name.endswith("changed") == changed
            for told in of.values()
        ]
        lines += [_row(label, runs)] if runs else []
    return "\n".join(lines)


def _row(name: str, runs: list[Told]) -> str:
    counts = [
        sum(told.worst() == severity for told in runs) for severity in ("critical", "warning")
    ]
    seeds = ", ".join(map(str, sorted({told.seed for told in runs})))
    which, passing = _which([told.end for told in runs]), _which([told.passing for told in runs])
    return f"| {name} | {len(runs)} | {seeds} | {counts[0]} | {counts[1]} | {which} | {passing} |"


def too_few(found: Mapping[str, Mapping[str, Told]]) -> list[str]:
    """Shipped recipes without three seeds, and how many they have."""
    seeds = {name: len({told.seed for told in found.get(name, {}).values()}) for name in RECIPES}
    return [f"{name} ({count})" for name, count in seeds.items() if count < SEEDS]


def _which(told: list[dict[str, str]]) -> str:
    count: dict[tuple[str, str], int] = {}
    for one in told:
        for pair in one.items():
            count[pair] = count.get(pair, 0) + 1
    ranked = sorted(
        count.items(), key=lambda item: (-SEVERITIES.index(item[0][1]), -item[1], item[0])
    )
    return (
        ", ".join(
            f"{check} {'critical ' if severity == 'critical' else ''}({n})"
            for (check, severity), n in ranked
        )
        or "none"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.false_alarms",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", help="every run with what it was told")
    options = parser.parse_args()
    runs = find_runs(options.runs)
    if not runs:
        raise SystemExit(
            "there is no run (metrics.jsonl beside config.json) under "
            f"{', '.join(map(str, options.runs))}"
        )
    try:
        found, left_out = study(runs)
    except LudusError as error:
        raise SystemExit(str(error)) from None
    if options.json:
        told = {
            n: {run: {"end": t.end, "passing": t.passing} for run, t in of.items()}
            for n, of in found.items()
        }
        print(json.dumps({"recipes": told, "left_out": left_out}, indent=1))
        return
    print(table(found))
    if few := too_few(found):
        print(f"\nShipped recipes with fewer than {SEEDS} seeds (how many): {', '.join(few)}")
    if left_out:
        print(f"\nLeft out, their budget not being spent: {', '.join(left_out)}")


if __name__ == "__main__":
    main()
