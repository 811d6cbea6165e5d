"""Recipes: functions that return a Config. A game's presets are recipes too, as game:preset."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ludus.batches import FOREIGN
from ludus.config import Config
from ludus.config.handed_over import source_of
from ludus.errors import FAULTS, LudusError, nearest
from ludus.games import REGISTRY, load_game
from ludus.imports import import_object
from ludus.recipes.gym import gym
from ludus.sim.game import Game

RECIPES = {
    "arena": "ludus.recipes.arena:arena",
    "arena_small": "ludus.recipes.arena:arena_small",
    "brawl": "ludus.recipes.brawl:brawl",
    "brawl_strategy": "ludus.recipes.brawl:brawl_strategy",
    "brawl_strategy_full": "ludus.recipes.brawl:brawl_strategy_full",
    "hide_and_seek": "ludus.recipes.hide_and_seek:hide_and_seek",
    "mechs": "ludus.recipes.mechs:mechs",
    "mechs_2v2": "ludus.recipes.mechs:mechs_2v2",
    "pursuit": "ludus.recipes.pursuit:pursuit",
    "racing": "ludus.recipes.racing:racing",
    "racing_dqn": "ludus.recipes.racing:racing_dqn",
    "racing_lidar": "ludus.recipes.racing:racing_lidar",
    "racing_seed_failing": "ludus.recipes.racing:racing_seed_failing",
    "racing_seed_working": "ludus.recipes.racing:racing_seed_working",
}


def load_recipe(name: str) -> Config:
    """A Config from a recipe's name, NAME:PRESET, gym:ID, pettingzoo:MODULE, or module:function of
    your own.

    A function of your own returns a Config, or an env to train on.
    """
    if name.startswith(FOREIGN):
        return gym(name)
    head, _, rest = name.partition(":")
    if head in RECIPES:
        config = _call(RECIPES[head])
        if rest:
            load_game(f"{config.game}:{rest}")  # refuses a preset that is not there
            config.game = f"{config.game}:{rest}"
        return config
    if rest:
        return _call(name)
    raise LudusError(
        f"unknown recipe '{name}': {nearest(name, [*RECIPES, *REGISTRY])} (your own: "
        "module:function)"
    )


def recipe_of(given: Any) -> Config:
    """A Config from a recipe's name, a function that returns a Config, or an env or what makes one;
    a copy of a Config."""
    if isinstance(given, str):
        return load_recipe(given)
    if isinstance(given, FunctionType):
        # what is wrong with an env function is said when its envs are made
        with contextlib.suppress(*FAULTS):
            made = given()
            if isinstance(made, Config):
                return copy.deepcopy(made)
            made.close()
    if isinstance(given, Config):
        return copy.deepcopy(given)

    return gym(source_of(given))


def _call(path: str) -> Config:
    function = import_object(path, "recipe")
    if not callable(function):
        how = (
            f": write one that returns Config(game='{path}')" if isinstance(function, Game) else ""
        )
        raise LudusError(
            f"'{path}' is a {type(function).__name__}, not a function that returns a Config{how}"
        )
    made: Callable[[], Config] = function
    try:
        config = made()
    except SystemExit:
        raise LudusError(
            f"the recipe '{path}' called sys.exit(), which ends the program: raise an error instead"
        ) from None
    if hasattr(config, "reset") and hasattr(config, "step"):
        return gym(f"env:{path}")
    if not isinstance(config, Config):
        raise LudusError(f"'{path}' returned a {type(config).__name__}, not a Config or an env")
    return copy.deepcopy(config)
