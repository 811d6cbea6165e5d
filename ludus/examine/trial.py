"""Tries out an env whose reward is not declared: random play and doing nothing, as evidence for the doctor."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ludus.config import Config
from ludus.curriculum.schedules import parse
from ludus.doctor.finding import Finding, worst_first
from ludus.doctor.trial import Trial, judge
from ludus.training.sources import make_batch

ENVS, EPISODES, STILL_EPISODES = 8, 100, 16
SECONDS = 10.0


def audit_foreign(config: Config, *, seconds: float = SECONDS) -> list[Finding]:
    """Findings for every role of a foreign env."""
    batch = make_batch(config, ENVS, config.seed)
    for seats in batch.layout.seats:
        batch.set_controller(seats.role, "random")
    random = _play(batch, EPISODES, seconds * 0.7)
    for seats in batch.layout.seats:
        batch.set_controller(seats.role, "policy")  # nobody acts: zeros, keys up, the first option
    for name in ("continuous", "binary", "choices"):
        batch[name][...] = 0
    still = _play(batch, STILL_EPISODES, seconds * 0.3)
    found: list[Finding] = []
    for seats in batch.layout.seats:
        gamma = max(parse(config.learn.for_role(seats.role).gamma, "gamma").values)
        agents = seats.agents
        names = batch.layout.observation_of(seats.role)
        same = (random["low"][agents] == random["high"][agents]).all(0)
        trial = Trial(
            role=seats.role,
            returns=random["returns"][:, agents].ravel(),
            lengths=random["lengths"][:, agents].ravel(),
            still_returns=still["returns"][:, agents].ravel(),
            paid_share=float(random["paid"][agents].sum() / max(1, random["steps"][agents].sum())),
            longest_open=int(random["open"]),
            constant_entries=tuple(name for name, constant in zip(names, same, strict=False) if constant),
            steps_per_s=float(random["rate"]),
        )
        found += judge(trial, gamma)
    return worst_first(found)


def _play(batch: Any, episodes: int, seconds: float) -> dict[str, np.ndarray]:
    """Whole episodes from a fresh start, the same number from every env where time allows."""
    count = batch.layout.num_agents
    returns, lengths = [np.zeros((0, count))], [np.zeros((0, count))]
    low, high = np.full(batch["observation"].shape[1:], np.inf), np.full(batch["observation"].shape[1:], -np.inf)
    paid, steps, rounds = np.zeros(count), np.zeros(count), np.zeros(batch.num_envs, int)
    each = -(-episodes // batch.num_envs)
    batch["finished"][...] = True
    batch.step()
    begin, made = time.perf_counter(), 0
    while (rounds < each).any() and time.perf_counter() - begin < seconds:
        batch.step()
        valid = batch["valid"]
        paid += ((batch["reward"] != 0) & valid).sum(0)
        steps += valid.sum(0)
        made += int(valid.sum())
        low, high = np.minimum(low, batch["observation"].min(0)), np.maximum(high, batch["observation"].max(0))
        over = batch["counted"] & (rounds < each)
        returns.append(batch["episode_return"][over])
        lengths.append(batch["episode_length"][over])
        rounds[over] += 1
    return {
        "returns": np.concatenate(returns), "lengths": np.concatenate(lengths), "low": low, "high": high, "paid": paid, "steps": steps,
        "open": batch["episode_length"].max(), "rate": np.array(made / (time.perf_counter() - begin)),
    }  # fmt: skip
