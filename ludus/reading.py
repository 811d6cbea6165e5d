"""Reading files that anybody may have written. What is wrong with one is an OSError or a
ValueError, whatever it is."""

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
        kind = errno.EISDIR if path.is_dir() else errno.EINVAL
        raise OSError(
            kind, "is a folder" if path.is_dir() else "is no ordinary file", os.fspath(path)
        )
    return path


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
