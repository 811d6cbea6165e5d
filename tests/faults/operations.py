"""Counts what a program does to the files of one folder, and interferes with the n-th of these
operations: the process is killed there (SIGKILL to itself), or the operation fails with an OSError.

    with Files(folder, Fault(at=17, error=errno.ENOSPC)) as files:
        ...                                  # the program under test
    files.trace                              # what it did, in order

Operations are counted from 1. What changes nothing on the disk (opening to read or to append,
closing) is not counted. Safetensors writes its files in compiled code, so `save_file` is replaced
by one that does the same in Python: a file of another name beside it, written in two steps, that is
then renamed.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.numpy
import safetensors.torch
from safetensors import SafetensorError

NEEDS_SPACE = ("create", "write", "mkdir", "sync")
"""What a full disk refuses; removing and renaming work there."""
SAVERS = {
    "ludus.runs.checkpoint": safetensors.torch.save,
    "ludus.runs.snapshots": safetensors.torch.save,
    "ludus.play.replay": safetensors.numpy.save,
}
"""Modules with a save_file, and what makes the bytes that it writes."""


class Operation(NamedTuple):
    """One change of the disk, or a sync. Paths are absolute."""

    kind: str
    """create, write, truncate, sync, rename, remove, rmdir or mkdir."""
    path: str
    data: bytes = b""
    offset: int = 0
    """Where `data` goes; of truncate: the new size."""
    target: str = ""
    """The new name of rename."""


@dataclass(frozen=True)
class Fault:
    """What happens at operation `at`: an error where one is given, else the process is killed."""

    at: int
    half: bool = False
    """A write first writes half of its data."""
    error: int | None = None
    """errno.ENOSPC or errno.EIO."""
    lasting: bool = False
    """All later operations fail too; of ENOSPC: those that need space."""

    def hits(self, count: int, kind: str) -> bool:
        if count == self.at:
            return True
        refused = self.error != errno.ENOSPC or kind in NEEDS_SPACE
        return self.lasting and count > self.at and refused


class Files:
    """Watches a folder and everything in it while it is entered. One at a time in a process."""

    def __init__(self, folder: Path, fault: Fault | None = None) -> None:
        self.folder, self.fault = os.path.abspath(folder), fault
        self.trace: list[Operation] = []
        self.count = 0
        self._lock = threading.RLock()  # TensorBoard writes in a thread of its own
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Files:
        self._open = io.open
        for module in (builtins, io):
            self._replace(module, "open", self.open)
        self._replace(os, "fsync", self._synced(os.fsync))
        for name, kind in (
            ("remove", "remove"),
            ("unlink", "remove"),
            ("rmdir", "rmdir"),
            ("mkdir", "mkdir"),
        ):
            self._replace(os, name, self._one_path(getattr(os, name), kind))
        for name in ("rename", "replace"):
            self._replace(os, name, self._two_paths(getattr(os, name)))
        for module_name, serialize in SAVERS.items():
            module = __import__(module_name, fromlist=["save_file"])
            self._replace(module, "save_file", self._saver(serialize))
        return self

    def __exit__(self, *_: Any) -> None:
        self._undo.close()

    def _replace(self, owner: Any, name: str, new: Any) -> None:
        self._undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, new)

    # -- one operation -----------------------------------------------------------------------------

    def inside(self, path: str) -> bool:
        return path == self.folder or path.startswith(self.folder + os.sep)

    def operate(
        self, operation: Operation, do: Callable[[], Any], do_half: Callable[[], Any] | None = None
    ) -> Any:
        """Does it and notes it, unless the fault comes first."""
        with self._lock:
            self.count += 1
            if self.fault is not None and self.fault.hits(self.count, operation.kind):
                if do_half is not None and self.fault.half:
                    do_half()
                if self.fault.error is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                assert self.fault.error is not None
                raise OSError(self.fault.error, os.strerror(self.fault.error), operation.path)
            result = do()
            self.trace.append(operation)
            return result

    # -- what stands in for functions of Python ----------------------------------------------------

    def open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: Any = None,
        errors: Any = None,
        newline: Any = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        writes = any(letter in mode for letter in "wax+")
        path = "" if isinstance(file, int) else full_path(file)
        if not writes or opener is not None or not self.inside(path):
            return self._open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = SteeredFile(self, path, mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        buffer = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return (
            buffer
            if "b" in mode
            else io.TextIOWrapper(buffer, encoding or "utf-8", errors, newline, buffering == 1)
        )

    def _synced(self, fsync: Any) -> Any:
        def steered(file: Any) -> None:
            path = path_of(file if isinstance(file, int) else file.fileno())
            if not self.inside(path):
                return fsync(file)
            return self.operate(Operation("sync", path), lambda: fsync(file))

        return steered

    def _one_path(self, function: Any, kind: str) -> Any:
        def steered(path: Any, *arguments: Any, **named: Any) -> Any:
            full = full_path(path, named.get("dir_fd"))
            # it changes nothing
            if not self.inside(full) or os.path.lexists(full) == (kind == "mkdir"):
                return function(path, *arguments, **named)
            return self.operate(Operation(kind, full), lambda: function(path, *arguments, **named))

        return steered

    def _two_paths(self, function: Any) -> Any:
        def steered(source: Any, target: Any, **named: Any) -> Any:
            operation = Operation("rename", full_path(source), target=full_path(target))
            if not self.inside(operation.target) or not os.path.lexists(operation.path):
                return function(source, target, **named)
            return self.operate(operation, lambda: function(source, target, **named))

        return steered

    def _saver(self, serialize: Any) -> Any:
        def save_file(tensors: Any, filename: Any, metadata: Any = None) -> None:
            data = serialize(tensors, metadata)
            partial = Path(filename).with_name(f".tmp{Path(filename).name[:6]}")
            try:
                with self.open(partial, "wb", 0) as file:
                    file.write(data[: len(data) // 2])
                    file.write(data[len(data) // 2 :])
                os.replace(partial, filename)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.unlink(partial)
                reason = f"{error.strerror} (os error {error.errno})"
                raise SafetensorError(f"Error while serializing: I/O error: {reason}") from None

        return save_file


class SteeredFile(io.FileIO):
    """A file opened to write: each `write` of it is one system call."""

    def __init__(self, files: Files, path: str, mode: str) -> None:
        self._files, self._appends = files, "a" in mode
        make = super().__init__
        if "w" in mode or not os.path.exists(path):
            files.operate(Operation("create", path), lambda: make(path, mode))
        else:
            make(path, mode)

    def write(self, data: Any) -> int:
        whole, write = bytes(data), super().write
        at = os.fstat(self.fileno()).st_size if self._appends else self.tell()
        operation = Operation("write", path_of(self.fileno()), whole, at)
        return int(
            self._files.operate(
                operation, lambda: write(whole), lambda: write(whole[: len(whole) // 2])
            )
        )

    def truncate(self, size: int | None = None) -> int:
        to, truncate = self.tell() if size is None else size, super().truncate
        operation = Operation("truncate", path_of(self.fileno()), offset=to)
        return int(self._files.operate(operation, lambda: truncate(to)))


def path_of(descriptor: int) -> str:
    """Where the open file is now: its folder may have been renamed."""
    return os.readlink(f"/proc/self/fd/{descriptor}")


def full_path(path: Any, folder: int | None = None) -> str:
    text = os.fsdecode(path)
    return os.path.abspath(text if folder is None else os.path.join(path_of(folder), text))
