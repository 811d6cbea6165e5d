"""The games. A new one is a folder here and a line in REGISTRY; games elsewhere load by import
path, "package.module:GAME"."""

from __future__ import annotations

import importlib
import os
import sys

from ludus.errors import LudusError, nearest
from ludus.sim.game import Game

REGISTRY = {
    "arena": "ludus.games.arena.spec:GAME",
    "brawl": "ludus.games.brawl.spec:GAME",
    "hide_and_seek": "ludus.games.hide_and_seek.spec:GAME",
    "mechs": "ludus.games.mechs.spec:GAME",
    "pursuit": "ludus.games.pursuit.spec:GAME",
    "racing": "ludus.games.racing.spec:GAME",
    "racing_lidar": "ludus.games.racing.spec:LIDAR",
}


def load_game(name: str) -> tuple[Game, str | None]:
    """A game and its preset, from "NAME", "NAME:PRESET", "module:GAME" or "module:GAME:PRESET"."""
    head, *rest = name.split(":")
    if head in REGISTRY:
        path, preset = REGISTRY[head], rest
    elif len(rest) >= 1:
        path, preset = f"{head}:{rest[0]}", rest[1:]
    else:
        raise LudusError(
            f"unknown game '{name}': {nearest(name, REGISTRY)} (your own: package.module:GAME)"
        )
    if len(preset) > 1:
        raise LudusError(f"'{name}' names more than one preset: use {head}:{preset[0]}")
    game = import_object(path, "game")
    if not isinstance(game, Game):
        raise LudusError(f"'{path}' is a {type(game).__name__}, not a Game")
    if preset and preset[0] not in game.presets:
        raise LudusError(
            f"the game {game.name} has no preset '{preset[0]}': {nearest(preset[0], game.presets)}"
        )
    return game, preset[0] if preset else None


def import_object(path: str, what: str) -> object:
    """The object at "module:attribute"; modules in the working folder are found too, unless it is
    one of ours."""
    module_name, _, attribute = path.partition(":")
    if not module_name.startswith("ludus.") and os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except SystemExit:
        raise LudusError(
            f"the {what} '{path}' cannot be loaded: the module {module_name} calls sys.exit() when "
            "it is imported; put what runs as "
            f'a program under if __name__ == "__main__"'
        ) from None
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise LudusError(
            f"the {what} '{path}' cannot be loaded: there is no module '{error.name}' here or "
            "installed"
        ) from None
    if not hasattr(module, attribute):
        public = [name for name in vars(module) if not name.startswith("_")]
        raise LudusError(
            f"the module {module_name} has no '{attribute}': {nearest(attribute, public)}"
        )
    return getattr(module, attribute)
