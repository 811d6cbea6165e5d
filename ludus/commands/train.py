"""ludus train"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ludus.errors import LudusError
from ludus.recipes import RECIPES, load_recipe

SUMMARY = (
    "Trains a recipe: a name or NAME:PRESET; a module:function of your own that returns a Config or an env; an env of another library "
    "(gym:ID, pettingzoo:MODULE); or one in a browser or an engine (remote:PORT)."
)
EXAMPLE = "ludus train pursuit --train.total-agent-steps 3000000 --learn.roles.runner.entropy 0.01"


def main(arguments: list[str]) -> int:
    from ludus.commands.options import parse_config

    if not arguments or arguments[0].startswith("-"):
        if arguments and arguments[0] in ("-h", "--help"):
            arguments = ["pursuit", *arguments]
            print(
                f"usage: ludus train RECIPE [options]   recipes: {', '.join(RECIPES)}\nThe options below are those of pursuit.\n"
            )
        else:
            raise LudusError(f"'ludus train' needs a recipe first: one of {', '.join(RECIPES)}, gym:ID or module:function")
    recipe = load_recipe(arguments[0])
    config, origins, options = parse_config(recipe, arguments[1:], f"train {arguments[0]}", EXAMPLE, SUMMARY)
    from ludus.api import start

    path = Path(options.run) if options.run else Path("runs") / _name(arguments[0])
    run = start(
        config, origins, path, quiet=options.quiet or options.json, init_from=options.init_from, init_modules=options.init_modules
    )
    print(json.dumps(summary(run)) if options.json else text(run))
    return status(run)


def status(run: Any) -> int:
    """1 where the doctor has stopped the run before its budget was spent."""
    result, config = _findings(run), run.config()
    return int(result["verdict"] == "critical" and config.doctor.on_critical != "warn")


def _name(recipe: str) -> str:
    from ludus.training.run import default_name

    return default_name(recipe)


def summary(run: Any) -> dict[str, Any]:
    """What a run came to: its last line, its best checkpoint."""
    lines = run.metrics()
    last = lines[-1] if lines else {}
    best = run.path / "best.json"
    return {
        "run": str(run.path),
        "agent_steps": last.get("progress/agent_steps", 0),
        "seconds": last.get("progress/seconds", 0.0),
        "agent_steps_per_s": last.get("speed/agent_steps_per_s", 0.0),
        "evaluation": {k: v for line in lines for k, v in line.items() if k.startswith("eval/")},
        "best": json.loads(best.read_text()) if best.exists() else None,
        **_findings(run),
    }


def _findings(run: Any) -> dict[str, Any]:
    from ludus.doctor.finding import as_json
    from ludus.training.watching import read_findings

    return as_json(r.finding for r in read_findings(run) if r.gone is None)


def _verdict(result: dict[str, Any]) -> list[str]:
    """The doctor's word at the end: what is wrong, why, and what to do."""
    lines = [f"doctor: {result['verdict']}"]
    for finding in result["findings"]:
        if finding["severity"] != "info":
            lines += [f"  {finding['severity']}: {finding['cause']} ({finding['check']})", f"    {finding['evidence']}"]
            lines += [f"    fix: {finding['fix']}"]
    return lines


def text(run: Any) -> str:
    result = summary(run)
    lines = [
        f"{result['agent_steps']:,} agent-steps in {result['seconds']:.0f} s ({result['agent_steps_per_s']:,.0f} per second)"
    ]
    for name, value in result["evaluation"].items():
        if not name.endswith(("_low", "_high", "_greedy", "length")):
            low, high = result["evaluation"].get(f"{name}_low"), result["evaluation"].get(f"{name}_high")
            lines.append(
                f"  {name.removeprefix('eval/'):<36} {value:>8.3f}" + (f"   [{low:.3f}, {high:.3f}]" if low is not None else "")
            )
    if result["best"]:
        lines.append(
            f"best: {result['best']['metric']} = {result['best']['value']:.3f} at {result['run']}@{result['best']['step']}"
        )
    lines += _verdict(result)
    lines.append(
        f"report: {result['run']}/report.html    again: ludus eval {result['run']}    go on: ludus resume {result['run']}"
    )
    return "\n".join(lines)
