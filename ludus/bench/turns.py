"""Benchmarks started together on one machine prepare side by side and measure in turn."""

from __future__ import annotations

from typing import IO

_held: list[IO[str]] = []


def wait_for_turn() -> None:
    """Returns once no other benchmark measures; the turn is over when this process ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on Windows: there, start one at a time
        return
    if _held:
        return
    from ludus.sim.driver_cache import cache_root

    cache_root().mkdir(parents=True, exist_ok=True)
    file = (cache_root() / "bench.lock").open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    _held.append(file)
