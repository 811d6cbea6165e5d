"""What a disk holds after a power cut, from the trace of what a program did to it.

The strict disk kept only what was synced: a file has the content of its last fsync, a folder the
entries of its own last fsync. A lucky disk kept some of the rest as well, drawn at random: each
entry of a folder that was added, replaced or removed since is the old or the new one, and content
that was not synced is old, new, empty or cut off. What was synced and only appended to since is
never lost.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.operations import Operation


@dataclass(eq=False)
class File:
    content: bytes = b""
    synced: bytes | None = None

    def after(self, luck: random.Random | None) -> bytes:
        safe = self.synced if self.synced is not None else b""
        if luck is None or safe == self.content:
            return safe
        if self.content.startswith(safe):
            return self.content[
                : luck.choice(
                    (len(safe), len(self.content), luck.randint(len(safe), len(self.content)))
                )
            ]
        return luck.choice(
            (safe, self.content, b"", self.content[: luck.randint(0, len(self.content))])
        )


@dataclass(eq=False)
class Folder:
    entries: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)

    def after(self, luck: random.Random | None) -> dict[str, File | Folder]:
        if luck is None:
            return self.synced
        kept = {}
        for name in sorted({*self.synced, *self.entries}):
            found = luck.choice((self.synced, self.entries)).get(name)
            if found is not None:
                kept[name] = found
        return kept


class Disk:
    """A folder, empty and synced at first, to which operations happen."""

    def __init__(self, home: Path) -> None:
        self.home, self.top = str(home), Folder()

    def replay(self, trace: Iterable[Operation]) -> Disk:
        for operation in trace:
            self.do(operation)
        return self

    def write_to(self, target: Path, luck: random.Random | None = None) -> None:
        """What is there when the power is back."""
        _write(self.top, target, luck)

    # -- operations --------------------------------------------------------------------------------

    def find(self, path: str) -> File | Folder:
        found: File | Folder = self.top
        for name in _parts(path, self.home):
            assert isinstance(found, Folder)
            found = found.entries[name]
        return found

    def _file(self, path: str) -> File:
        found = self.find(path)
        assert isinstance(found, File)
        return found

    def _folder_of(self, path: str) -> tuple[dict[str, File | Folder], str]:
        folder = self.find(os.path.dirname(path))
        assert isinstance(folder, Folder)
        return folder.entries, os.path.basename(path)

    def do(self, operation: Operation) -> None:
        kind, path = operation.kind, operation.path
        if kind == "sync":
            found = self.find(path)
            if isinstance(found, File):
                found.synced = found.content
            else:
                found.synced = dict(found.entries)
        elif kind == "write":
            file, at = self._file(path), operation.offset
            file.content = (
                file.content[:at].ljust(at, b"\0")
                + operation.data
                + file.content[at + len(operation.data) :]
            )
        elif kind == "truncate":
            file = self._file(path)
            file.content = file.content[: operation.offset].ljust(operation.offset, b"\0")
        else:
            entries, name = self._folder_of(path)
            if kind == "create" and name in entries:
                self._file(path).content = b""
            elif kind in ("create", "mkdir"):
                entries[name] = File() if kind == "create" else Folder()
            elif kind == "rename":
                others, new = self._folder_of(operation.target)
                others[new] = entries.pop(name)
            else:
                assert kind in ("remove", "rmdir"), kind
                del entries[name]


def _parts(path: str, home: str) -> list[str]:
    inside = os.path.relpath(path, home)
    return [] if inside == "." else inside.split(os.sep)


def _write(folder: Folder, target: Path, luck: random.Random | None) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, found in folder.after(luck).items():
        if isinstance(found, Folder):
            _write(found, target / name, luck)
        else:
            (target / name).write_bytes(found.after(luck))
