"""The settings of PPO, and which of them cannot work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from ludus.config.algorithm import RoleConfig
from ludus.config.limits import Above, AtLeast, Between
from ludus.config.schedules import Scalar
from ludus.errors import LudusError

if TYPE_CHECKING:
    from ludus.config.experiment import Config


@dataclass(kw_only=True)
class PPOConfig(RoleConfig):
    """Proximal policy optimisation."""

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
    normalise_values: bool = True
    """Value targets are normalised by their running mean and deviation; advantages stay in units of
    reward."""
    recompute_advantages: bool = False
    """Compute values and advantages anew before every pass."""
    accumulate: Annotated[int, AtLeast(1)] = 1
    """Gradient accumulation: each update is computed in this many parts, to fit in memory."""
    recompute_activations: bool = False
    """Keep nothing of the forward pass and compute it again for the backward pass: less memory,
    more time."""
    auxiliary: Annotated[float, AtLeast(0)] = 0.0
    """Weight of predicting the next observation from the memory's output (needs memory)."""

    same_for_roles: ClassVar[tuple[str, ...]] = (*RoleConfig.same_for_roles, "bptt")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "fast": {"epochs": 2, "eval.greedy": False, "log.tensorboard": False},
        "stable": {"epochs": 4, "clip": 0.1, "target_kl": 0.02, "max_grad_norm": 0.5},
    }

    def resolve(self, config: Config) -> None:
        if self.bptt is None:
            self.bptt = min(16, self.rollout) if config.policy.memory != "none" else 1

    def check(self, config: Config, rows: Mapping[str, int]) -> None:
        super().check(config, rows)
        own = config.section
        bptt, policy = self.bptt or 1, config.policy
        if self.rollout % bptt:
            raise LudusError(
                f"a rollout of {self.rollout} steps does not divide into chunks of {bptt}: make it "
                f"a multiple of {own}.bptt"
            )
        if bptt > 1 and policy.memory == "none":
            raise LudusError(
                f"{own}.bptt={bptt} without memory: set policy.memory or leave {own}.bptt at 1"
            )
        if self.burn_in >= bptt > 1 or (self.burn_in and bptt == 1):
            raise LudusError(
                f"{own}.burn_in={self.burn_in} leaves nothing of chunks of {bptt} steps: use less "
                f"than {own}.bptt"
            )
        each = {role: self.for_role(role) for role in rows}
        if policy.memory == "none" and any(mine.auxiliary for mine in each.values()):
            raise LudusError(
                f"{own}.auxiliary predicts from memory, but policy.memory is none: set "
                f"policy.memory or {own}.auxiliary=0"
            )
        separate = [mine for mine in each.values() if mine.value_learning_rate is not None]
        if separate and not policy.separate_value:
            raise LudusError(
                f"{own}.value_learning_rate is that of a separate value network: set "
                "policy.separate_value or leave it out"
            )
        for role, mine in each.items():
            _check_minibatches(role, self.rollout // bptt * rows[role], bptt, mine.minibatches)

    def updates(self, agent_steps: int, rows: int) -> float:
        return super().updates(agent_steps, rows) * self.epochs * self.minibatches

    def small(self, steps: int) -> Self:
        bptt = self.bptt or 1
        return replace(
            self,
            rollout=max(bptt, min(self.rollout, steps) // bptt * bptt),
            epochs=1,
            minibatches=1,
            accumulate=1,
            roles=self.without("epochs", "minibatches", "accumulate"),
        )

    def timed(self, envs: int) -> Self:
        steps = self.bptt or 1
        steps = 4 if steps == 1 else steps
        # so many minibatches are of about the usual size
        as_large = max(1, self.minibatches * steps // self.rollout)
        return replace(
            self,
            rollout=steps,
            epochs=min(2, self.epochs),
            # whatever divides envs divides what they give
            minibatches=math.gcd(as_large, envs),
            accumulate=1,
            roles={},
        )

    def quick(self) -> Self:
        return replace(
            self,
            minibatches=math.gcd(self.minibatches, 4),
            roles=self.without("minibatches", "learning_rate"),
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
