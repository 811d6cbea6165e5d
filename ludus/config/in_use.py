"""Which settings the algorithm of a config reads: a section for each algorithm, of which one is in
use."""

from __future__ import annotations

import dataclasses
from typing import Any

from ludus.config.experiment import PRESETS, Config
from ludus.config.values import flatten, set_value
from ludus.errors import LudusError

SECTION_OF = {"ppo": "learn", "rainbow": "rainbow"}


def section_of(config: Config) -> str:
    return SECTION_OF.get(config.algorithm, "learn")


def settings_of(config: Config, role: str) -> Any:
    """What the algorithm in use learns a role with."""
    return config.rainbow if section_of(config) == "rainbow" else config.learn.for_role(role)


def option_of(config: Config, role: str, key: str) -> str:
    """The dotted name of what sets `key` for a role."""
    section = section_of(config)
    own = section == "learn" and key in config.learn.roles.get(role, {})
    return f"learn.roles.{role}.{key}" if own else f"{section}.{key}"


def refuse_unused(config: Config, name: str, dashes: bool = False) -> None:
    """Refuses a dotted name that the algorithm in use never reads. `dashes`: write names as on the
    command line."""
    owner = next(
        (algorithm for algorithm, section in SECTION_OF.items() if name.startswith(f"{section}.")),
        config.algorithm,
    )
    if config.algorithm not in SECTION_OF or owner == config.algorithm:
        return
    section, key = section_of(config), name.rsplit(".", 1)[-1]
    written = {
        n: f"--{n.replace('_', '-')}" if dashes else n
        for n in (name, f"{section}.{key}", "algorithm")
    }
    known = key in {f.name for f in dataclasses.fields(getattr(config, section))}
    raise LudusError(
        f"{written[name]} is a setting of {owner}, and this run learns by {config.algorithm}: "
        + (
            f"use {written[f'{section}.{key}']}"
            if known
            else f"leave it out, or choose {written['algorithm']} {owner}"
        )
    )


def full_name(config: Config, name: str) -> str:
    """The dotted name that a last name means; of the algorithms' settings, only those of the one in
    use are meant."""
    if "." in name:
        return name
    unused = "rainbow." if config.algorithm == "ppo" else "learn."
    named = [n for n in flatten(config) if n == name or n.endswith("." + name)]
    matches = [n for n in named if not n.startswith(unused)] or named[:1]
    exact = [n for n in matches if n == name]
    if len(exact or matches) > 1:
        raise LudusError(f"'{name}' could be {' or '.join(matches)}: give the dotted name")
    return (exact or matches or [name])[0]


def set_by_name(config: Config, name: str, value: Any) -> None:
    """Sets a value by its dotted name, or by its last name where that is unique."""
    full = full_name(config, name)
    refuse_unused(config, full)
    set_value(config, full, value)


def refuse_preset(config: Config, name: str) -> None:
    """Presets are made for one algorithm."""
    foreign = [
        key
        for key in PRESETS.get(name, {})
        if key.split(".")[0] in set(SECTION_OF.values()) - {section_of(config)}
    ]
    if foreign:
        raise LudusError(
            f"preset '{name}' is made for ppo ({', '.join(foreign)}), and this run learns by "
            f"{config.algorithm}: leave it out"
        )
