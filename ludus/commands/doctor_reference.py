"""ludus doctor reference"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ludus.commands.parsing import parse
from ludus.doctor.log import read_log
from ludus.doctor.reference import REFERENCES, make
from ludus.errors import LudusError


@dataclass(kw_only=True)
class MakeReference:
    """Makes a recipe's reference, the usual course of its metrics, from finished runs that differ
    in their seed."""

    recipe: Annotated[str, tyro.conf.Positional]
    """The recipe's name."""
    runs: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Run folders, two at least."""
    output: str | None = None
    """File to write (default: the one that ships with the recipe)."""


def main(arguments: list[str]) -> int:
    options = parse(
        MakeReference,
        arguments,
        "doctor reference",
        "ludus doctor reference pursuit runs/p-0 runs/p-1 runs/p-2",
    )
    logs = [read_log(path) for path in options.runs]
    games = {str(log.config.get("game")) for log in logs}
    if len(games) > 1 or not logs:
        raise LudusError(
            "a reference is of one game, but these runs play "
            f"{' and '.join(sorted(games)) or 'none'}"
        )
    path = (
        Path(options.output)
        if options.output
        else REFERENCES / f"{options.recipe.replace(':', '-')}.json"
    )
    made = make(options.recipe, logs)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f' "{name}": {json.dumps(band)}' for name, band in made.pop("metrics").items()]
    head = json.dumps(made)[:-1]
    path.write_text(head + ', "metrics": {\n' + ",\n".join(lines) + "\n}}\n")
    print(f"{path}: {len(lines)} metrics of {made['seeds']} runs")
    return 0
