"""Policies that hear no messages, to measure what messages are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from ludus.batches import is_foreign
from ludus.config import Config
from ludus.errors import LudusError
from ludus.protocols import ActingPolicy


def without_messages(observation: Tensor, messages: Sequence[int]) -> Tensor:
    """The observation with zeros for its entries that are messages."""
    quiet = observation.clone()
    quiet[..., messages] = 0.0
    return quiet


class Silenced:
    """A policy that hears no messages. Everything else it does is the policy's own."""

    def __init__(self, policy: ActingPolicy, messages: Sequence[int]) -> None:
        self.policy, self.messages = policy, messages

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def __call__(self, observation: Tensor, *rest: Any) -> Any:
        return self.policy(without_messages(observation, self.messages), *rest)


def messages_of(layout: Mapping[str, Any], config: Config) -> list[int]:
    """The observation entries that are messages: "message" is in their name. None in a game where
    nothing can be said; an env from elsewhere does not tell what its actions mean."""
    said = is_foreign(config.game) or any(
        "message" in name for kind in layout["action"].values() for name in kind
    )
    return [i for i, name in enumerate(layout["observation"]) if "message" in name] if said else []


def silenced(
    policies: Mapping[str, Any], layout: Mapping[str, Any], config: Config
) -> dict[str, Any]:
    """The policies, deaf to all messages."""
    messages = messages_of(layout, config)
    if not messages:
        raise LudusError(
            f"agents of {config.game} send no messages that could be silenced: leave --silence out"
        )
    return {role: Silenced(policy, messages) for role, policy in policies.items()}
