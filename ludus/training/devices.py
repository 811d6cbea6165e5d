"""The one owner of thread counts and of what a device needs. Nothing else sets either."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from ludus.config import Config, flatten
from ludus.errors import LudusError
from ludus.reading import read_json

BUSY = 0.75
"""Share of the cores that others use from which on threads cannot be judged."""
LONG = 2.0
"""Seconds from which on one small iteration tells how fast a thread count is."""


def require(device: str) -> None:
    """A device that is asked for and absent is an error, never a silent fall-back."""
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise LudusError(
                "device cuda was asked for but torch finds no CUDA GPU on this machine: use "
                "--device cpu"
            )


def set_threads(threads: int) -> None:
    """Threads of torch. The simulator takes its own number when a batch is made."""
    import torch

    torch.set_num_threads(threads)
    _keep_memory()


@functools.cache
def _keep_memory() -> None:
    """Tells glibc to keep freed memory: otherwise every large temporary of torch costs fresh pages
    (about 15% of an update)."""
    trim_threshold, mmap_threshold = -1, -3  # from malloc.h
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(mmap_threshold, 1 << 30)
        libc.mallopt(trim_threshold, (1 << 31) - 1)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_threads(config: Config) -> int:
    """1 or all cores, whichever runs simulate-act-learn faster together. Measured once per machine
    and kind of run.

    The choice is remembered, because results are bit-exact only for equal thread counts; but not
    one that was made while other programs had the cores. What was chosen is said, with how to
    choose it again.
    """
    from ludus.training.sources import is_foreign

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
    from ludus.sim.driver_cache import cache_root

    return cache_root().parent / "threads.json"


def _key(config: Config) -> str:
    relevant = {
        k: v
        for k, v in flatten(config).items()
        if k.split(".")[0] in ("game", "envs", "policy", "algorithm", "learn", "rainbow")
    }
    text = json.dumps([relevant, cores(), platform.processor(), platform.node()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _time(config: Config, threads: int) -> float:
    """Seconds of a small iteration: the alternating loop, not the simulator alone."""
    from ludus.learn.algorithm import make_algorithm
    from ludus.training.sources import make_batch

    steps = config.learn.bptt or 1
    steps = max(steps, 4 if steps == 1 else steps)
    as_large = max(
        1, config.learn.minibatches * steps // config.learn.rollout
    )  # so many minibatches are of about the usual size
    minibatches = math.gcd(as_large, config.envs)  # whatever divides envs divides what they give
    probe = replace(
        config,
        learn=replace(
            config.learn,
            rollout=steps,
            epochs=min(2, config.learn.epochs),
            minibatches=minibatches,
            accumulate=1,
        ),
    )
    probe.learn.roles = {}
    probe.rainbow = replace(config.rainbow, warm_up=0, rollout=config.rainbow.n_step + 2)
    set_threads(threads)
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


measured_elsewhere: dict[str, Callable[[], float | None]] = {}
"""Memory of what plays outside this process, by metric: workers and remote envs add themselves."""


def memory(device: str) -> dict[str, float]:
    """Memory in use now, as metrics: of this process, of what plays outside it, and of the GPU."""
    from ludus.training.metrics import resident_mb

    out: dict[str, float] = {"memory/resident_mb": resident_mb()}
    out |= {
        name: used
        for name, measure in measured_elsewhere.items()
        if (used := measure()) is not None
    }
    if device == "cuda":
        import torch

        out["memory/gpu_allocated_mb"] = torch.cuda.memory_allocated() / 1e6
        out["memory/gpu_reserved_mb"] = torch.cuda.memory_reserved() / 1e6
    return out
