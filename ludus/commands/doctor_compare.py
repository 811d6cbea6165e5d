"""ludus doctor compare"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from ludus.commands.games_diff import compare_games, effective
from ludus.commands.parsing import parse
from ludus.doctor.compare import as_text, compare, seeds_of
from ludus.files import understood


@dataclass(kw_only=True)
class Compare:
    """What differs between two runs, where their curves part, and which difference is the likeliest
    cause."""

    a: Annotated[str, tyro.conf.Positional]
    """A run folder, or a folder of runs that differ in their seed."""
    b: Annotated[str, tyro.conf.Positional]
    """The run to compare it with."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(
        Compare, arguments, "doctor compare", "ludus doctor compare runs/works runs/fails"
    )

    first = [str(seeds_of(path)[0]) for path in (options.a, options.b)]
    with understood(f"{options.a} or {options.b}"):
        comparison = compare(options.a, options.b, game_differences(*first))
        print(json.dumps(comparison.as_json()) if options.json else as_text(comparison))
    return 0


def game_differences(a: str, b: str) -> list[dict[str, Any]]:
    """Of the games as the simulators held them; none where a run did not come to write it down."""
    if not all((Path(run) / "game.json").is_file() for run in (a, b)):
        return []
    return compare_games(effective(a), effective(b))
