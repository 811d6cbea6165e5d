"""Gymnasium envs in Ludus beside Stable-Baselines3's SubprocVecEnv and DummyVecEnv: env-steps per second, random actions.

    python benchmarks/foreign_envs.py --envs 16 --seconds 3

Each env is measured by all, one after the other, in `--rounds` rounds; the best round of each counts, so that another
process on the machine disturbs none of them alone. Ludus chooses between worker processes and its own by itself.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from ludus.envs.foreign import ForeignBatch
from ludus.envs.processes import Processes


def rate(step: Callable[[], None], steps_each: int, seconds: float) -> float:
    for _ in range(20):
        step()
    count, begin = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds:
        for _ in range(10):
            step()
        count += 10 * steps_each
    return count / elapsed


def ludus_rate(env_id: str, envs: int, seconds: float) -> tuple[float, int]:
    """Valid env-steps per second (reset rows do not count), and the number of worker processes."""
    batch = ForeignBatch(f"gym:{env_id}", envs)
    options = np.array([len(o) for o in batch.layout.choices.values()])
    random = np.random.default_rng(0)
    rows = [(random.random((envs, 1, len(options))) * options).astype(np.int32) for _ in range(64)]
    at = 0

    def step() -> None:
        nonlocal at
        batch["choices"][...] = rows[at % 64]
        if batch["continuous"].size:
            batch["continuous"][...] = random.uniform(-1, 1, batch["continuous"].shape)
        batch.step()
        at += 1

    for _ in range(20):
        step()
    batch.read_valid_steps()
    begin = time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds:
        step()
    return batch.read_valid_steps() / elapsed, len(batch.host.workers) if isinstance(batch.host, Processes) else 0


def sb3_rate(env_id: str, envs: int, seconds: float, kind: type) -> float:
    vector = kind([lambda: gymnasium.make(env_id) for _ in range(envs)])
    vector.reset()
    rows = [np.array([vector.action_space.sample() for _ in range(envs)]) for _ in range(64)]
    at = 0

    def step() -> None:
        nonlocal at
        vector.step(rows[at % 64])
        at += 1

    try:
        return rate(step, envs, seconds)
    finally:
        vector.close()


def measure(env_id: str, envs: int, seconds: float, rounds: int) -> dict[str, object]:
    ours, subproc, dummy, workers = 0.0, 0.0, 0.0, 0
    for _ in range(rounds):
        found, workers = ludus_rate(env_id, envs, seconds)
        ours = max(ours, found)
        subproc = max(subproc, sb3_rate(env_id, envs, seconds, SubprocVecEnv))
        dummy = max(dummy, sb3_rate(env_id, envs, seconds, DummyVecEnv))
    return {
        "env": env_id,
        "envs": envs,
        "workers": workers,
        "env_steps_per_s": round(ours),
        "peers": {"sb3_subproc": round(subproc), "sb3_dummy": round(dummy)},
        "ratio": {"sb3_subproc": round(ours / subproc, 2), "sb3_dummy": round(ours / dummy, 2)},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", nargs="+", default=["CartPole-v1", "Acrobot-v1", "LunarLander-v3"])
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for env_id in options.env:
        print(json.dumps(measure(env_id, options.envs, options.seconds, options.rounds)), flush=True)
