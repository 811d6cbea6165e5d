"""Files of a run, written so that a crash or a full disk leaves the old content or the new one."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """The old content or the new one, never half of it."""
    partial = path.with_name(path.name + ".tmp")
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_UMASK = os.umask(0)
os.umask(_UMASK)  # it can only be read by setting it


def settle(path: Path) -> None:
    """A file that another library wrote: on disk, and to be read by whoever may read the rest of
    the run."""
    os.chmod(path, 0o666 & ~_UMASK)  # safetensors lets nobody but its owner read
    with open(path, "rb") as file:
        os.fsync(file.fileno())
