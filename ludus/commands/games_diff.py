"""ludus games diff"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from ludus.commands.parsing import parse
from ludus.errors import LudusError
from ludus.files import read_json, understood
from ludus.games import REGISTRY, load_game
from ludus.sim.game import Game


@dataclass(kw_only=True)
class GamesDiff:
    """Says in plain words how two effective games differ: sizes, parameters, reward weights.

    Of a game or preset that is what its declaration gives; of a run what the simulator held when
    the run began.
    """

    a: Annotated[str, tyro.conf.Positional]
    """A game, game:preset, your own as package.module:GAME, or a run folder."""
    b: Annotated[str, tyro.conf.Positional]
    """What to compare it with."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(
        GamesDiff,
        arguments,
        "games diff",
        "ludus games diff arena:easy_shaped arena:default_after_rewrite",
    )
    with understood(f"{options.a} or {options.b}"):
        differences = compare_games(effective(options.a), effective(options.b))
    if options.json:
        print(json.dumps({"differences": differences}))
    else:
        lines = [f"{d['text']}  ({d['key']})" for d in differences]
        print("\n".join(lines) or f"{options.a} and {options.b} are the same game")
    return 0


def effective(reference: str) -> dict[str, Any]:
    """The game as received: {"game", "sizes", "params", "rewards"}; of a run also its layout and
    fingerprint."""
    stored = Path(reference) / "game.json"
    if stored.is_file():
        return _stored(stored)
    if Path(reference).is_dir():
        raise LudusError(
            f"{reference} is a folder without game.json: give a run folder, a game or game:preset"
        )
    game, preset = load_game(reference)
    settings = game.resolve(preset=preset)
    return {
        "game": game.name,
        "sizes": settings.sizes,
        "params": settings.params,
        "rewards": settings.weights,
        "source": game,
    }


def _stored(file: Path) -> dict[str, Any]:
    try:
        data = read_json(file)
        return {
            **data,
            **{section: dict(data[section]) for section in ("sizes", "params", "rewards")},
            "game": str(data["game"]),
        }
    except (OSError, ValueError, KeyError, TypeError):
        raise LudusError(
            f"{file} cannot be read as the game of a run: is it being written, or from another "
            "program?"
        ) from None


def compare_games(a: dict[str, Any], b: dict[str, Any]) -> list[dict[str, Any]]:
    """Every difference as {"key", "a", "b", "text"}; keys are the names that overrides use."""
    if a["game"] != b["game"]:
        return [
            _difference(
                "game", a["game"], b["game"], f"the game is {b['game']} instead of {a['game']}"
            )
        ]
    game = a.get("source") or b.get("source") or _registered(a["game"])
    out = []
    for section, prefix in (("sizes", ""), ("params", ""), ("rewards", "reward.")):
        for name in dict.fromkeys([*a[section], *b[section]]):
            old, new = a[section].get(name), b[section].get(name)
            if not _same(old, new):
                out.append(
                    _difference(prefix + name, old, new, _text(game, section, name, old, new))
                )
    out += _layout_differences(a.get("layout"), b.get("layout"))
    if (
        not out
        and a.get("fingerprint")
        and b.get("fingerprint")
        and a["fingerprint"] != b["fingerprint"]
    ):
        out.append(
            _difference(
                "rules", a["fingerprint"], b["fingerprint"], "the code of the rules differs"
            )
        )
    return out


def _difference(key: str, a: Any, b: Any, text: str) -> dict[str, Any]:
    return {"key": key, "a": a, "b": b, "text": text}


def _registered(name: str) -> Game | None:
    return load_game(name)[0] if name in REGISTRY else None


def _same(a: Any, b: Any) -> bool:
    """Equal as the simulator holds them, in single precision."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return bool(np.float32(a) == np.float32(b))
    return bool(a == b)


def _layout_differences(a: dict[str, Any] | None, b: dict[str, Any] | None) -> list[dict[str, Any]]:
    if a is None or b is None:
        return []
    out = []
    for key in ("observation", "action", "roles"):
        if a[key] != b[key]:
            count = f": {len(b[key])} entries, before {len(a[key])}" if key == "observation" else ""
            out.append(
                _difference(key, a[key], b[key], f"the {key} is laid out differently{count}")
            )
    return out


# -- plain words -----------------------------------------------------------------------------------


def _text(game: Game | None, section: str, name: str, a: Any, b: Any) -> str:
    if a is None or b is None:
        return (
            f"{name} is only in the {'second' if a is None else 'first'} game: "
            f"{_word(b if a is None else a)}"
        )
    if section == "rewards":
        if b == 0:
            return f"{name} no longer rewarded"
        return (
            f"{name} now rewarded with {_word(b)}"
            if a == 0
            else f"{name} rewarded with {_word(b)} instead of {_word(a)}"
        )
    param = game.params.get(name) if game is not None and section == "params" else None
    if param is None or not param.phrase:
        return (
            f"{param.help if param is not None and param.help else name}: {_word(b)} instead of "
            f"{_word(a)}"
        )
    one, _, many = param.phrase.partition("|")
    phrase = one if b == 1 or not many else many
    if "{}" not in phrase:
        return phrase
    counts = phrase.startswith("{}")  # "no blocks", but "altar needs 0 batteries"
    return (
        f"{phrase.format('no' if counts and b == 0 else _word(b))} instead of "
        f"{'none' if counts and a == 0 else _word(a)}"
    )


def _word(value: Any) -> str:
    """A number as one writes it; a value that differs between envs as its range."""
    if isinstance(value, dict):
        return f"{_word(value['low'])} to {_word(value['high'])}"
    return f"{value:g}" if isinstance(value, int | float) else str(value)
