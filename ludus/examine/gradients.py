"""One update of a small version of the recipe on real data: which parameters get a gradient, which
inputs reach the output."""

from __future__ import annotations

import copy
import re
import time
from contextlib import nullcontext
from typing import Any

import torch

from ludus.algorithms.algorithm import Algorithm, make_algorithm
from ludus.batches import make_batch
from ludus.config import Config
from ludus.doctor.before.flow import Flow
from ludus.evidence.diagnostics import Diagnostics
from ludus.protocols import Layout

ENVS, STEPS = 16, 32
FEW_ENVS = 4
"""Where the network is large: a transformer made for a GPU takes minutes on a processor."""
ENOUGH_SECONDS = 5.0
MANY = 3
"""Observation entries with the same first word, at least: they are a block of their own; the rest
is the agent's own state."""


def small(config: Config) -> Config:
    """The same networks and losses on a few envs, with one update per iteration."""
    config = copy.deepcopy(config)
    large = config.policy.network_settings.large
    config.envs, config.device = FEW_ENVS if large else ENVS, "cpu"
    config.learner = config.learner.small(1 if large else STEPS)
    return config


def examine_flow(config: Config, seed: int) -> tuple[list[Flow], Algorithm]:
    """Evidence per role; and the algorithm, for whoever asks it more."""
    torch.manual_seed(seed)
    batch = make_batch(config, config.envs, seed, stagger=True)
    algorithm = make_algorithm(batch, config)
    for _ in range(2):  # a network that starts with zeros passes nothing back in the first update
        begin = time.perf_counter()
        algorithm.collect(lambda phase: nullcontext())
        algorithm.learn(0.5)  # in the middle of the schedules: a role may wait at the start
        if time.perf_counter() - begin > ENOUGH_SECONDS:
            break
    return [_flow(algorithm, name, batch.layout, config) for name in algorithm.policies], algorithm


def _flow(algorithm: Algorithm, role: str, layout: Layout, config: Config) -> Flow:
    policy = algorithm.policies[role]
    gradients = {
        name: float(p.grad.norm()) if p.grad is not None else 0.0
        for name, p in policy.named_parameters()
        if p.requires_grad and p.numel()
    }
    return Flow(role=role, gradients=gradients, inputs=_inputs(algorithm, role, layout, config))


@torch.no_grad()
def _inputs(algorithm: Algorithm, role: str, layout: Layout, config: Config) -> dict[str, float]:
    policy, evidence = algorithm.policies[role], algorithm.evidence(role)
    observation, state, starts, mask, seen = evidence.inputs
    base = policy(*evidence.inputs)
    order = torch.roll(torch.arange(observation.shape[1]), 1 + observation.shape[1] // 2)
    changed: dict[str, tuple[Any, ...]] = {}
    for block, entries in blocks(layout.observation).items():
        quiet = bool(config.policy.quiet_inputs) and layout.observation[entries[0]].startswith(
            config.policy.quiet_inputs
        )
        exchanged = observation.clone()
        exchanged[..., entries] = observation[:, order][..., entries]
        if not quiet and not torch.equal(exchanged, observation):
            changed[block] = (exchanged, state, starts, mask, seen)
    for name, part in seen.items():
        if not torch.equal(part[:, order], part):
            changed[name] = (observation, state, starts, mask, {**seen, name: part[:, order]})
    if policy.state_size and not torch.equal(state[order], state):
        changed["memory"] = (observation, state[order], torch.zeros_like(starts), mask, seen)
        base_memory = policy(observation, state, torch.zeros_like(starts), mask, seen)
    out = {}
    for block, inputs in changed.items():
        before = base_memory if block == "memory" else base
        out[block] = _change(before, policy(*inputs))
    return out


def _change(before: Any, after: Any) -> float:
    """Of what is said, or at least of what it is said from: the best of several actions may well
    stay the best."""
    return max(
        Diagnostics.distance(before.distribution, after.distribution),
        float((before.features - after.features).abs().mean()),
    )


def blocks(names: list[str]) -> dict[str, list[int]]:
    """Entries by the first word of their name, where there are several; the rest are the agent's
    own state."""
    words: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        words.setdefault((re.match(r"[a-zA-Z]+", name) or [name])[0], []).append(i)
    own = [i for entries in words.values() if len(entries) < MANY for i in entries]
    return {
        **({"own state": sorted(own)} if own else {}),
        **{w: e for w, e in words.items() if len(e) >= MANY},
    }
