"""Training speed beside two yardsticks measured in the same run: a bare torch loop, and other
libraries.

The *bound* is what torch alone needs for the same work: the same networks, batch sizes, dtype,
passes and optimizer, on random data, with no envs, no sampling, no buffers, no metrics; as many
rows as the trainer's last iteration acted for and learned from. A trainer cannot be faster without
changing the algorithm.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ludus.algorithms.graphs import compiled
from ludus.algorithms.ppo.ppo import PPO
from ludus.algorithms.rainbow.rainbow import Rainbow
from ludus.bench import limits
from ludus.bench.bare_rainbow import BareRainbow
from ludus.config import Config
from ludus.networks.encoders import CELL, FEATURE, shaped, steps_back, stored_as
from ludus.networks.policy import Policy
from ludus.sim.game import Tokens
from ludus.sim.layout import Seen
from ludus.training.loop import Trainer
from ludus.training.start import create


def measure(
    config: Config, seconds: float, ready: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Valid agent-steps per second of the trainer as users run it (logging included, evaluation
    not), and time by phase. `ready` is called after the first iteration, when everything is
    compiled."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = create(Path(folder) / "bench", config, {})
        _iterate(trainer)
        ready()
        begin, steps = time.perf_counter(), trainer.progress.agent_steps
        phases: dict[str, float] = {}
        iterations = 0
        while time.perf_counter() - begin < seconds or iterations < 3:
            for name, share in _iterate(trainer).items():
                phases[name] = phases.get(name, 0.0) + share
            iterations += 1
        elapsed = time.perf_counter() - begin
        total = sum(phases.values())
        trainer.run.close()
        return {
            "agent_steps_per_s": (trainer.progress.agent_steps - steps) / elapsed,
            "phases": {name: value / total for name, value in phases.items()},
            "seconds": elapsed / iterations,
            "trainer": trainer,
        }


def _iterate(trainer: Trainer) -> dict[str, float]:
    """One iteration with its log line; returns seconds by phase."""
    record = trainer.iterate()
    with trainer.clock("log"):
        seconds = trainer.clock.read()
        line = trainer.line(record)
        start = time.perf_counter()
        trainer.run.append_json("metrics.jsonl", line)
        if trainer.config.log.tensorboard:
            trainer.run.tensorboard(line, trainer.progress.agent_steps)
    return {**seconds, "log": seconds.get("log", 0.0) + time.perf_counter() - start}


def bound(trainer: Trainer, seconds: float) -> Bound | None:
    """The bare loop; on CUDA as a graph, like the trainer's iteration. None for an algorithm that
    none was written for."""
    algorithm = trainer.algorithm
    if not isinstance(algorithm, PPO | Rainbow):
        return None
    work: list[_BareRole | BareRainbow] = (
        [BareRainbow(role) for role in algorithm.roles.values()]
        if isinstance(algorithm, Rainbow)
        else [_BareRole(role, trainer.config) for role in algorithm.roles.values()]
    )
    rows = algorithm.learned_steps()

    def bare() -> None:
        for w in work:
            w.run(algorithm.precision)

    counted = limits.count(bare)
    for w in work:
        if isinstance(w, _BareRole):
            # its kernels are fused where the trainer's are
            w.forward = compiled(w.forward, trainer.config)
    on_gpu = trainer.config.device == "cuda"
    iteration = captured(bare) if on_gpu else bare
    iteration()
    begin, iterations = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds or iterations < 3:
        iteration()
        if on_gpu:
            torch.cuda.synchronize()
        iterations += 1
    return Bound(rows * iterations / (time.perf_counter() - begin), rows, counted)


def captured(work: Callable[[], None]) -> Callable[[], None]:
    """The work as a CUDA graph: launched at once, as the trainer does it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def simulating(trainer: Trainer, seconds: float) -> float:
    """Seconds that the simulator alone takes of an iteration on CUDA, where it is a part of one
    graph."""
    steps = trainer.algorithm.rollout_steps

    def work() -> None:
        for _ in range(steps):
            trainer.batch.step()

    iteration = captured(work)
    begin, iterations = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds or iterations < 3:
        iteration()
        torch.cuda.synchronize()
        iterations += 1
    return (time.perf_counter() - begin) / iterations


@dataclass(frozen=True)
class Bound:
    agent_steps_per_s: float
    agent_steps: int
    """Of one iteration."""
    work: limits.Work
    """Of one iteration."""


class _BareRole:
    """The arithmetic of one role's iteration and nothing else."""

    def __init__(self, role: Any, config: Config) -> None:
        self.steps, self.rows = config.learner.rollout, role.rows
        self.length = config.learner.bptt or 1
        self.epochs, self.minibatches = role.config.epochs, role.config.minibatches
        self.policy = Policy(
            role.batch.layout.observation, role.space, config.policy, role.policy.seen
        ).to(config.device)
        self.optimizer = torch.optim.Adam(
            self.policy.parameters(), fused=True, capturable=config.device == "cuda"
        )
        entries = self.policy.inputs
        useful = role.rollout.valued.unflatten(0, (-1, self.length)).any(1)
        # on CUDA shapes do not vary: all are learned from
        chunks = int(useful.sum()) if config.device == "cpu" else useful.numel()
        self.acting = torch.randn(1, self.rows, entries, device=config.device)
        self.learning = torch.randn(
            self.length, max(1, chunks // self.minibatches), entries, device=config.device
        )
        self.seen = {
            x.shape: self._bytes(role.policy.seen, *x.shape[:2])
            for x in (self.acting, self.learning)
        }
        self.forward = self._forward

    def _bytes(self, parts: Any, steps: int, rows: int) -> dict[str, torch.Tensor]:
        """Pictures and histories of ones: what they show does not change what they cost. Tokens are
        spread over the cells, as real ones are: at one place they would wait for each other."""
        device, out = self.acting.device, {}
        for name, p in parts.items():
            x = torch.ones(
                steps,
                rows,
                len(steps_back(p)),
                p.height,
                p.width,
                dtype=stored_as(p, device),
                device=device,
            )
            if isinstance(p, Seen) and isinstance(p.kind, Tokens):
                x[..., CELL].random_(p.kind.cells)
                x[..., FEATURE].random_(p.kind.features)
            out[name] = shaped(x, p)
        return out

    def run(self, precision: Any) -> None:
        state, starts = (
            self.policy.initial_state(self.rows),
            torch.zeros(1, self.rows, dtype=torch.bool, device=self.acting.device),
        )
        with torch.no_grad(), precision():
            for _ in range(self.steps):
                self.forward(self.acting, state, starts)
        chunks = self.learning.shape[1]
        state = self.policy.initial_state(chunks)
        starts = torch.zeros(self.length, chunks, dtype=torch.bool, device=self.acting.device)
        for _ in range(self.epochs * self.minibatches):
            self.optimizer.zero_grad()
            with precision():
                parameters, value = self.forward(self.learning, state, starts)
                loss = parameters.float().square().mean() + value.float().square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5, foreach=True)
            self.optimizer.step()

    def _forward(
        self, x: torch.Tensor, state: torch.Tensor, starts: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        policy = self.policy
        split = policy.actor.memory.state_size
        features, _, _ = policy.actor(x, self.seen[x.shape], state[:, :split], starts)
        if policy.critic is None:
            return policy.action_head(features), policy.value_head(features)
        critic, _, _ = policy.critic(x, self.seen[x.shape], state[:, split:], starts)
        return policy.action_head(features), policy.value_head(critic)
