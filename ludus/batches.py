"""Where envs come from: a Ludus game, or an env of another library (gym:ID, pettingzoo:MODULE,
env:MODULE:FUNCTION) or elsewhere (remote:PORT)."""

from __future__ import annotations

from typing import Any

from ludus.config import Config
from ludus.config.schedules import parse
from ludus.errors import LudusError
from ludus.external.foreign import ForeignBatch
from ludus.external.gate import Gate
from ludus.external.pictures import FILMED
from ludus.games import load_game
from ludus.sim import Batch
from ludus.sim.game import Game
from ludus.sim.layout import Layout

FOREIGN = ("gym:", "pettingzoo:", "env:", "remote:")
# steps of an episode: an evaluation waits for whole ones, and envs elsewhere may have no limit
LONGEST_EVALUATED = 10_000


def is_foreign(name: str) -> bool:
    return name.startswith(FOREIGN)


def find_game(name: str) -> tuple[Game, str | None]:

    return load_game(name)


def make_batch(
    config: Config,
    num_envs: int,
    seed: int,
    *,
    stagger: bool = False,
    threads: int = 1,
    held_out: bool = False,
    validation: bool = False,
    filmed: bool = False,
) -> Any:
    """A batch for training, or for evaluation on what is not trained on; with `validation` on what
    only chooses checkpoints. `filmed`: of envs from elsewhere, a few take pictures."""
    if is_foreign(config.game):
        if config.game_values:
            raise LudusError(
                f"{config.game} has no game parameters, but {', '.join(config.game_values)} was set"
            )
        if held_out and config.game.startswith("remote:"):
            gate = Gate.at(config.game.removeprefix("remote:"))
            gate.layout()
            num_envs = max(
                1, min(num_envs, gate.num_envs())
            )  # evaluation plays with the envs that are there
        longest = LONGEST_EVALUATED if held_out else None
        film = FILMED if filmed else 0
        return ForeignBatch(
            config.game,
            num_envs,
            seed=seed,
            device=config.device,
            longest=longest,
            filmed=film,
            check_bounds=config.train.check_bounds,
        )

    game, preset = find_game(config.game)
    overrides = values_evaluated(config, game, validation) if held_out else values_at(config, 0.0)
    return Batch(
        game,
        num_envs,
        device=config.device,
        seed=seed,
        overrides=overrides,
        preset=preset,
        threads=threads,
        stagger=stagger,
    )


def values_at(config: Config, share: float) -> dict[str, float]:
    """Game values at a share of the budget: numbers, and where schedules stand."""
    whole = _whole_numbers(config)
    return {
        n: round(parse(v, f"game.{n}")(share)) if n in whole else parse(v, f"game.{n}")(share)
        for n, v in config.game_values.items()
    }


def values_evaluated(config: Config, game: Game, validation: bool) -> dict[str, float]:
    """What evaluations play, early and late alike: the game that schedules end with, on what is not
    trained on."""
    unseen = (game.validation if validation else {}) or game.held_out
    return {**values_at(config, 1.0), **unseen}


def scheduled(config: Config, share: float) -> dict[str, float]:
    """Those of the game values that change."""
    changing = {n for n, v in config.game_values.items() if len(parse(v, f"game.{n}").points) > 1}
    return {n: v for n, v in values_at(config, share).items() if n in changing} if changing else {}


def _whole_numbers(config: Config) -> set[str]:
    """Integer parameters that follow a schedule."""
    game, _ = find_game(config.game)
    return {
        n
        for n, p in game.params.items()
        if p.integer and isinstance(config.game_values.get(n), str)
    }


def layout_of(config: Config) -> tuple[Any, Game | None]:
    """Names and sizes, without making a batch; and the game, where it is one of ours."""
    if is_foreign(config.game):
        return make_batch(config, 1, config.seed).layout, None
    game, preset = find_game(config.game)
    for share in sorted(
        {0.0, *(s for n, v in config.game_values.items() for s, _ in parse(v, f"game.{n}").points)}
    ):
        settings = game.resolve(
            values_at(config, share), preset
        )  # refuses a schedule that leaves a parameter's range
    for name in scheduled(config, 0.0):
        if name in settings.sizes:
            raise LudusError(
                f"game.{name} is a size and cannot change during a run: give it one number"
            )
    return Layout(game, settings), game


def role_rows(config: Config) -> dict[str, int]:
    """Agents of each role over all envs. A game or env that cannot be made is refused here, before
    anything is written."""
    return {s.role: s.count * s.teams * config.envs for s in layout_of(config)[0].seats}
