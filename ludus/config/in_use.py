"""Which settings the algorithm and the network of a config read: each has a section of its own, and
no other is there."""

from __future__ import annotations

import dataclasses

from ludus.config.algorithm import RoleConfig
from ludus.config.experiment import Config, settings_of_algorithm
from ludus.config.values import flatten, set_value
from ludus.errors import LudusError
from ludus.imports import section_name
from ludus.registry import ALGORITHMS, NETWORKS

CALLED_NOW = {"learn.next_keys": "policy.strategy.next_keys", "learn.": "ppo."}
"""Names of an earlier version, and what they have become."""


def option_of(config: Config, role: str, key: str) -> str:
    """The dotted name of what sets `key` for a role."""
    settings = config.learner
    own = isinstance(settings, RoleConfig) and key in settings.roles.get(role, {})
    return f"{config.section}.roles.{role}.{key}" if own else f"{config.section}.{key}"


def refuse_unused(config: Config, name: str, dashes: bool = False) -> None:
    """Refuses a dotted name that the algorithm or the network in use never reads, and one that is
    called otherwise now. `dashes`: write names as on the command line."""

    def written(name: str) -> str:
        return f"--{name.replace('_', '-')}" if dashes else name

    for old, new in CALLED_NOW.items():
        if name.startswith(old):
            now = name.replace(old, new, 1)
            raise LudusError(f"{written(name)} is called {written(now)} now")
    section, _, rest = name.partition(".")
    key = rest.rsplit(".", 1)[-1]
    owner = next((n for n in ALGORITHMS if section_name(n) == section), None)
    if rest and owner is not None and section != config.section:
        known = key in {f.name for f in dataclasses.fields(config.learner)}
        fix = (
            f"use {written(f'{config.section}.{key}')}"
            if known
            else f"leave it out, or choose {written('algorithm')} {owner}"
        )
        raise LudusError(
            f"{written(name)} is a setting of {owner}, and this run learns by "
            f"{config.algorithm}: {fix}"
        )
    part, _, inner = rest.partition(".")
    if section == "policy" and inner and part in NETWORKS and part != config.policy.section:
        raise LudusError(
            f"{written(name)} is a setting of the network {part}, and this policy has the network "
            f"{config.policy.network}: choose {written('policy.network')} {part}"
        )


def full_name(config: Config, name: str) -> str:
    """The dotted name that a last name means: of the algorithm in use, or else of another one."""
    if "." in name:
        return name
    named = [n for n in flatten(config) if n == name or n.endswith("." + name)]
    named = named or [
        f"{algorithm}.{name}"
        for algorithm in ALGORITHMS
        if name in {f.name for f in dataclasses.fields(settings_of_algorithm(algorithm))}
    ]
    exact = [n for n in named if n == name]
    if len(exact or named) > 1:
        raise LudusError(f"'{name}' could be {' or '.join(named)}: give the dotted name")
    return (exact or named or [name])[0]


def set_by_name(config: Config, name: str, value: object) -> None:
    """Sets a value by its dotted name, or by its last name where that is unique."""
    full = full_name(config, name)
    refuse_unused(config, full)
    set_value(config, full, value)
