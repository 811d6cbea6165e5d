"""A configuration as plain data and back: every value under its dotted name."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from ludus.config.algorithm import AlgorithmConfig, RoleConfig
from ludus.config.curriculum import VARY, Stage
from ludus.config.experiment import Config
from ludus.config.limits import name_of
from ludus.config.network import NetworkConfig
from ludus.config.policy import OF_ACTIONS
from ludus.errors import LudusError, nearest
from ludus.imports import is_path

NOT_SET = ("other_learners",)
"""Fields of a configuration that are no values of a run."""


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every value under its dotted name."""
    out: dict[str, Any] = {}
    for f in dataclasses.fields(config):
        value, name = getattr(config, f.name), prefix + name_of(config, f.name)
        if f.name in NOT_SET:
            continue
        if f.name == "unread":
            out |= {prefix + key: v for key, v in value.items()}
        elif dataclasses.is_dataclass(value):
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


@dataclasses.dataclass(kw_only=True)
class UnreadAlgorithm(AlgorithmConfig):
    """Settings of an algorithm whose code was not imported: as they stand in the file."""

    unread: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(kw_only=True)
class UnreadNetwork(NetworkConfig):
    """The same of a network."""

    unread: dict[str, Any] = dataclasses.field(default_factory=dict)


def unflatten(values: Mapping[str, Any], *, own_code: bool = True) -> Config:
    """The Config that `flatten` described; refuses keys that do not exist. `own_code`: may an
    algorithm and a network of the user's own be imported?"""
    config = Config(game=str(values["game"]))
    algorithm = str(values.get("algorithm", config.algorithm))
    network = str(values.get("policy.network", config.policy.network))
    if is_path(algorithm) and not own_code:
        config.algorithm, config.learner = algorithm, UnreadAlgorithm()
    else:
        config.choose_algorithm(algorithm)
    if is_path(network) and not own_code:
        config.policy.network, config.policy.network_settings = network, UnreadNetwork()
    else:
        config.policy.choose_network(network)
    for name, value in values.items():
        set_value(config, name, value)
    return config


def set_value(config: Config, name: str, value: Any) -> None:
    """Sets one value by its dotted name."""
    if name == "algorithm":
        config.choose_algorithm(str(value))
        return
    if name == "policy.network":
        config.policy.choose_network(str(value))
        return
    if name.startswith("game."):
        config.game_values[name.removeprefix("game.")] = value
        return
    if name.startswith(VARY):
        config.curriculum.tasks.vary[name.removeprefix(VARY)] = str(value)
        return
    *sections, key = name.split(".")
    if len(sections) == 2 and sections[0] == "policy" and sections[1] in OF_ACTIONS:
        getattr(config.policy, sections[1])[key] = value
        return
    settings = config.learner
    if sections[:2] == [config.section, "roles"] and len(sections) == 3:
        if isinstance(settings, RoleConfig):
            settings.set_for_role(config.section, sections[2], key, value)
            return
        if isinstance(settings, UnreadAlgorithm):
            settings.unread[f"roles.{sections[2]}.{key}"] = value
            return
        raise LudusError(
            f"{name}: the algorithm {config.algorithm} has no values for single roles; its "
            "settings would have to inherit ludus.config.RoleConfig"
        )
    if name == "curriculum.stages":
        config.curriculum.stages = tuple(
            Stage(**stage) if isinstance(stage, dict) else stage for stage in value
        )
        return
    target = section_at(config, sections)
    known = {f.name for f in dataclasses.fields(target)} if target is not None else set()
    if isinstance(target, UnreadAlgorithm | UnreadNetwork) and key not in known:
        target.unread[key] = value
        return
    if key not in known:
        raise LudusError(f"unknown key '{name}': {nearest(name, flatten(config))}")
    setattr(target, key, tuple(value) if isinstance(value, list) else value)


def section_at(config: Config, sections: list[str]) -> Any:
    """The dataclass at this place, whose fields are settings; None where there is none."""
    if sections == [config.section]:
        return config.learner
    if sections == ["policy", config.policy.section]:
        return config.policy.network_settings
    target: Any = config
    for section in sections:
        target = getattr(target, section, None)
    return target if dataclasses.is_dataclass(target) else None


def apply_preset(config: Config, name: str) -> None:
    """Presets change a recipe where it trades speed against stability."""
    for key, value in preset_values(config, name).items():
        set_value(config, key, value)


def preset_values(config: Config, name: str) -> dict[str, Any]:
    """Dotted name → value; refuses a preset that the algorithm does not have."""
    presets = config.learner.presets
    if name not in presets:
        reason = nearest(name, presets) if presets else "leave it out"
        raise LudusError(f"the algorithm {config.algorithm} has no preset '{name}': {reason}")
    return {
        key if "." in key else f"{config.section}.{key}": value
        for key, value in presets[name].items()
    }


def origins(final: Config, recipe: Config, preset: str | None = None) -> dict[str, str]:
    """Where each value came from: default, recipe, preset or command line."""
    of_recipe, of_default = _as_chosen(recipe, final), _as_chosen(Config(game=recipe.game), final)
    of_final = flatten(final)
    chosen = preset_values(final, preset) if preset else {}
    out = {}
    for name, value in of_final.items():
        if name in chosen and chosen[name] == value and of_recipe.get(name) != value:
            out[name] = f"preset {preset}"
        elif name not in of_recipe or of_recipe[name] != value:
            out[name] = "command line"
        elif name not in of_default or of_default[name] != value:
            out[name] = "recipe"
        else:
            out[name] = "default"
    return out


def _as_chosen(config: Config, final: Config) -> dict[str, Any]:
    """Its values, with the sections of the algorithm and the network that were chosen in the end:
    only values that both have can be compared."""
    chosen = copy.deepcopy(config)
    chosen.choose_algorithm(final.algorithm)
    chosen.policy.choose_network(final.policy.network)
    names = {"algorithm": config.algorithm, "policy.network": config.policy.network}
    return {**flatten(chosen), **names}
