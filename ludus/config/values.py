"""A configuration as plain data and back: every value under its dotted name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ludus.config.curriculum import VARY, Stage
from ludus.config.experiment import PRESETS, Config
from ludus.config.policy import OF_ACTIONS
from ludus.errors import LudusError, nearest


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every value under its dotted name."""
    out: dict[str, Any] = {}
    for f in dataclasses.fields(config):
        value, name = getattr(config, f.name), prefix + f.name
        if dataclasses.is_dataclass(value):
            out |= flatten(value, name + ".")
        elif f.name == "game_values":
            out |= {f"game.{k}": v for k, v in value.items()}
        elif f.name in (*OF_ACTIONS, "vary"):
            out |= {f"{name}.{entry}": v for entry, v in value.items()}
        elif f.name == "roles":
            out |= {
                f"{name}.{role}.{k}": v for role, values in value.items() for k, v in values.items()
            }
        elif f.name == "stages":
            out[name] = [dataclasses.asdict(stage) for stage in value]
        else:
            out[name] = list(value) if isinstance(value, tuple) else value
    return out


def unflatten(values: Mapping[str, Any]) -> Config:
    """The Config that `flatten` described; refuses keys that do not exist."""
    config = Config(game=str(values["game"]))
    for name, value in values.items():
        set_value(config, name, value)
    return config


def set_value(config: Config, name: str, value: Any) -> None:
    """Sets one value by its dotted name."""
    if name.startswith("game."):
        config.game_values[name.removeprefix("game.")] = value
        return
    if name.startswith(VARY):
        config.curriculum.tasks.vary[name.removeprefix(VARY)] = str(value)
        return
    target: Any = config
    *sections, key = name.split(".")
    if len(sections) == 2 and sections[0] == "policy" and sections[1] in OF_ACTIONS:
        getattr(config.policy, sections[1])[key] = value
        return
    if sections[:2] == ["learn", "roles"] and len(sections) == 3:
        config.learn.set_for_role(sections[2], key, value)
        return
    if name == "curriculum.stages":
        config.curriculum.stages = tuple(
            Stage(**stage) if isinstance(stage, dict) else stage for stage in value
        )
        return
    for section in sections:
        target = getattr(target, section, None)
    if target is None or key not in {f.name for f in dataclasses.fields(target)}:
        raise LudusError(f"unknown key '{name}': {nearest(name, flatten(config))}")
    setattr(target, key, tuple(value) if isinstance(value, list) else value)


def origins(final: Config, recipe: Config, preset: str | None = None) -> dict[str, str]:
    """Where each value came from: default, recipe, preset or command line."""
    default = flatten(Config(game=recipe.game))
    of_recipe, of_final = flatten(recipe), flatten(final)
    chosen = PRESETS[preset] if preset else {}
    out = {}
    for name, value in of_final.items():
        if name in chosen and chosen[name] == value and of_recipe.get(name) != value:
            out[name] = f"preset {preset}"
        elif name not in of_recipe or of_recipe[name] != value:
            out[name] = "command line"
        elif name not in default or default[name] != value:
            out[name] = "recipe"
        else:
            out[name] = "default"
    return out
