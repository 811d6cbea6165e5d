"""Benchmarks started together on one machine prepare side by side and measure in turn."""

from __future__ import annotations

from types import TracebackType
from typing import IO

from ludus.sim.driver_cache import cache_root


class Turn:
    """A benchmark's turn: it begins with `wait`, once no other measures, and ends with the `with`
    block."""

    def __init__(self) -> None:
        self._file: IO[str] | None = None

    def __enter__(self) -> Turn:
        return self

    def wait(self) -> None:
        try:
            import fcntl
        except ImportError:  # no such locks on Windows: there, start one at a time
            return

        try:
            cache_root().mkdir(parents=True, exist_ok=True)
            self._file = (cache_root() / "bench.lock").open("w")
        except OSError:  # a read-only cache, as in containers: there, start one at a time
            return
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()  # which lets go of the lock
