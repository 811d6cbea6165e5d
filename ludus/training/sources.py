"""Where envs come from: a Ludus game, or gym:ID."""

from __future__ import annotations

from typing import Any

from ludus.config import Config
from ludus.errors import LudusError
from ludus.sim.game import Game
from ludus.sim.layout import Layout


def is_foreign(name: str) -> bool:
    return name.startswith("gym:")


def find_game(name: str) -> tuple[Game, str | None]:
    from ludus.games import load_game

    return load_game(name)


def make_batch(
    config: Config, num_envs: int, seed: int, *, stagger: bool = False, threads: int = 1, held_out: bool = False
) -> Any:
    """A batch for training, or for evaluation on what is not trained on."""
    if is_foreign(config.game):
        from ludus.envs.gymnasium import GymBatch

        if config.game_values:
            raise LudusError(f"{config.game} has no game parameters, but {', '.join(config.game_values)} was set")
        return GymBatch(config.game.removeprefix("gym:"), num_envs, seed=seed, device=config.device)
    from ludus.sim import Batch

    game, preset = find_game(config.game)
    overrides = {**config.game_values, **(game.held_out if held_out else {})}
    return Batch(
        game, num_envs, device=config.device, seed=seed, overrides=overrides, preset=preset, threads=threads, stagger=stagger
    )


def layout_of(config: Config) -> tuple[Any, Game | None]:
    """Names and sizes, without making a batch; and the game, where it is one of ours."""
    if is_foreign(config.game):
        return make_batch(config, 1, config.seed).layout, None
    game, preset = find_game(config.game)
    return Layout(game, game.resolve(config.game_values, preset)), game


def role_rows(config: Config) -> dict[str, int]:
    """Agents of each role over all envs. A game or env that cannot be made is refused here, before anything is written."""
    return {s.role: s.count * s.teams * config.envs for s in layout_of(config)[0].seats}
