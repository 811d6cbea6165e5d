"""What the device can do at most, measured, and how much of it an iteration's arithmetic asks for,
counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode


@dataclass(frozen=True)
class Work:
    operations: float
    """Floating-point operations of matrix products and convolutions."""
    traffic: float
    """Bytes that all operations read and write, each by itself: fused kernels need less."""


class _Traffic(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        read = [t for t in tree_leaves((args, kwargs or {})) if isinstance(t, Tensor)]
        written = [t for t in tree_leaves(out) if isinstance(t, Tensor)]
        changes = any(
            a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments
        )
        addresses = {t.untyped_storage().data_ptr() for t in read}
        # else it is a view
        if changes or not all(t.untyped_storage().data_ptr() in addresses for t in written):
            self.bytes += sum(t.numel() * t.element_size() for t in [*read, *written])
        return out


def count(work: Callable[[], None]) -> Work:
    """Runs the work once and counts."""
    traffic = _Traffic()
    with FlopCounterMode(display=False) as operations, traffic:
        work()
    return Work(float(operations.get_total_flops()), float(traffic.bytes))


def matrix_rate(device: str, dtype: torch.dtype, size: int) -> float:
    """Operations per second of one large matrix product."""
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    return 2 * size**3 / _seconds(lambda: torch.mm(a, b), device)


def bandwidth(device: str, size: int) -> float:
    """Bytes per second, read and written, of one large copy."""
    source, target = (torch.zeros(size, dtype=torch.uint8, device=device) for _ in range(2))
    return 2 * size / _seconds(lambda: target.copy_(source), device)


def shares(
    work: Work, seconds: float, device: str, dtype: torch.dtype
) -> dict[str, dict[str, float]]:
    """The limits, and what share of them `work` in `seconds` is."""
    on_gpu = device == "cuda"
    rate = matrix_rate(device, dtype, 8192 if on_gpu else 1024)
    speed = bandwidth(device, 1 << 30 if on_gpu else 1 << 27)
    return {
        "matrix": {"operations_per_s": rate, "share": work.operations / seconds / rate},
        "bandwidth": {"bytes_per_s": speed, "share": work.traffic / seconds / speed},
    }


def _seconds(work: Callable[[], Any], device: str) -> float:
    """The best of a few: what the device can do, not what its neighbours leave."""

    def once() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    once()
    return min(once() for _ in range(8))
