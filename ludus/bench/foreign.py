"""Envs of other libraries in Ludus, beside Stable-Baselines3's vectorised envs: env-steps per
second with random actions.

All are measured one after the other, in rounds, and the best round of each counts: another process
on the machine then disturbs none of them alone. Ludus chooses between worker processes and its own
by itself.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from ludus.errors import LudusError
from ludus.external.foreign import ForeignBatch
from ludus.external.guests import make_env
from ludus.external.processes import Processes

ACTION_SETS, WARM_UP = 64, 20
PEERS = ("sb3_subproc", "sb3_dummy")


def measure(
    source: str,
    envs: int,
    seconds: float,
    against: str | None = None,
    rounds: int = 3,
    seed: int = 0,
) -> dict[str, Any]:
    """The JSON of `ludus bench env`."""
    if against not in (None, "sb3"):
        raise LudusError(f"unknown peer '{against}' of a foreign env: there is sb3")
    rates = dict.fromkeys(["ludus", *(PEERS if against else ())], 0.0)
    batch = ForeignBatch(source, envs, seed=seed)
    # the peer's processes take longer to start than to measure: they wait from round to round
    with ExitStack() as stack:
        peers = {
            peer: stack.enter_context(closing(_peer(source, envs, peer)))
            for peer in PEERS
            if against
        }
        for _ in range(rounds):
            rates["ludus"] = max(rates["ludus"], _own_rate(batch, seconds / rounds))
            for peer, vector in peers.items():
                rates[peer] = max(rates[peer], _peer_rate(vector, envs, seconds / rounds))
    workers = len(batch.host.workers) if isinstance(batch.host, Processes) else 0
    own = rates.pop("ludus")
    return {
        "game": source,
        "device": "cpu",
        "threads": max(1, workers),
        "num_envs": envs,
        "num_agents": batch.layout.num_agents,
        "agent_steps_per_s": own,
        "per_core": own / max(1, workers),
        "peers": {name: {"agent_steps_per_s": rate} for name, rate in rates.items()},
        "ratio": {name: own / rate for name, rate in rates.items()},
    }


def _own_rate(batch: ForeignBatch, seconds: float) -> float:
    """Valid agent-steps: reset rows do not count."""
    random = np.random.default_rng(0)
    options = np.ones(batch["choices"].shape[1:], int)
    for seats in batch.layout.seats:
        of_role = [len(o) for o in batch.layout.actions_of(seats.role).choices.values()]
        options[seats.agents, : len(of_role)] = of_role
    sets = [
        {
            "continuous": random.uniform(-1, 1, batch["continuous"].shape).astype(np.float32),
            "binary": random.integers(0, 2, batch["binary"].shape),
            "choices": (random.random(batch["choices"].shape) * options).astype(np.int32),
        }
        for _ in range(ACTION_SETS)
    ]

    def step(i: int) -> None:
        for name, values in sets[i % ACTION_SETS].items():
            batch[name][...] = values
        batch.step()

    for i in range(WARM_UP):
        step(i)
    batch.read_valid_steps()
    begin, i = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - begin) < seconds:
        step(i)
        i += 1
    return batch.read_valid_steps() / elapsed


def _peer(source: str, envs: int, peer: str) -> Any:
    try:
        from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv
    except ImportError:
        raise LudusError(
            "--against sb3 needs Stable-Baselines3: pip install stable-baselines3"
        ) from None
    if not source.startswith("gym:"):
        raise LudusError(
            f"Stable-Baselines3 steps Gymnasium envs, not {source}: leave --against out"
        )
    return (SubprocVecEnv if peer == "sb3_subproc" else DummyVecEnv)(
        [lambda: make_env(source) for _ in range(envs)]
    )


def _peer_rate(vector: Any, envs: int, seconds: float) -> float:
    vector.reset()
    sets = [
        np.array([vector.action_space.sample() for _ in range(envs)]) for _ in range(ACTION_SETS)
    ]
    for i in range(WARM_UP):
        vector.step(sets[i])
    begin, i = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - begin) < seconds:
        vector.step(sets[i % ACTION_SETS])
        i += 1
    return i * envs / elapsed
