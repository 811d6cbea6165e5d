"""What the checks look at: tiny algorithms that have played and learned, made once and shared by
all checks of a selftest."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO
from ludus.algorithms.rainbow import RainbowConfig
from ludus.algorithms.rainbow.rainbow import Rainbow
from ludus.config import Config, PolicyConfig, resolve
from ludus.examine.selftest import reference
from ludus.examine.selftest.games import DIARY, RECORD
from ludus.networks.normalise import RunningNorm
from ludus.sim import Batch

ENVS = 4
ROLLOUT = 12
SHARE = 0.25
"""Of the budget, at which schedules are read."""

# How the PPO of each lesson is set up. Together they use every switch of the update that has a
# known answer.
LESSONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": (
        dict(hidden=(8, 8)),
        dict(
            epochs=3,
            learning_rate="0.02 -> 0.0",
            max_grad_norm=1e6,
            entropy="0.04 -> 0.02",
            gamma="0.9 -> 0.98",
            clip="0.1 -> 0.2",
        ),
    ),
    "memory": (
        dict(hidden=(8,), memory="lstm", memory_size=4, separate_value=False),
        dict(
            epochs=2,
            learning_rate=0.02,
            max_grad_norm=0.05,
            entropy=0.03,
            bptt=4,
            burn_in=1,
            value_clip=0.05,
            auxiliary=0.5,
        ),
    ),
    "two memories": (
        dict(hidden=(8,), memory="lstm", memory_size=4, activation="silu"),
        dict(
            epochs=2,
            learning_rate=0.01,
            value_learning_rate=0.03,
            bptt=4,
            recompute_advantages=True,
            max_grad_norm=0.5,
            entropy=0.0,
        ),
    ),
    "no normalisers": (
        dict(hidden=(8,), normalise_observation=False, state_dependent_std=True, activation="relu"),
        dict(
            epochs=2,
            learning_rate=0.01,
            normalise_values=False,
            reward_scale=0.5,
            accumulate=2,
            value_weight=1.5,
            entropy=0.02,
            recompute_activations=True,
        ),
    ),
}

WATCHED = (
    "observation",
    "mask",
    "raw",
    "binary",
    "choices",
    "log_prob",
    "value",
    "reward",
    "advantage",
    "standardised",
    "target",
    "valid",
    "valued",
    "idle",
    "terminated",
    "truncated",
    "starts",
    "state",
)


def nothing(_phase: str) -> contextlib.AbstractContextManager[Any]:
    return contextlib.nullcontext()


def disturb(module: torch.nn.Module, size: float = 0.3) -> None:
    """Weights and statistics without zeros or round numbers, so that nothing is right by chance."""
    with torch.no_grad():
        for p in module.parameters():
            p.add_(size * torch.randn_like(p))
        for norm in module.modules():
            if isinstance(norm, RunningNorm):
                norm.mean += 0.3 * torch.randn_like(norm.mean)
                norm.var *= 1 + torch.rand_like(norm.var)
                norm.count += 50


@dataclass
class RoleLesson:
    """One role of a lesson: its rollouts as they were stored, and its weights before and after the
    update."""

    role: Any
    rollouts: list[dict[str, Tensor]] = field(default_factory=list)
    final_states: list[Tensor] = field(default_factory=list)
    before: reference.Parameters = field(default_factory=dict)
    after: reference.Parameters = field(default_factory=dict)
    gradients: dict[str, Tensor] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass
class Lesson:
    algorithm: Any
    config: Config
    roles: dict[str, RoleLesson]


class Session:
    """Makes what checks need, once. Rules run without compiling on the CPU: the games are tiny,
    compiling is not."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self._made: dict[Any, Any] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Session:
        if self.device == "cpu":
            before = os.environ.get("LUDUS_JIT")
            os.environ["LUDUS_JIT"] = "0"
            self._stack.callback(_restore, "LUDUS_JIT", before)
        return self

    def __exit__(self, *_: Any) -> None:
        self._stack.close()

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            torch.manual_seed(1)
            self._made[key] = make()
        return self._made[key]

    def folder(self) -> Path:
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory()))

    # -- PPO ---------------------------------------------------------------------------------------

    def ppo_config(self, policy: dict[str, Any], learn: dict[str, Any]) -> Config:
        config = Config(
            game="ludus.examine.selftest.games:DIARY",
            envs=ENVS,
            device=self.device,
            policy=PolicyConfig(**policy),
            learner=PPOConfig(**{"rollout": ROLLOUT, "minibatches": 1, **learn}),
        )
        config.train.dtype = "float32"
        config.train.total_agent_steps = 10_000
        return resolve(config)

    def make_ppo(self, config: Config) -> Any:
        batch = Batch(DIARY, config.envs, seed=3, device=self.device)
        # a bot plays one of the rows: nothing is learned from it
        batch.set_controller("left", "still", slice(ENVS - 1, ENVS))
        batch.arrays["episode"][...] = -1
        batch.reset()
        algorithm = PPO(batch, config)
        for role in algorithm.roles.values():
            disturb(role.policy)
        return algorithm

    def lesson(self, name: str) -> Lesson:
        """Two rollouts and an update of a PPO that is set up as LESSONS says."""
        return self.once(("lesson", name), lambda: self._teach(*LESSONS[name]))

    def _teach(self, policy: dict[str, Any], learn: dict[str, Any]) -> Lesson:
        config = self.ppo_config(policy, learn)
        algorithm = self.make_ppo(config)
        out = Lesson(
            algorithm, config, {name: RoleLesson(role) for name, role in algorithm.roles.items()}
        )
        for _ in range(2):
            algorithm.collect(nothing)
            for mine in out.roles.values():
                r = mine.role.rollout
                mine.rollouts.append({n: getattr(r, n).detach().cpu().clone() for n in WATCHED})
                mine.final_states.append(mine.role.state.detach().cpu().clone())
        for mine in out.roles.values():
            mine.before = _all_parameters(mine.role)
        metrics = algorithm.learn(SHARE)
        for name, mine in out.roles.items():
            mine.after = _all_parameters(mine.role)
            mine.rollouts.append(
                {n: getattr(mine.role.rollout, n).detach().cpu().clone() for n in WATCHED}
            )
            mine.gradients = {
                n: p.grad.detach().cpu().clone()
                for n, p in _named(mine.role).items()
                if p.grad is not None
            }
            mine.metrics = {
                n.rsplit("/", 1)[-1]: v
                for n, v in metrics.items()
                if n.startswith(f"learner/{name}/")
            }
        return out

    # -- Rainbow -----------------------------------------------------------------------------------

    def rainbow_config(
        self, hidden: tuple[int, ...] = (8,), normalise: bool = True, **settings: Any
    ) -> Config:
        small = dict(
            replay=480,
            warm_up=64,
            batch=16,
            rollout=8,
            stream=8,
            cosines=4,
            quantiles=3,
            target_quantiles=4,
            n_step=3,
            epsilon_from=0.6,
            epsilon_to=0.2,
            epsilon_over=1_000,
            learning_rate=0.01,
            gamma=0.9,
            reward_scale=0.5,
        )
        config = Config(
            game="ludus.examine.selftest.games:RECORD",
            envs=ENVS,
            device=self.device,
            algorithm="rainbow",
            policy=PolicyConfig(hidden=hidden, normalise_observation=normalise),
            learner=RainbowConfig(**{**small, **settings}),
        )
        config.train.dtype = "float32"
        config.train.total_agent_steps = 10_000
        return resolve(config)

    def make_rainbow(self, **settings: Any) -> Any:
        """Without graphs, so that what happens inside an update can be watched."""
        config = self.rainbow_config(**settings)
        torch.manual_seed(1)
        algorithm = Rainbow(Batch(RECORD, config.envs, seed=3, device=self.device), config)
        algorithm.graphs = None
        for role in algorithm.roles.values():
            disturb(role.policy)
            disturb(role.target)
        return algorithm


def _named(role: Any) -> dict[str, Any]:
    extra = {n: p for a in role.auxiliaries for n, p in a.named_parameters()}
    return {**dict(role.policy.named_parameters()), **extra}


def _all_parameters(role: Any) -> reference.Parameters:
    extra = {n: t for a in role.auxiliaries for n, t in reference.doubles(a).items()}
    return {**reference.doubles(role.policy), **extra}


def _restore(name: str, before: str | None) -> None:
    if before is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = before
