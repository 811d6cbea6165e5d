"""Where compiled rules are kept.

All compiled functions of a driver lie in one file, named by a hash of all rule code, the driver
itself and the library versions:
the next process loads machine code instead of compiling, and a change in any helper gives another
file. Numba's own cache would miss such changes, never serves drivers made in memory, and loads
whatever its files hold.

A file starts with a checksum of the rest. It is read whole and checked before anything is loaded
from it, and replaced whole: what another process is writing is never seen, and what is damaged is
compiled again. Nothing here can end a program: where no file can be read or written, rules are
compiled and not kept.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import pickle
import platform
import shutil
import sys
import types
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ludus.errors import LudusError
from ludus.sim.link import fingerprint

KEEP_FILES = 200
CHECKSUM_BYTES = hashlib.sha256().digest_size


def cache_root() -> Path:
    """$LUDUS_CACHE, or the user's cache folder."""
    if os.environ.get("LUDUS_CACHE"):
        return Path(os.environ["LUDUS_CACHE"]) / "kernels"
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "ludus" / "kernels"
    try:
        return Path.home() / ".cache" / "ludus" / "kernels"
    except RuntimeError:
        raise LudusError(
            "this user has no home folder to keep compiled rules in: set LUDUS_CACHE to a folder"
        ) from None


@functools.cache  # a compiler that is edited while a process runs must not make it compile again
def _versions() -> str:
    found = [platform.python_version()]
    for library in ("numba", "llvmlite", "numpy", "numba-cuda"):
        try:
            found.append(importlib.metadata.version(library))
        except importlib.metadata.PackageNotFoundError:
            found.append("none")
    for file in ("compile.py", "driver_cache.py"):
        found.append(hashlib.sha256(Path(__file__).with_name(file).read_bytes()).hexdigest())
    return " ".join(found)


def load_driver(
    game: str, rules: list[Callable], source: str, scope: Mapping[str, Any]
) -> tuple[types.ModuleType, Path]:
    """The driver as a module, with the names of `scope` in it, and the file that keeps its compiled
    functions."""
    key = hashlib.sha256("\n".join([fingerprint(rules), source, _versions()]).encode()).hexdigest()[
        :24
    ]
    name = f"ludus_driver_{key}"
    if name not in sys.modules:
        module = types.ModuleType(name)
        vars(module).update(scope)
        exec(compile(source, f"<{name}>", "exec"), vars(module))
        sys.modules[name] = module
    return sys.modules[name], cache_root() / f"{game}-{key}"


def forget(module: types.ModuleType) -> None:
    """Drops a driver that could not be compiled."""
    sys.modules.pop(module.__name__, None)


class KernelFile:
    """The file of a driver's compiled functions, by name, as bytes. `damage` says why a file that
    is there could not be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage = ""
        self.functions: dict[str, bytes] = {}
        try:
            if path.is_file():
                content = memoryview(path.read_bytes())
                if self._checksum(content[CHECKSUM_BYTES:]) == content[:CHECKSUM_BYTES]:
                    self.functions = pickle.loads(content[CHECKSUM_BYTES:])
                else:
                    self.damage = "does not match its checksum"
            elif os.path.lexists(path):
                self.damage = "is not a file"
        except OSError as error:
            self.damage = f"cannot be read ({error.strerror})"
        if self.functions:
            with contextlib.suppress(OSError):  # read-only, as in containers
                os.utime(path)

    def _checksum(self, body: bytes | memoryview) -> bytes:
        """The name counts too: a file that was moved belongs to another driver."""
        return hashlib.sha256(
            self.path.name.encode() + b"\0" + hashlib.sha256(body).digest()
        ).digest()

    def write(self) -> None:
        """Replaces the file. There is no fsync: what a power cut leaves of it does not match its
        checksum."""
        body = pickle.dumps(self.functions)
        # other containers have the same process ids
        partial = self.path.with_name(f"{self.path.name}.{uuid.uuid4().hex}.tmp")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                partial.write_bytes(self._checksum(body) + body)
                if self.path.is_dir():
                    _drop(self.path)
                partial.replace(self.path)
            finally:
                partial.unlink(missing_ok=True)
        except OSError as error:
            _say_not_kept(self.path.parent, error.strerror)
        else:
            _prune(self.path.parent)


@functools.cache  # once, not for every game
def _say_not_kept(folder: Path, why: str) -> None:
    print(
        f"ludus: compiled rules are not kept: cannot write {folder} ({why}): set LUDUS_CACHE to "
        "another folder",
        file=sys.stderr,
    )


def _prune(folder: Path) -> None:
    """Drops the files that were not used for longest."""
    with contextlib.suppress(OSError):  # another process may be pruning too
        files = sorted(folder.glob("*-*"), key=lambda f: f.lstat().st_mtime, reverse=True)
        for file in files[KEEP_FILES:]:
            _drop(file)


def _drop(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
