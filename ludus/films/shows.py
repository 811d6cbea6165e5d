"""What the viewer knows of a game: `view.py` and `view.js` in the game's folder, and which games it
may load at all.

`view.py` is plain data and small functions:

- STEP_SECONDS: how long a step lasts when played at normal speed
- STEPS: name → field or function(batch), sent for every step
- RARE: the same, for large things that seldom change (a map that is damaged): sent when they do
- STATIC: the same, sent once per episode
- SEEN: name → function(batch, agent): what one agent sees, sent for the agent that is picked
- BOTS: names of bots worth watching, one per team, where nobody says who plays
- CONTROLS: (keys, what they do) for the help; `act(keys, batch, agent)`: the action for these keys;
  PAD: gamepad buttons as keys

Functions return arrays of env 0.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ludus.errors import LudusError, nearest
from ludus.games import REGISTRY, load_game
from ludus.sim import Batch
from ludus.sim.game import Game
from ludus.who import own_bots

PLAIN = "plain"  # the view of games that bring none
RECORDED = "recorded"  # of envs from elsewhere
OWN_VIEWS = (PLAIN, RECORDED)


class Show:
    """A game's view. Games without a `view.py` show their agents as dots, if they have a
    `position`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.game, self.preset = load_game(source)
        folder = package_of(source)
        module = view_module(folder)
        script = folder_of(folder) / "view.js"
        self.script: Path | None = script if script.exists() else None
        self.name = self.game.name if self.script else PLAIN
        self.step_seconds: float = getattr(module, "STEP_SECONDS", 0.1)
        self.steps: dict[str, Any] = dict(getattr(module, "STEPS", plain_fields(self.game)))
        self.rare: dict[str, Any] = dict(getattr(module, "RARE", {}))
        self.static: dict[str, Any] = dict(getattr(module, "STATIC", {}))
        self.seen: dict[str, Callable[[Batch, int], np.ndarray]] = dict(getattr(module, "SEEN", {}))
        self.bots: Sequence[str] = getattr(module, "BOTS", ())
        self.controls: Sequence[tuple[str, str]] = getattr(module, "CONTROLS", ())
        self.pad: Sequence[str] = getattr(module, "PAD", ())
        self.act: Callable[[set[str], Batch, int], Mapping[str, Any]] | None = getattr(
            module, "act", None
        )


def package_of(source: str) -> str:
    """The package whose folder holds the game: `ludus.games.pursuit` for `pursuit`."""
    head = source.split(":")[0]
    module = REGISTRY[head].split(":")[0] if head in REGISTRY else head
    return module.rpartition(".")[0] or module


def view_module(package: str) -> Any:
    name = f"{package}.view"
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        found = None
    return importlib.import_module(name) if found else None


def folder_of(package: str) -> Path:
    found = importlib.util.find_spec(package)
    return Path(found.origin).parent if found and found.origin else Path("/nonexistent")


def plain_fields(game: Game) -> dict[str, Any]:
    field = game.state.get("position")
    fits = field is not None and field.shape[:1] == ("agents",) and field.shape[1:] in ((2,), (3,))
    return {"position": "position"} if fits else {}


class Shows:
    """The games and bots that may be loaded: ours, and those the user named. What a run, a replay
    or a page says is never imported."""

    def __init__(self, own: Sequence[str] = (), bots: Sequence[str] = ()) -> None:
        """`own` games, and `bots` by import path, of the user."""
        self.bots = tuple(bots)
        self.allowed = {
            *REGISTRY,
            *(name.rpartition(":")[0] if name.count(":") > 1 else name for name in own),
        }
        self._known: dict[str, Show] = {}

    def own_bots(self, cast: Iterable[str]) -> list[str]:
        """The bots of the user's own that a cast names: ROLE=bot:package.module:NAME."""
        named = own_bots(entry.rpartition("=")[2] for entry in cast)
        for path in named:
            if path not in self.bots:
                raise LudusError(
                    f"the bot '{path[:80]}' is not one of Ludus: allow it with `ludus view GAME "
                    f"--agents bot:{path[:80]}`"
                )
        return named

    def find(self, source: str) -> Show:
        head = source.split(":")[0]
        own = ":".join(source.split(":")[:2])
        if head not in self.allowed and own not in self.allowed:
            if ":" in source and head not in REGISTRY:
                raise LudusError(
                    f"the game '{source[:80]}' is not one of Ludus: allow it with `ludus view "
                    f"--games {own[:80]}`"
                )
            raise LudusError(f"unknown game '{source[:80]}': {nearest(head[:80], REGISTRY)}")
        if source not in self._known:
            self._known[source] = Show(source)
        return self._known[source]
