"""Which setting a fix names. A run has those of its own algorithm and network, and no others: an
option is named only where the run's config has it, otherwise the fix says it in words.

A key without a dot is a setting of the algorithm in use: "gamma" is `ppo.gamma` in a run of PPO.
A key with a dot is a whole name: "policy.activation".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ludus.imports import section_name

if TYPE_CHECKING:
    from ludus.doctor.log import Log

WORDS = {
    "entropy": "the entropy coefficient",
    "max_grad_norm": "gradient clipping",
    "target_kl": "the target KL",
    "clip": "the clip range",
    "value_weight": "the weight of the value loss",
    "gamma": "gamma",
    "bptt": "backpropagation through time",
    "next_keys": "the loss on the opponent's next keys",
    "entries": "the entries of the history",
    "initial_log_std": "the initial log of the deviation",
}
"""Settings whose name says too little; of others the name itself does: the learning rate."""


CHOICES = {"algorithm": "", "policy.network": "policy."}
"""Settings that choose a component, and what the name of its own section begins with."""


def sections_of(config: Mapping[str, Any]) -> dict[str, str]:
    """The section of each component in use: {"algorithm": "ppo.", "policy.network":
    "policy.strategy."}."""
    return {
        choice: f"{prefix}{section_name(str(config[choice]))}."
        for choice, prefix in CHOICES.items()
        if config.get(choice)
    }


def full_key(config: Mapping[str, Any], key: str) -> str:
    """What config.json calls the setting, whether it has it or not."""
    return key if "." in key else f"{section_name(str(config.get('algorithm', '')))}.{key}"


def option(config: Mapping[str, Any], key: str) -> str:
    """What config.json calls the setting; "" where it has none of that name."""
    name = full_key(config, key)
    return name if name in config else ""


def lacks(log: Log, key: str) -> bool:
    """Is it known that the run has no such setting? Of a log without settings nothing is known."""
    return bool(log.config) and not log.option(key)


def in_words(key: str) -> str:
    """learning_rate → the learning rate"""
    name = key.rpartition(".")[2]
    return WORDS.get(name, f"the {name.replace('_', ' ')}")


def named(log: Log, key: str) -> str:
    """ppo.learning_rate, or: the learning rate"""
    return log.option(key) or in_words(key)


def flag(log: Log, key: str, value: str) -> str:
    """--ppo.target-kl 0.02, or: the target KL at 0.02"""
    name = log.option(key)
    return f"--{name.replace('_', '-')} {value}" if name else f"{in_words(key)} at {value}"


def equal(log: Log, key: str, value: str) -> str:
    """ppo.target_kl=0.02, or: the target KL at 0.02"""
    name = log.option(key)
    return f"{name}={value}" if name else f"{in_words(key)} at {value}"


def in_brackets(log: Log, key: str, value: str = "") -> str:
    """An option beside words that say the same: " (ppo.reward_scale)", or nothing."""
    name = log.option(key)
    return f" ({name}{'=' if value else ''}{value})" if name else ""


def overrides(log: Log, changes: Mapping[str, str]) -> dict[str, str]:
    """Those of the changes whose setting the run has, by its full name."""
    return {name: value for key, value in changes.items() if (name := log.option(key))}
