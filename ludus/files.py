"""Reading files that anybody may have written, where whatever is wrong is an OSError or a
ValueError; and writing them so that a crash or a full disk leaves the old content or the new
one."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ludus.errors import LudusError, reason


def regular(path: Path) -> Path:
    """The path, if there is a file. Opening a pipe would wait for somebody to write into it."""
    if path.exists() and not path.is_file():
        kind = errno.EISDIR if path.is_dir() else errno.EEXIST
        raise OSError(
            kind, "is a folder" if path.is_dir() else "is no ordinary file", os.fspath(path)
        )
    return path


def inside_of(path: Path, root: Path) -> bool:
    """Does it lead there? A link that leads in a circle leads nowhere."""
    try:
        return path.resolve().is_relative_to(root)
    except (OSError, RuntimeError):
        return False


def parse_json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: Path) -> Any:
    return parse_json(regular(path).read_text())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """JSON lines; a line cut off in the middle (a run being written, or killed) is left out."""
    try:
        text = regular(path).read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    except OSError as error:
        raise LudusError(f"{path} cannot be read: {reason(error)}") from None
    return _objects(text)


class GrowingLog:
    """JSON lines of a log that is being written: only what is new is read. One that was cut back
    is read again from its beginning."""

    REMEMBERED = 256  # of what was read, the bytes that must still be there

    def __init__(self, path: Path) -> None:
        self.path = path
        self._forget()

    def _forget(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self._end, self._before = 0, b""

    def read(self) -> list[dict[str, Any]]:
        """All lines so far; one that is not complete yet is left out."""
        try:
            data = self._from_end() if self.path.exists() else b""
            if not data.startswith(self._before):
                self._forget()
                data = self._from_end() if self.path.exists() else b""
        except OSError as error:
            raise LudusError(f"{self.path} cannot be read: {reason(error)}") from None
        known = len(self._before)
        complete = data[: data.rfind(b"\n") + 1]
        self._end += max(0, len(complete) - known)
        self._before = complete[-self.REMEMBERED :] or self._before
        self.lines = [*self.lines, *_objects(complete[known:].decode(errors="replace"))]
        return self.lines

    def _from_end(self) -> bytes:
        """What was remembered of what was read, and everything after it."""
        with open(regular(self.path), "rb") as file:
            file.seek(self._end - len(self._before))
            return file.read()


def _objects(text: str) -> list[dict[str, Any]]:
    """Of lines of JSON, those that are whole and objects."""
    records = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            records.append(parse_json(line))
    return [record for record in records if isinstance(record, dict)]


@contextlib.contextmanager
def understood(what: Path | str) -> Iterator[None]:
    """For code that goes through files whose values may be of any type: what does not fit ends in
    one sentence."""
    try:
        yield
    except (
        OSError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RuntimeError,
    ) as error:
        said = " ".join(str(error).split())[:200]
        raise LudusError(
            f"{what} cannot be read: a file in it is damaged or was changed "
            f"({type(error).__name__}: {said}); if it was not, this is a "
            f"defect of Ludus: please report it"
        ) from error


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
