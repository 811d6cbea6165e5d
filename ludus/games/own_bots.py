"""Bots of the user's own, by import path: a game that has them beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ludus.errors import LudusError, nearest
from ludus.imports import import_object
from ludus.sim.game import Bot, Game


def load_bot(path: str) -> Bot:
    """What bot:package.module:NAME names."""
    found = import_object(path, "bot")
    if not isinstance(found, Bot):
        raise LudusError(
            f"the bot '{path}' is a {type(found).__name__}, not a bot: write @bot(roles=…, "
            "writes=…), from ludus.sim, above a function"
        )
    return replace(found, path=path)


def with_bots(game: Game, paths: Sequence[str]) -> Game:
    """The game with these bots in every role that they can play. The rules and the numbers of its
    own bots stay as they are."""
    if not paths:
        return game
    roles = [role.name for role in game.roles]
    bots = {role: list(game.bots.get(role, ())) for role in roles}
    for path in paths:
        bot = load_bot(path)
        for role in bot.roles or roles:
            if role not in bots:
                raise LudusError(
                    f"the bot '{path}' is for the role '{role}', which {game.name} does not have: "
                    f"{nearest(role, roles)}"
                )
            bots[role].append(bot)
    return replace(game, bots=bots)
