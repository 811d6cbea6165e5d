"""Trains each role for a short while on one episode that never changes, its opponents standing
still."""

from __future__ import annotations

import copy
import math
import time
from contextlib import nullcontext

import numpy as np
import torch

from ludus.algorithms.algorithm import Algorithm, make_algorithm
from ludus.batches import is_foreign, make_batch, of_game
from ludus.config import Config
from ludus.doctor.before.overfit import Overfit
from ludus.errors import LudusError
from ludus.sim import Batch

ENVS = 64


def examine_overfit(config: Config, seconds: float) -> list[Overfit]:
    if is_foreign(config.game):
        raise LudusError(
            f"--overfit needs to set an episode's seed, which {config.game} does not let us: leave "
            "it out"
        )
    config = _quick(config)
    roles = [s.role for s in make_batch(config, 1, config.seed).layout.seats]
    return [_learn_by_heart(config, role, seconds / len(roles)) for role in roles]


def _quick(config: Config) -> Config:
    config = copy.deepcopy(config)
    config.envs, config.device = ENVS, "cpu"
    config.learner = config.learner.quick()
    return config


class Repeated:
    """A batch in which every env plays the first episode of the first env, again and again."""

    def __init__(self, batch: Batch, agents: slice) -> None:
        self.batch, self.agents = batch, agents
        self.returns = np.full(batch.num_envs, np.nan)
        inner = batch._step
        batch["env_id"][...] = 0

        def step() -> None:
            inner()
            over = batch["counted"] & np.isnan(self.returns)
            self.returns[over] = batch["episode_return"][over][:, self.agents].mean(1)
            batch["episode"][batch["finished"]] = -1

        batch._step = step
        self.begin()

    def begin(self) -> None:
        """A new episode everywhere, whose return is noted."""
        self.batch["episode"][...] = -1
        self.batch.reset()
        self.returns[...] = np.nan


def _learn_by_heart(config: Config, role: str, seconds: float) -> Overfit:
    torch.manual_seed(config.seed)
    best = _best_bot(config, role)
    batch = of_game(make_batch(config, config.envs, config.seed))
    repeated = Repeated(batch, _seat(batch, role, "policy"))
    algorithm = make_algorithm(batch, config)
    before = _whole_episodes(repeated, algorithm)
    begin = time.perf_counter()
    while (gone := time.perf_counter() - begin) < seconds:
        algorithm.collect(lambda phase: nullcontext())
        algorithm.learn(gone / seconds)
    return Overfit(
        role=role,
        before=before,
        after=_whole_episodes(repeated, algorithm),
        best_bot=best,
        seconds=seconds,
    )


def _whole_episodes(repeated: Repeated, algorithm: Algorithm) -> np.ndarray:
    """Returns of one episode of every env, with nothing learnt meanwhile."""
    repeated.begin()
    for _ in range(int(repeated.batch.settings.params["max_steps"]) // algorithm.rollout_steps + 2):
        algorithm.collect(lambda phase: nullcontext())
        if not np.isnan(repeated.returns).any():
            break
    return repeated.returns[~np.isnan(repeated.returns)].copy()


def _best_bot(config: Config, role: str) -> float:
    """What the best bot earns in that episode."""
    batch = of_game(make_batch(config, 1, config.seed))
    best = -math.inf
    for bot in batch.controllers[role]:
        if bot == "random":
            continue
        batch["episode"][...] = -1
        mine = _seat(batch, role, bot)
        batch.reset()
        for _ in range(int(batch.settings.params["max_steps"]) + 2):
            batch.step()
            if batch["counted"][0]:
                best = max(best, float(batch["episode_return"][0, mine].mean()))
                break
    return best


def _seat(batch: Batch, role: str, player: str) -> slice:
    for seats in batch.layout.seats:
        batch.set_controller(seats.role, "still")
    seats = next(s for s in batch.layout.seats if s.role == role)
    batch.set_controller(role, player, team=0 if seats.teams > 1 else None)
    return slice(seats.start, seats.start + seats.count) if seats.teams > 1 else seats.agents
