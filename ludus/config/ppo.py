"""Settings of PPO: the section `learn`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from ludus.config.schedules import Scalar

SHARED_BY_ROLES = ("rollout", "roles", "bptt")  # of PPOConfig: cannot differ between roles


@dataclass(kw_only=True)
class PPOConfig:
    """Proximal policy optimisation."""

    gamma: Scalar = 0.99
    """Discount per step."""
    gae_lambda: float = 0.95
    """How far advantages look along the rollout (0: one step, 1: to its end)."""
    learning_rate: Scalar = "3e-4 -> 0"
    """Step size of Adam."""
    value_learning_rate: Scalar | None = None
    """Step size of a separate value network (default: as learning_rate)."""
    entropy: Scalar = 0.01
    """Weight of the entropy bonus."""
    clip: Scalar = 0.2
    """How far the probability ratio may move before its gradient is cut."""
    value_clip: float = 0.0
    """Clip on how far the (normalised) value may move; 0: none."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    rollout: int = 32
    """Steps of every env between two updates."""
    epochs: int = 4
    """Passes over each rollout."""
    minibatches: int = 4
    """Updates per pass."""
    bptt: int | None = None
    """Steps of a chunk that gradients flow through (default: 16 with memory, else 1)."""
    burn_in: int = 0
    """First steps of a chunk that only warm the memory up and learn nothing."""
    target_kl: float | None = None
    """Stop the passes over a rollout once the policy has moved this far."""
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this norm."""
    reward_scale: float = 1.0
    """Rewards are multiplied by this before learning; never clipped."""
    normalise_values: bool = True
    """Value targets are normalised by their running mean and deviation; advantages stay in units of
    reward."""
    recompute_advantages: bool = False
    """Compute values and advantages anew before every pass."""
    auxiliary: float = 0.0
    """Weight of predicting the next observation from the memory's output (needs memory)."""
    next_keys: float = 0.0
    """Weight of predicting which keys the opponent presses in a later step of the rollout, from the
    strategy vector of now and the observation of then (needs policy.strategy)."""
    adam_epsilon: float = 1e-5
    """Epsilon of Adam."""
    accumulate: int = 1
    """Gradient accumulation: each update is computed in this many parts, to fit in memory."""
    recompute_activations: bool = False
    """Keep nothing of the forward pass and compute it again for the backward pass: less memory,
    more time."""
    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Different values for a role, as learn.roles.ROLE.KEY."""

    def for_role(self, role: str) -> PPOConfig:
        return dataclasses.replace(self, **self.roles.get(role, {}), roles={})
