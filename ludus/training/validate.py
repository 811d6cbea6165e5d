"""Everything that cannot work is refused before the first step, with the value, the limit and the
fix: each setting, then each section, then what depends on the game."""

from __future__ import annotations

import math

from ludus import machine
from ludus.algorithms.algorithm import algorithm_class
from ludus.batches import GameInfo, game_info, values_at
from ludus.config import Config
from ludus.curriculum.check_stages import check_stages
from ludus.curriculum.tasks import check_tasks
from ludus.doctor.own_checks import load_checks
from ludus.errors import LudusError
from ludus.league.check import check_opponents
from ludus.networks.check import check_network
from ludus.runs import sinks
from ludus.sim.conformance import bots_elsewhere, try_rules
from ludus.training.memory import check_memory


def validate(config: Config) -> GameInfo:
    """Refuses what cannot work, of a config whose values have the right types. Returns what is
    known of the game."""
    machine.require(config.device)
    sinks.require(config.log)
    info = game_info(config)
    config.check(info.rows(config.envs))
    check_opponents(config, info)
    check_network(config, info.layout)
    config.learner.check_game(config, info.layout, info.longest)
    algorithm_class(config.algorithm).check_network(config, info.layout)
    check_stages(config, info)
    check_tasks(config, info)
    check_held_out(config, info)
    check_rules(config, info)
    check_memory(config, info)
    load_checks(config.doctor.checks)
    return info


def check_held_out(config: Config, info: GameInfo) -> None:
    """Worlds that evaluation plays are not for training: what begins with first_ numbers them, and
    those above are held out."""
    game, settings = info.game, info.settings
    if game is None or settings is None:
        return
    for name in (n for n in game.held_out if n.startswith("first_")):
        chosen, limit = (
            {**settings.sizes, **settings.params}[name],
            min(game.held_out[name], game.validation.get(name, math.inf)),
        )
        if chosen >= limit:
            raise LudusError(
                f"game.{name}={chosen:.0f} is held out for evaluation, like everything from "
                f"{limit:,} on: train below {limit:,}"
            )


def check_rules(config: Config, info: GameInfo) -> None:
    """A game or bot of the user's own plays some steps with every index checked. Those of Ludus
    have tests for it."""
    game = info.game
    if game is not None and (
        bots_elsewhere(game)
        or any(
            not phase.function.__module__.startswith("ludus.")
            for phase in (*game.step, *game.reset, *game.setup)
        )
    ):
        try_rules(game, values_at(config, 0.0), info.preset)
