"""What the trainer asks of a learning algorithm, and how one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn, optim

from ludus.algorithms.graphs import Graphs
from ludus.algorithms.replay_buffer import Replay
from ludus.config import AlgorithmConfig, Config
from ludus.errors import LudusError
from ludus.imports import in_one_sentence, is_path
from ludus.machine import fitting
from ludus.networks.heads import action_space
from ludus.networks.policy import Policy
from ludus.protocols import ActingPolicy, Batch, Layout, Player
from ludus.registry import ALGORITHMS

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


class Memory(NamedTuple):
    """Bytes that an algorithm will need."""

    per_env: Mapping[str, int]
    """Of every env, by what they are for."""
    kept: int = 0
    """Of agent-steps that are kept however many envs there are: `kept_rows` of the settings."""


class Algorithm(Protocol):
    """An iteration is `collect`, then `learn`. All randomness comes from torch's generator, which
    the trainer seeds before. An algorithm of your own inherits `Learner`, or `OnPolicy`, which
    also collects rollouts."""

    settings: ClassVar[type[AlgorithmConfig]]
    """A dataclass of its settings."""
    memory_setting: ClassVar[str]
    """The setting that says how much is kept to be learned from."""

    def __init__(self, batch: Batch, config: Config) -> None: ...

    @staticmethod
    def make_policy(layout: Layout, config: Config, role: str) -> ActingPolicy:
        """The untrained policy of a role."""

    @classmethod
    def check_network(cls, config: Config, layout: Layout) -> None:
        """Refuses a network that it cannot learn with."""

    @classmethod
    def memory(cls, config: Config, layout: Layout, players: int) -> Memory:
        """What it will need, counted before anything is allocated. `players`: policies that act in
        every env, with opponents."""

    policies: dict[str, ActingPolicy]
    """What acts for each role: a Policy, or what is called like one."""
    opponents: Sequence[Player]
    """Frozen policies that act where `controller` says so."""
    rollout_steps: int
    """Steps of every env in one iteration."""

    def collect(self, timed: Timed) -> None:
        """Plays."""

    def learn(self, progress: float) -> dict[str, float]:
        """Updates; returns metrics under their full names, learner/ROLE/KEY. `progress`: how much
        of the budget is spent, for schedules, from 0 to 1."""

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

    settings: ClassVar[type[AlgorithmConfig]] = AlgorithmConfig
    memory_setting: ClassVar[str] = "rollout"
    role_class: ClassVar[type[Any]]
    """What holds the policy, the optimizer and the data of one role."""

    learns_auxiliary: ClassVar[bool] = False
    """Does it learn the losses that networks bring?"""

    @classmethod
    def check_network(cls, config: Config, layout: Layout) -> None:
        """Refuses a network with a loss that would not be learned."""
        if cls.learns_auxiliary:
            return
        for seats in layout.seats:
            space = action_space(layout.actions_of(seats.role), config.policy.state_dependent_std)
            policy = Policy(layout.observation, space, config.policy, layout.seen)
            if policy.actor.network.auxiliary(policy) is not None:
                raise LudusError(
                    f"policy.network {config.policy.network} brings a loss of its own, which the "
                    f"algorithm {config.algorithm} does not learn: use algorithm ppo, or another "
                    "network"
                )

    def __init__(self, batch: Batch, config: Config) -> None:
        self.batch, self.config = batch, config
        self.roles: dict[str, Any] = {
            s.role: self.role_class(s.role, s.agents, batch, config) for s in batch.layout.seats
        }
        self.policies: dict[str, ActingPolicy] = {
            name: role.policy for name, role in self.roles.items()
        }
        # frozen policies in slots; they act where `controller` says so
        self.opponents: Sequence[Player] = []
        self.on_gpu = config.device == "cuda"
        self.graphs = Graphs(self.tensors) if self.on_gpu else None

    def learn(self, progress: float) -> dict[str, float]:
        """Updates every role. `progress`: how much of the budget is spent, for schedules."""
        return {
            f"learner/{name}/{key}": value
            for name, role in self.roles.items()
            for key, value in checked_metrics(
                self.learn_role(role, progress), self.config.algorithm
            ).items()
        }

    def learn_role(self, role: Any, progress: float) -> dict[str, float]:
        """Updates one role; returns its metrics by their last name."""
        raise NotImplementedError

    def modules(self) -> dict[str, nn.Module]:
        return {}

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


def checked_metrics(told: Any, algorithm: str) -> Mapping[str, float]:
    """What `learn_role` returned: names and numbers."""
    if not isinstance(told, Mapping):
        raise LudusError(
            f"learn_role of the algorithm {algorithm} returned a {type(told).__name__}: it has to "
            'return its metrics, such as {"policy_loss": 0.3}'
        )
    for name, value in told.items():
        if not isinstance(name, str) or isinstance(value, bool) or not isinstance(value, Real):
            raise LudusError(
                f"learn_role of the algorithm {algorithm} returned {name!r}: {value!r}, which is "
                "not a metric: give numbers by name, and leave out what there is none of"
            )
    return told


def algorithm_class(name: str) -> type[Algorithm]:
    """By its name, or the import path of one's own."""
    found: Any = ALGORITHMS.find(name)
    if not issubclass(found, Learner):
        raise LudusError(
            f"the algorithm '{name}' does not inherit ludus.OnPolicy, which collects rollouts, or "
            f"ludus.Learner: write class {found.__name__}(ludus.OnPolicy)"
        )
    for method in ("collect", "learn_role", "make_policy", "memory", "evidence"):
        inherited = getattr(Learner, method, None)
        if getattr(found, method, None) is inherited:
            raise LudusError(
                f"the algorithm '{name}' has no method '{method}', which every algorithm needs: "
                "add it"
            )
    checked: type[Algorithm] = found
    return checked


def make_algorithm(batch: Batch, config: Config) -> Algorithm:
    made = algorithm_class(config.algorithm)
    with fitting(
        f"what {config.algorithm} keeps of {config.envs:,} envs of {config.game}",
        f"lower --envs or {config.section}.{made.memory_setting}",
    ):
        if not is_path(config.algorithm):
            return made(batch, config)
        with in_one_sentence(f"the algorithm {config.algorithm} cannot be made"):
            return made(batch, config)


def make_policy(layout: Layout, config: Config, role: str) -> ActingPolicy:
    """The untrained policy of a role, as the config's algorithm has it."""
    return algorithm_class(config.algorithm).make_policy(layout, config, role)
