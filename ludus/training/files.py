"""Files of a run, read and written so that a crash or a full disk leaves the old content or the new one."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from ludus.errors import LudusError


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


def read_json(path: Path) -> Any:
    """What a JSON file holds, whoever wrote it."""
    try:
        refuse_odd(path)
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:  # ValueError also of bytes that are no text
        raise LudusError(f"{path} cannot be read: {reason(error)}") from None


def read_lines(path: Path) -> list[dict[str, Any]]:
    """JSON lines; a line cut off in the middle (a run being written, or killed) is left out."""
    if not path.exists():
        return []
    refuse_odd(path)
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def refuse_odd(path: Path) -> None:
    """Reading a pipe waits for ever, and a folder is no file."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise LudusError(f"{path} cannot be read: it is no plain file")


def reason(error: BaseException) -> str:
    """What is wrong, without the number of the error."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error)


_UMASK = os.umask(0)
os.umask(_UMASK)  # it can only be read by setting it


def settle(path: Path) -> None:
    """A file that another library wrote: on disk, and to be read by whoever may read the rest of the run."""
    os.chmod(path, 0o666 & ~_UMASK)  # safetensors lets nobody but its owner read
    with open(path, "rb") as file:
        os.fsync(file.fileno())
