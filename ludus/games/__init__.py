"""The games. A new one is a folder here and a line in REGISTRY; games elsewhere load by import
path, "package.module:GAME"."""

from __future__ import annotations

from ludus.errors import LudusError, nearest
from ludus.imports import import_object
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


def is_ours(name: str) -> bool:
    """Is it a game of Ludus itself, with or without a preset?"""
    return name.split(":")[0] in REGISTRY


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
