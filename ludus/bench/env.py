"""Simulation speed: valid agent-steps per second, with fresh random actions copied in every step,
observations included."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ludus.sim import Batch
from ludus.sim.game import Game

ACTION_SETS = 8


def _action_sets(batch: Batch) -> list[dict[str, Any]]:
    """Random actions made beforehand; a step copies one set in, as a trainer would."""
    rng = np.random.default_rng(0)
    shape = (batch.num_envs, batch.layout.num_agents)
    options = np.array([len(o) for o in batch.layout.choices.values()], int)
    sets = []
    for _ in range(ACTION_SETS):
        values = {
            "continuous": rng.uniform(-1, 1, (*shape, len(batch.layout.continuous))).astype(
                np.float32
            ),
            "binary": rng.integers(0, 2, (*shape, len(batch.layout.binary))).astype(np.int8),
            "choices": (rng.random((*shape, len(options))) * options).astype(np.int32),
        }
        values = {n: v for n, v in values.items() if v.shape[-1]}
        if batch.device != "cpu":
            import torch

            values = {n: torch.from_numpy(v).to(batch.device) for n, v in values.items()}
        sets.append(values)
    return sets


def measure(
    game: Game,
    *,
    preset: str | None,
    device: str,
    num_envs: int,
    threads: int,
    seconds: float,
    seed: int = 0,
) -> dict[str, Any]:
    """Steps a batch for about `seconds` and counts what was valid."""
    batch = Batch(
        game, num_envs, device=device, preset=preset, threads=threads, seed=seed, stagger=True
    )
    round_of_steps = _cuda_round(batch) if device == "cuda" else _cpu_round(batch)
    round_of_steps()
    _wait(batch)
    batch.read_valid_steps()
    start, steps = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - start) < seconds:
        for _ in range(4):
            round_of_steps()
            steps += ACTION_SETS
        _wait(batch)
    valid = batch.read_valid_steps()
    rate = valid / elapsed
    return {
        "game": game.name,
        "device": device,
        "threads": threads,
        "num_envs": num_envs,
        "num_agents": batch.layout.num_agents,
        "agent_steps_per_s": rate,
        "per_core": rate / threads if device == "cpu" else None,
        "valid_share": valid / (steps * num_envs * batch.layout.num_agents),
        "peers": {},
        "ratio": {},
    }


def _cpu_round(batch: Batch) -> Callable[[], None]:
    sets = _action_sets(batch)

    def run() -> None:
        for values in sets:
            for name, value in values.items():
                batch.arrays[name][...] = value
            batch.step()

    return run


def _cuda_round(batch: Batch) -> Callable[[], None]:
    """The same steps, captured once as a CUDA graph."""
    import torch

    sets = _action_sets(batch)

    def run() -> None:
        for values in sets:
            for name, value in values.items():
                batch.arrays[name].copy_(value)
            batch.step()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def _wait(batch: Batch) -> None:
    if batch.device == "cuda":
        import torch

        torch.cuda.synchronize()
