"""Tries out an env whose reward is not declared: random play and doing nothing, as evidence for the
doctor."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ludus.batches import make_batch
from ludus.config import Config, option_of
from ludus.config.schedules import parse
from ludus.doctor.before.spaces import Spaces, observation_scale
from ludus.doctor.finding import Finding, worst_first
from ludus.doctor.trial import Trial, judge
from ludus.external.foreign import ForeignBatch
from ludus.protocols import Batch

ENVS, EPISODES, STILL_EPISODES = 8, 100, 16
SECONDS = 10.0


def audit_foreign(config: Config, *, seconds: float = SECONDS) -> list[Finding]:
    """Findings for every role of a foreign env."""
    batch = make_batch(config, ENVS, config.seed)
    assert isinstance(batch, ForeignBatch)
    for seats in batch.layout.seats:
        batch.set_controller(seats.role, "random")
    random = _play(batch, EPISODES, seconds * 0.7)
    for seats in batch.layout.seats:
        # nobody acts: zeros, keys up, the first option that is allowed
        batch.set_controller(seats.role, "policy")
    for name in ("continuous", "binary", "choices"):
        batch[name][...] = 0
    still = _play(batch, STILL_EPISODES, seconds * 0.3)
    found: list[Finding] = []
    for seats in batch.layout.seats:
        gamma = max(parse(config.learner.for_role(seats.role).gamma, "gamma").values)
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
            constant_entries=tuple(
                name for name, constant in zip(names, same, strict=False) if constant
            ),
            steps_per_s=float(random["rate"]),
            least_reward=float(random["least"][agents].min()),
            most_reward=float(random["most"][agents].max()),
            cut_share=float(random["cut"][:, agents].mean()) if len(random["cut"]) else 0.0,
            shows_time=bool(random["timed"][agents].any()),
            unlimited_entries=tuple(batch.layout.unlimited[seats.role]),
            normalised=config.policy.normalise_observation,
        )
        found += judge(trial, gamma, option_of(config, seats.role, "gamma"))
        found += observation_scale(
            _spaces(trial, names, random["low"][agents].min(0), random["high"][agents].max(0))
        )
    return worst_first(found)


class Clock:
    """Which observation entries tell how many steps of the episode were made: those that rise or
    fall with them."""

    TELLS = 0.95  # correlation from which on an entry counts as a clock

    def __init__(self) -> None:
        self.sums: np.ndarray = np.zeros(0)

    def add(self, observation: np.ndarray, step: np.ndarray) -> None:
        """[envs, agents, entries] and [envs, agents]."""
        x, t = (
            observation.astype(np.float64),
            np.broadcast_to(step[..., None].astype(np.float64), observation.shape),
        )
        new = np.stack([np.ones_like(x), x, t, x * x, t * t, x * t]).sum(1)
        self.sums = self.sums + new if self.sums.size else new

    def tells(self) -> np.ndarray:
        """[agents, entries]."""
        n, x, t, xx, tt, xt = self.sums
        spread = np.sqrt(np.maximum((n * xx - x * x) * (n * tt - t * t), 0.0))
        return np.abs(n * xt - x * t) > self.TELLS * np.maximum(spread, 1e-12)


def _spaces(trial: Trial, names: Sequence[str], low: np.ndarray, high: np.ndarray) -> Spaces:
    return Spaces(
        trial.role,
        tuple(names),
        low[: len(names)],
        high[: len(names)],
        (),
        trial.normalised,
        (),
        (),
        0,
    )


def _choose_first(batch: Batch) -> None:
    """The first option that its mask allows, for whoever does not play at random."""
    for seats in batch.layout.seats:
        actions = batch.layout.actions_of(seats.role)
        for i, (options, at) in enumerate(
            zip(actions.choices.values(), actions.choice_mask_at, strict=True)
        ):
            if at >= 0:
                allowed = batch["action_mask"][:, seats.agents, at : at + len(options)]
                batch["choices"][:, seats.agents, i] = allowed.argmax(-1)


def _play(batch: Batch, episodes: int, seconds: float) -> dict[str, np.ndarray]:
    """Whole episodes from a fresh start, the same number from every env where time allows."""
    count = batch.layout.num_agents
    returns, lengths, cut = [np.zeros((0, count))], [np.zeros((0, count))], [np.zeros((0, count))]
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    clock = Clock()
    low, high = (
        np.full(batch["observation"].shape[1:], np.inf),
        np.full(batch["observation"].shape[1:], -np.inf),
    )
    paid, steps, rounds = np.zeros(count), np.zeros(count), np.zeros(batch.num_envs, int)
    each = -(-episodes // batch.num_envs)
    batch["finished"][...] = True
    batch.step()
    begin, made = time.perf_counter(), 0
    while (rounds < each).any() and time.perf_counter() - begin < seconds:
        _choose_first(batch)
        batch.step()
        valid = batch["valid"]
        paid += ((batch["reward"] != 0) & valid).sum(0)
        steps += valid.sum(0)
        made += int(valid.sum())
        here, there = batch["observation"].min(0), batch["observation"].max(0)
        low, high = np.minimum(low, here), np.maximum(high, there)
        clock.add(batch["observation"], batch["episode_length"])
        least = np.minimum(least, np.where(valid, batch["reward"], np.inf).min(0))
        most = np.maximum(most, np.where(valid, batch["reward"], -np.inf).max(0))
        over = batch["counted"] & (rounds < each)
        returns.append(batch["episode_return"][over])
        lengths.append(batch["episode_length"][over])
        cut.append(batch["agent_truncated"][over])
        rounds[over] += 1
    return {
        "returns": np.concatenate(returns),
        "lengths": np.concatenate(lengths),
        "low": low,
        "high": high,
        "paid": paid,
        "steps": steps,
        "cut": np.concatenate(cut),
        "least": least,
        "most": most,
        "timed": clock.tells(),
        "open": batch["episode_length"].max(),
        "rate": np.array(made / (time.perf_counter() - begin)),
    }
