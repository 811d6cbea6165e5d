"""Where envs come from: a Ludus game, or an env of another library (gym:ID, pettingzoo:MODULE,
env:MODULE:FUNCTION) or elsewhere (remote:PORT)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ludus.config import Config, bots_named
from ludus.config.schedules import parse
from ludus.errors import LudusError
from ludus.external.foreign import ForeignBatch
from ludus.external.gate import Gate
from ludus.external.pictures import FILMED
from ludus.games import load_game
from ludus.games.own_bots import with_bots
from ludus.protocols import Batch as BatchProtocol
from ludus.protocols import Layout as LayoutProtocol
from ludus.sim import Batch
from ludus.sim.conformance import try_rules
from ludus.sim.game import Game, Settings
from ludus.sim.layout import Layout
from ludus.sim.program import controllers

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
    bots: Sequence[str] | None = None,
) -> BatchProtocol:
    """A batch for training, or for evaluation on what is not trained on; with `validation` on what
    only chooses checkpoints. `filmed`: of envs from elsewhere, a few take pictures. `bots`: import
    paths of bots that the game has beside its own (default: those that the config names)."""
    if is_foreign(config.game):
        if config.game_values:
            raise LudusError(
                f"{config.game} has no game parameters, but {', '.join(config.game_values)} was set"
            )
        if held_out and config.game.startswith("remote:"):
            gate = Gate.at(config.game.removeprefix("remote:"))
            gate.layout()
            # evaluation plays with the envs that are there
            num_envs = max(1, min(num_envs, gate.num_envs()))
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
        with_bots(game, bots_named(config) if bots is None else bots),
        num_envs,
        device=config.device,
        seed=seed,
        overrides=overrides,
        preset=preset,
        threads=threads,
        stagger=stagger,
    )


def try_bots(config: Config, bots: Sequence[str]) -> None:
    """Refuses bots that leave an array or the action space, before they play compiled."""
    if bots and not is_foreign(config.game):
        game, preset = find_game(config.game)
        try_rules(with_bots(game, bots), values_at(config, 1.0), preset)


def of_game(batch: BatchProtocol) -> Batch:
    """The same batch as one of our games, which can do more: opponents, tasks, stages."""
    assert isinstance(batch, Batch), "what needs a game of ours is refused for other envs before"
    return batch


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


@dataclass(frozen=True)
class GameInfo:
    """What is known of the game that a config plays, without making a batch of it."""

    layout: LayoutProtocol
    bots: Mapping[str, Mapping[str, int]]
    """role → bot → its number in `controller`."""
    game: Game | None = None
    """None: an env of another library. So are the following."""
    preset: str | None = None
    settings: Settings | None = None
    """Sizes, parameters and reward weights at the start."""
    state_bytes: int = 0
    """Of the simulator, for one env."""

    def rows(self, envs: int) -> dict[str, int]:
        """Agents of each role, in all envs."""
        return {s.role: s.count * s.teams * envs for s in self.layout.seats}

    @property
    def longest(self) -> float | None:
        """Steps of an episode, where the game says so."""
        return self.settings.params.get("max_steps") if self.settings is not None else None


def game_info(config: Config, bots: Sequence[str] | None = None) -> GameInfo:
    """Refuses a game or env that cannot be made, and schedules that leave a parameter's range. For
    `bots` see `make_batch`."""
    if is_foreign(config.game):
        batch = make_batch(config, 1, config.seed)
        return GameInfo(batch.layout, batch.controllers)
    game, preset = find_game(config.game)
    game = with_bots(game, bots_named(config) if bots is None else bots)
    points = (s for n, v in config.game_values.items() for s, _ in parse(v, f"game.{n}").points)
    for share in sorted({0.0, *points}, reverse=True):
        settings = game.resolve(values_at(config, share), preset)
    for name in scheduled(config, 0.0):
        if name in settings.sizes:
            raise LudusError(
                f"game.{name} is a size and cannot change during a run: give it one number"
            )
    layout = Layout(game, settings)
    return GameInfo(layout, controllers(game), game, preset, settings, layout.bytes_per_env())
