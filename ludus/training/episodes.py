"""Finished episodes: their statistics for metrics.jsonl, and a bounded sample of them for
episodes.csv."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.doctor.log import enough_episodes
from ludus.protocols import Batch
from ludus.runs.run import Run


def episode_metrics(batch: Batch) -> tuple[dict[str, float], int]:
    """Metrics of the episodes that ended since the last call, and how many there were."""
    out: dict[str, float] = {}
    statistics = batch.read_statistics()
    agents = {s.role: s.count * s.teams for s in batch.layout.seats}
    episodes = int(max(s["episodes"] / agents[role] for role, s in statistics.items()))
    goals, rewards = batch.game.goal_metrics, batch.game.rewards
    for role, values in statistics.items():
        for name, value in values.items():
            if name.startswith("goal/"):
                if goals[name.removeprefix("goal/")].concerns(role):
                    out[f"goal/{role}/{name.removeprefix('goal/')}"] = value
            elif not name.startswith("term/") or rewards[name.removeprefix("term/")].concerns(role):
                out[f"episode/{role}/{name}"] = float(value)
    return out, episodes


def sample_episodes(run: Run, batch: Batch, agent_steps: int, most: int) -> int:
    """Writes up to `most` of the episodes that ended in the last row; returns how many."""
    layout = batch.layout
    path = run.path / "episodes.csv"
    if not path.exists() or path.stat().st_size == 0:
        names = [
            "agent_steps",
            "env",
            "role",
            "agent",
            "return",
            "length",
            "outcome",
            "opponent",
            *layout.terms,
            *layout.goals,
        ]
        run.append("episodes.csv", ",".join(names) + "\n")
    envs = np.flatnonzero(batch.numpy("counted"))[:most] if most > 0 else np.empty(0, int)
    if not len(envs):
        return 0
    fields = ("episode_return", "episode_length", "outcome", "term_totals", "goals", "controller")
    data = {n: batch.numpy(n)[envs] for n in fields}
    for i, env in enumerate(envs):
        for seats in layout.seats:
            for agent in range(seats.start, seats.stop):
                row = [
                    agent_steps,
                    env,
                    seats.role,
                    agent,
                    data["episode_return"][i, agent],
                    data["episode_length"][i, agent],
                    data["outcome"][i, agent],
                    _who(data["controller"][i, agent]),
                    *data["term_totals"][i, agent],
                    *data["goals"][i, agent],
                ]
                run.append(
                    "episodes.csv",
                    ",".join(f"{v:.6g}" if isinstance(v, np.floating) else str(v) for v in row)
                    + "\n",
                )
    return len(envs)


def allowance(config_episodes: int, share: float, sampled: int) -> int:
    """How many episodes may be sampled now, so that they are spread over the run."""
    return math.ceil(config_episodes * max(share, 0.001)) - sampled


def _who(controller: int) -> str:
    if controller == 0:
        return "self"
    return "snapshot" if controller < 0 else f"bot{controller}"


def episodes_line(line: Mapping[str, Any], role: str, envs: int) -> tuple[str, list[str]]:
    """A role's return and its goal metrics for people, from a line of metrics.jsonl. While too few
    episodes have finished they would mislead: it says so instead."""
    finished, mean = line.get("progress/episodes", 0), line.get(f"episode/{role}/return")
    if not enough_episodes(finished, envs):
        return "", [f"too few episodes ({finished:,} of {envs:,})"]
    if mean is None:
        return "", ["no episode ended"]
    goals = [
        f"{k.rsplit('/', 1)[-1]} {v:.2f}" for k, v in line.items() if k.startswith(f"goal/{role}/")
    ]
    return f"{mean:.2f}", goals
