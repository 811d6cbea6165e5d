"""What the machine has, as far as it says: cores, memory, a GPU. The one owner of thread counts."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ludus.errors import LudusError

CGROUP = Path("/sys/fs/cgroup")  # of the container, seen from inside
TORCH_FULL = ("can't allocate memory", "not enough memory", "out of memory")


def free_memory() -> int | None:
    """Bytes that this process can still take; None where the system does not say (outside of
    Linux)."""
    found = []
    with suppress(OSError, ValueError, KeyError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = {
            name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)
        }
        found.append((kilobytes["MemAvailable"] + kilobytes["SwapFree"]) * 1024)
    with suppress(OSError, ValueError, KeyError):
        limit = int((CGROUP / "memory.max").read_text())
        counts = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        # files are dropped when memory is short
        used = int((CGROUP / "memory.current").read_text()) - int(counts["inactive_file"])
        found.append(limit - used)
    with suppress(OSError, ValueError, ImportError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]  # ulimit -v
        if limit != resource.RLIM_INFINITY:
            found.append(
                limit
                - int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            )
    return max(0, min(found)) if found else None


def free_text() -> str:
    free = free_memory()
    return "" if free is None else f" ({free / 1e9:.1f} GB are free)"


def is_out_of_memory(error: BaseException) -> bool:
    """numpy raises a MemoryError; torch a RuntimeError, whose text says it."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(t in str(error) for t in TORCH_FULL)
    )


@contextmanager
def fitting(what: str, fix: str) -> Iterator[None]:
    """Says what did not fit into memory, and the fix, where this block finds too little of it."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise LudusError(f"{what} do not fit into memory{free_text()}: {fix}") from None


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


@contextmanager
def one_thread() -> Iterator[None]:
    """For torch on small batches, where threads cost more than they give."""
    import torch

    before = torch.get_num_threads()
    set_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@functools.cache
def keep_memory() -> None:
    """For training. Tells glibc to keep freed memory: otherwise every large temporary of torch
    costs fresh pages (about 15% of an update)."""
    trim_threshold, mmap_threshold = -1, -3  # from malloc.h
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(mmap_threshold, 1 << 30)
        libc.mallopt(trim_threshold, (1 << 31) - 1)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def resident_mb(process: int | str = "self") -> float:
    try:
        with open(f"/proc/{process}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


measured_elsewhere: dict[str, Callable[[], float | None]] = {}
"""Memory of what plays outside this process, by metric: workers and remote envs add themselves."""


def memory(device: str) -> dict[str, float]:
    """Memory in use now, as metrics: of this process, of what plays outside it, and of the GPU."""
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
