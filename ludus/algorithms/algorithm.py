"""What the trainer asks of a learning algorithm, and how one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn, optim

from ludus.algorithms.graphs import Graphs
from ludus.algorithms.replay_buffer import Replay
from ludus.config import Config
from ludus.machine import fitting
from ludus.networks.heads import action_space
from ludus.networks.policy import Policy
from ludus.networks.q_policy import QPolicy
from ludus.protocols import ActingPolicy, Batch, Layout, Player

Timed = Callable[[str], AbstractContextManager[Any]]
"""`with timed(phase):` measures a phase of the iteration: act, simulate, learn …"""


def untimed(phase: str) -> AbstractContextManager[Any]:
    return nullcontext()


class Evidence(NamedTuple):
    """What diagnostics look at, for one role."""

    inputs: tuple[Any, ...]
    """Arguments of the policy for some rows of one step."""
    observation: Tensor
    """[rows, entries] that were learned from."""
    suspects: Mapping[str, Tensor]
    """Tensors in the order of computation, by name, to find the first NaN in."""
    replay: Replay | None = None
    """The role's, where there is one."""
    decided: bool = True
    """Did the role decide anything in this iteration? Else at most its value was learned."""


class Algorithm(Protocol):
    """An iteration is `collect`, then `learn`. All randomness comes from torch's generator, which
    the trainer seeds before."""

    policies: dict[str, ActingPolicy]
    """What acts for each role: a Policy, or what is called like one."""
    opponents: Sequence[Player]
    """Frozen policies that act where `controller` says so."""
    rollout_steps: int
    """Steps of every env in one iteration."""

    def collect(self, timed: Timed) -> None:
        """Plays."""

    def learn(self, share: float) -> dict[str, float]:
        """Updates; returns metrics under their full names. `share`: how much of the budget is
        spent, for schedules."""

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

    def cut_episodes(self) -> None:
        """After a resume in envs that could not be saved: all episodes are cut where they stood,
        and the next row shows their final observations."""


class Learner:
    """What algorithms share: roles, frozen opponents, and parts of an iteration that are graphs on
    CUDA."""

    def __init__(
        self, batch: Batch, config: Config, make_role: Callable[[str, slice, Any, Config], Any]
    ) -> None:
        self.batch, self.config = batch, config
        self.roles: dict[str, Any] = {
            s.role: make_role(s.role, s.agents, batch, config) for s in batch.layout.seats
        }
        self.policies: dict[str, ActingPolicy] = {
            name: role.policy for name, role in self.roles.items()
        }
        # frozen policies in slots; they act where `controller` says so
        self.opponents: Sequence[Player] = []
        self.on_gpu = config.device == "cuda"
        self.graphs = Graphs(self.tensors) if self.on_gpu else None

    def tensors(self) -> list[Tensor]:
        """What trying an iteration out would change: simulator, memory, policies, optimizers."""
        memories = [t for opponent in self.opponents for t in opponent.memory()]
        return [
            *self.batch.arrays.values(),
            *memories,
            *(t for role in self.roles.values() for t in role.tensors()),
        ]

    def optimizers(self) -> dict[str, optim.Optimizer]:
        return {name: role.optimizer for name, role in self.roles.items()}

    def carried(self) -> dict[str, Tensor]:
        return {
            f"{name}/{n}": t for name, role in self.roles.items() for n, t in role.carried().items()
        }

    def cut_episodes(self) -> None:
        """The next row is a reset row, which ends what is remembered: nothing else is kept of the
        open episodes."""

    def play_rollout(self, play: Callable[[Timed], None], timed: Timed) -> None:
        """Calls `play`, which measures its phases with what it is given. On CUDA it is one graph,
        whose phases cannot be told apart."""
        if self.on_gpu:
            with timed("rollout"):
                self.part("rollout", play, untimed)()
        else:
            play(timed)

    def part(self, name: str, function: Callable[..., None], *arguments: Any) -> Callable[[], None]:
        """A part of the iteration, to be called; on CUDA a graph of it."""
        call = partial(function, *arguments)
        return call if self.graphs is None else self.graphs.graph(name, call)

    def precision(self) -> AbstractContextManager[Any]:
        """Mixed precision where it was asked for. Autocast's cache of weights would outlive updates
        inside a graph."""
        if self.config.train.dtype == "bfloat16":
            return torch.autocast(self.config.device, torch.bfloat16, cache_enabled=False)
        return nullcontext()


def make_algorithm(batch: Batch, config: Config) -> Algorithm:
    from ludus.algorithms.ppo import PPO
    from ludus.algorithms.rainbow import Rainbow

    kept, setting = (
        ("replays", "rainbow.replay")
        if config.algorithm == "rainbow"
        else ("rollouts", "learn.rollout")
    )
    with fitting(
        f"the {kept} of {config.envs:,} envs of {config.game}", f"lower --envs or {setting}"
    ):
        return Rainbow(batch, config) if config.algorithm == "rainbow" else PPO(batch, config)


def make_policy(layout: Layout, config: Config, role: str) -> ActingPolicy:
    """The untrained policy of a role, as the config's algorithm has it."""
    space = action_space(layout.actions_of(role), config.policy.state_dependent_std)
    if config.algorithm == "rainbow":
        return QPolicy(layout.observation, space, config.policy, config.rainbow, layout.seen)
    return Policy(
        layout.observation,
        space,
        config.policy,
        layout.seen,
        config.learn.for_role(role).reward_scale,
    )
