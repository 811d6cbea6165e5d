"""How many CPU threads a run trains with: measured once per machine and kind of run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from ludus.algorithms.algorithm import make_algorithm
from ludus.batches import is_foreign, make_batch
from ludus.config import Config, flatten
from ludus.files import read_json
from ludus.machine import cores, keep_memory, set_threads
from ludus.sim.driver_cache import cache_root

BUSY = 0.75
"""Share of the cores that others use from which on threads cannot be judged."""
LONG = 2.0
"""Seconds from which on one small iteration tells how fast a thread count is."""


def choose_threads(config: Config) -> int:
    """1 or all cores, whichever runs simulate-act-learn faster together. Measured once per machine
    and kind of run.

    The choice is remembered, because results are bit-exact only for equal thread counts; but not
    one that was made while other programs had the cores. What was chosen is said, with how to
    choose it again.
    """
    if config.device == "cuda" or is_foreign(config.game) or cores() == 1:
        return 1
    remembered = _memory_path()
    key = _key(config)
    try:
        table = read_json(remembered)
    except (OSError, ValueError):
        table = {}
    if not isinstance(table, dict):
        table = {}
    if table.get(key) not in (1, cores()):
        busy = hasattr(os, "getloadavg") and os.getloadavg()[0] > BUSY * cores()
        print(
            f"ludus: measuring which trains faster, 1 or {cores()} threads …",
            file=sys.stderr,
            flush=True,
        )
        table[key] = min((1, cores()), key=lambda n: _time(config, n))
        kept = (
            "not remembered, because other programs use the processor now"
            if busy
            else "remembered for such runs"
        )
        print(
            f"ludus: training with {table[key]} thread{'s' if table[key] > 1 else ''} ({kept}). "
            "The same weights need the same seed "
            f"and the same number of threads: --seed {config.seed} --train.threads {table[key]} "
            "repeats this run",
            file=sys.stderr,
        )
        if busy:
            return int(table[key])
        try:
            remembered.parent.mkdir(parents=True, exist_ok=True)
            partial = remembered.with_name(f"{remembered.name}.{os.getpid()}.tmp")
            partial.write_text(json.dumps(table))
            partial.replace(remembered)
        except OSError:
            pass
    return int(table[key])


def _memory_path() -> Path:
    return cache_root().parent / "threads.json"


def _key(config: Config) -> str:
    relevant = {
        k: v
        for k, v in flatten(config).items()
        if k.split(".")[0] in ("game", "envs", "policy", "algorithm", config.section)
    }
    text = json.dumps([relevant, cores(), platform.processor(), platform.node()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _time(config: Config, threads: int) -> float:
    """Seconds of a small iteration: the alternating loop, not the simulator alone."""
    probe = replace(config, learner=config.learner.timed(config.envs))
    set_threads(threads)
    keep_memory()
    batch = make_batch(config, config.envs, 0, threads=threads)
    algorithm = make_algorithm(batch, probe)

    def iteration() -> float:
        start = time.perf_counter()
        algorithm.collect(lambda phase: nullcontext())
        algorithm.learn(0.0)
        return time.perf_counter() - start

    return _shortest(iteration)


def _shortest(iteration: Callable[[], float]) -> float:
    """Seconds of the best of three, after one to warm up; one that takes long is enough: warming up
    is a small part of it."""
    first = iteration()
    return first if first > LONG else min(iteration() for _ in range(3))
