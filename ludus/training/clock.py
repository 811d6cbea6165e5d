"""Time by phase of an iteration, on the host or as a GPU spends it; and rates over recent
iterations."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Clock:
    """Time by phase within an iteration. A phase inside another is taken off the outer one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inner = 0.0

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        outer, self._inner = self._inner, 0.0
        start = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - start
            self.seconds[phase] += took - self._inner
            self._inner = outer + took

    def read(self) -> dict[str, float]:
        return dict(self.seconds)

    def take(self) -> dict[str, float]:
        seconds, self.seconds = self.read(), defaultdict(float)
        return seconds


class DeviceClock(Clock):
    """Time by phase as a GPU spends it: the host only launches work and runs ahead.

    Marks are events in the GPU's stream, read when the iteration is over. While the host works
    alone (logging, saving), the GPU waits between two marks, so that counts too.
    """

    def __init__(self, mark: Callable[[], Any], between: Callable[[Any, Any], float]) -> None:
        """`mark()` puts a mark into the stream; `between(a, b)` waits for b and tells the seconds
        from a to b."""
        super().__init__()
        self._mark, self._between = mark, between
        self._open: list[list[tuple[Any, Any]]] = [[]]  # spans inside each phase that is still open
        self._done: list[tuple[str, Any, Any, list[tuple[Any, Any]]]] = []

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        self._open.append([])
        start = self._mark()
        try:
            yield
        finally:
            end, inner = self._mark(), self._open.pop()
            self._open[-1].append((start, end))
            self._done.append((phase, start, end, inner))

    def read(self) -> dict[str, float]:
        done, self._done, self._open[0] = self._done, [], []
        for phase, start, end, inner in done:
            self.seconds[phase] += self._between(start, end) - sum(
                self._between(*span) for span in inner
            )
        return dict(self.seconds)


def device_clock(device: str) -> Clock:
    """A clock of phases. On CUDA it goes by events: a wall clock would only see how long launching
    the work takes."""
    if device != "cuda":
        return Clock()
    import torch

    def mark() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(start: Any, end: Any) -> float:
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    return DeviceClock(mark, between)


class Window:
    """A rate over the last iterations: never cumulative, so that a slow-down shows."""

    def __init__(self, length: int = 20) -> None:
        self._marks: deque[tuple[float, float]] = deque(maxlen=length + 1)

    def rate(self, count: float, now: float) -> float:
        self._marks.append((now, count))
        (then, before), (_, _) = self._marks[0], self._marks[-1]
        return (count - before) / (now - then) if now > then else 0.0
