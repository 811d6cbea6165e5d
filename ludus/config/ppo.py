"""Settings of PPO: the section `learn`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from ludus.config.limits import Above, AtLeast, Between, check_limits
from ludus.config.schedules import Scalar
from ludus.errors import LudusError, nearest
from ludus.protocols import Layout

if TYPE_CHECKING:
    from ludus.config.experiment import Config

SHARED_BY_ROLES = ("rollout", "roles", "bptt")  # cannot differ between roles


@dataclass(kw_only=True)
class PPOConfig:
    """Proximal policy optimisation."""

    gamma: Annotated[Scalar, Between(0, 1)] = 0.99
    """Discount per step."""
    gae_lambda: Annotated[float, Between(0, 1)] = 0.95
    """How far advantages look along the rollout (0: one step, 1: to its end)."""
    learning_rate: Annotated[Scalar, Between(0, 1)] = "3e-4 -> 0"
    """Step size of Adam."""
    value_learning_rate: Annotated[Scalar | None, Between(0, 1)] = None
    """Step size of a separate value network (default: as learning_rate)."""
    entropy: Annotated[Scalar, Between(0, 100)] = 0.01
    """Weight of the entropy bonus."""
    clip: Annotated[Scalar, Between(1e-9, 10)] = 0.2
    """How far the probability ratio may move before its gradient is cut."""
    value_clip: Annotated[float, AtLeast(0)] = 0.0
    """Clip on how far the (normalised) value may move; 0: none."""
    value_weight: Annotated[float, AtLeast(0)] = 0.5
    """Weight of the value loss."""
    rollout: Annotated[int, AtLeast(1)] = 32
    """Steps of every env between two updates."""
    epochs: Annotated[int, AtLeast(1)] = 4
    """Passes over each rollout."""
    minibatches: Annotated[int, AtLeast(1)] = 4
    """Updates per pass."""
    bptt: Annotated[int | None, AtLeast(1)] = None
    """Steps of a chunk that gradients flow through (default: 16 with memory, else 1)."""
    burn_in: Annotated[int, AtLeast(0)] = 0
    """First steps of a chunk that only warm the memory up and learn nothing."""
    target_kl: Annotated[float | None, Above(0)] = None
    """Stop the passes over a rollout once the policy has moved this far."""
    max_grad_norm: Annotated[float, AtLeast(0)] = 0.5
    """Gradients are scaled down to this norm."""
    reward_scale: Annotated[float, Above(0)] = 1.0
    """Rewards are multiplied by this before learning; never clipped."""
    normalise_values: bool = True
    """Value targets are normalised by their running mean and deviation; advantages stay in units of
    reward."""
    recompute_advantages: bool = False
    """Compute values and advantages anew before every pass."""
    auxiliary: Annotated[float, AtLeast(0)] = 0.0
    """Weight of predicting the next observation from the memory's output (needs memory)."""
    next_keys: Annotated[float, AtLeast(0)] = 0.0
    """Weight of predicting which keys the opponent presses in a later step of the rollout, from the
    strategy vector of now and the observation of then (needs policy.strategy)."""
    adam_epsilon: Annotated[float, AtLeast(0)] = 1e-5
    """Epsilon of Adam."""
    accumulate: Annotated[int, AtLeast(1)] = 1
    """Gradient accumulation: each update is computed in this many parts, to fit in memory."""
    recompute_activations: bool = False
    """Keep nothing of the forward pass and compute it again for the backward pass: less memory,
    more time."""
    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Different values for a role, as learn.roles.ROLE.KEY."""

    def for_role(self, role: str) -> PPOConfig:
        return dataclasses.replace(self, **self.roles.get(role, {}), roles={})

    def set_for_role(self, role: str, key: str, value: Any) -> None:
        allowed = [f.name for f in dataclasses.fields(self) if f.name not in SHARED_BY_ROLES]
        if key not in allowed:
            shared = key in SHARED_BY_ROLES
            reason = "is the same for all roles" if shared else nearest(key, allowed)
            raise LudusError(f"learn.roles.{role}.{key} cannot be set: {reason}")
        self.roles.setdefault(role, {})[key] = value

    def check(self, config: Config, rows: Mapping[str, int]) -> None:
        """Refuses settings that cannot work together. `rows`: agents of each role, in all envs."""
        for role, values in self.roles.items():
            if role not in rows:
                raise LudusError(
                    f"learn.roles.{role}: the game has no role '{role}': {nearest(role, rows)}"
                )
            for key, value in list(values.items()):
                self.set_for_role(role, key, value)
            check_limits(self.for_role(role), f"learn.roles.{role}.")
        bptt, policy = self.bptt or 1, config.policy
        if self.rollout % bptt:
            raise LudusError(
                f"a rollout of {self.rollout} steps does not divide into chunks of {bptt}: make it "
                "a multiple of learn.bptt"
            )
        if bptt > 1 and policy.memory == "none":
            raise LudusError(
                f"learn.bptt={bptt} without memory: set policy.memory or leave learn.bptt at 1"
            )
        if self.burn_in >= bptt > 1 or (self.burn_in and bptt == 1):
            raise LudusError(
                f"learn.burn_in={self.burn_in} leaves nothing of chunks of {bptt} steps: use less "
                "than learn.bptt"
            )
        each = {role: self.for_role(role) for role in rows}
        if policy.memory == "none" and any(mine.auxiliary for mine in each.values()):
            raise LudusError(
                "learn.auxiliary predicts from memory, but policy.memory is none: set "
                "policy.memory or learn.auxiliary=0"
            )
        if policy.strategy.size == "none" and any(mine.next_keys for mine in each.values()):
            raise LudusError(
                "learn.next_keys predicts from the strategy vector, but there is none: set "
                "policy.strategy.size or learn.next_keys=0"
            )
        if policy.strategy.dropout and self.recompute_activations:
            raise LudusError(
                "learn.recompute_activations would leave other units out than "
                "policy.strategy.dropout did: use one"
            )
        separate = [mine for mine in each.values() if mine.value_learning_rate is not None]
        if separate and not policy.separate_value:
            raise LudusError(
                "learn.value_learning_rate is that of a separate value network: set "
                "policy.separate_value or leave it out"
            )
        for role, mine in each.items():
            _check_minibatches(role, self.rollout // bptt * rows[role], bptt, mine.minibatches)

    def check_game(self, config: Config, layout: Layout, longest: float | None) -> None:
        """Refuses a game that these settings cannot learn. `longest`: steps of an episode."""
        teams = [(seats.count, seats.teams) for seats in layout.seats]
        if teams == [(1, 2)] and layout.binary:
            return
        if any(self.for_role(seats.role).next_keys for seats in layout.seats):
            raise LudusError(
                "learn.next_keys needs a game of one against one with keys, and "
                f"{config.game} is none: set it to 0"
            )


def _check_minibatches(role: str, chunks: int, bptt: int, minibatches: int) -> None:
    if chunks % minibatches:
        fits = [n for n in range(1, chunks + 1) if chunks % n == 0]
        below = max(n for n in fits if n < minibatches)
        above = min((n for n in fits if n > minibatches), default=below)
        what = f"{chunks} chunks of {bptt} steps" if bptt > 1 else f"a batch of {chunks} rows"
        choice = f"{below} or {above}" if above != below else f"{below}"
        raise LudusError(
            f"role {role}: {what} does not divide into {minibatches} minibatches: use {choice}"
        )
