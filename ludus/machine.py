"""What the machine has, as far as it says: free memory, and whether an error means that there was
too little."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
        used = int((CGROUP / "memory.current").read_text()) - int(
            counts["inactive_file"]
        )  # files are dropped when memory is short
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
