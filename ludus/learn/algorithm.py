"""What the trainer asks of a learning algorithm, and how one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn, optim

from ludus.config import Config
from ludus.policies.heads import action_space
from ludus.policies.player import Player
from ludus.policies.policy import Policy

Timed = Callable[[str], AbstractContextManager[Any]]
"""`with timed(phase):` measures a phase of the iteration: act, simulate, learn …"""


class Evidence(NamedTuple):
    """What diagnostics look at, for one role."""

    inputs: tuple[Any, ...]  # arguments of the policy for some rows of one step
    observation: Tensor  # [rows, entries] that were learned from
    suspects: Mapping[str, Tensor]  # name → tensor in the order of computation, to find the first NaN in


class Algorithm(Protocol):
    """An iteration is `collect`, then `learn`. All randomness comes from torch's generator, which the trainer seeds before."""

    policies: dict[str, Any]
    """What acts for each role: a Policy, or what is called like one."""
    opponents: list[Player]
    """Frozen policies that act where `controller` says so."""
    rollout_steps: int
    """Steps of every env in one iteration."""

    def collect(self, timed: Timed) -> None:
        """Plays."""

    def learn(self, share: float) -> dict[str, float]:
        """Updates; returns metrics under their full names. `share`: how much of the budget is spent, for schedules."""

    def learned_steps(self) -> int:
        """Agent-steps of the last `collect` that learning agents took."""

    def updates(self) -> int:
        """Updates of the last `learn`."""

    def action_metrics(self) -> dict[str, float]:
        """What the agents did in the last `collect`."""

    def evidence(self, role: str) -> Evidence:
        """For diagnostics.jsonl and for naming the first NaN."""

    def buffer_bytes(self) -> int:
        """Memory of what was collected."""

    def modules(self) -> dict[str, nn.Module]:
        """What is learned beside the policies, as role/name."""

    def optimizers(self) -> dict[str, optim.Optimizer]:
        """By role."""

    def carried(self) -> dict[str, Tensor]:
        """What the next iteration needs of the last one, as the tensors that hold it."""


def make_algorithm(batch: Any, config: Config) -> Algorithm:
    from ludus.learn.ppo import PPO
    from ludus.learn.rainbow import Rainbow

    return Rainbow(batch, config) if config.algorithm == "rainbow" else PPO(batch, config)


def make_policy(layout: Any, config: Config, role: str) -> Any:
    """The untrained policy of a role, as the config's algorithm has it."""
    space = action_space(layout.actions_of(role), config.policy.state_dependent_std)
    if config.algorithm == "rainbow":
        from ludus.policies.q_policy import QPolicy

        return QPolicy(layout.observation, space, config.policy, config.rainbow, layout.seen)
    return Policy(layout.observation, space, config.policy, layout.seen)
