"""Where compiled rules are kept.

A driver is written as a real file into a folder named by a hash of all rule code, the driver itself and the library
versions: the next process loads machine code instead of compiling, and a change in any helper gives another folder. Numba's
own cache would miss such changes, and never serves drivers made in memory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ludus.sim.link import fingerprint

KEEP_FOLDERS = 200


def cache_root() -> Path:
    """$LUDUS_CACHE, or the user's cache folder."""
    if "LUDUS_CACHE" in os.environ:
        return Path(os.environ["LUDUS_CACHE"]) / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ludus" / "kernels"


@functools.cache  # a compiler that is edited while a process runs must not make it compile again
def _versions() -> str:
    found = [platform.python_version()]
    for library in ("numba", "llvmlite", "numpy", "numba-cuda"):
        try:
            found.append(importlib.metadata.version(library))
        except importlib.metadata.PackageNotFoundError:
            found.append("none")
    compiler = Path(__file__).with_name("compile.py").read_bytes()
    return " ".join([*found, hashlib.sha256(compiler).hexdigest()])


def load_driver(game: str, rules: list[Callable], source: str, scope: Mapping[str, Any]) -> tuple[types.ModuleType, Path]:
    """The driver as a module, with the names of `scope` in it, and the folder that it lies in."""
    key = hashlib.sha256("\n".join([fingerprint(rules), source, _versions()]).encode()).hexdigest()[:24]
    folder = cache_root() / f"{game}-{key}"
    path = folder / "driver.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            partial = folder / f"driver.{os.getpid()}.tmp"
            partial.write_text(source)
            partial.replace(path)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="ludus-kernels-"))
        path = folder / "driver.py"
        path.write_text(source)
        print(f"ludus: cannot write {cache_root()}: compiled rules are not kept (set LUDUS_CACHE)", file=sys.stderr)
    os.utime(folder)
    name = f"ludus_driver_{key}"
    if name in sys.modules:
        return sys.modules[name], folder
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    vars(module).update(scope)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module, folder


def forget(folder: Path) -> None:
    """Drops a driver that could not be compiled."""
    shutil.rmtree(folder, ignore_errors=True)
    sys.modules.pop(f"ludus_driver_{folder.name.rsplit('-', 1)[-1]}", None)


def prune() -> None:
    """Drops the drivers that were not used for longest."""
    with contextlib.suppress(OSError):  # another process may be pruning too
        folders = sorted(cache_root().glob("*-*"), key=lambda f: f.stat().st_mtime, reverse=True)
        for folder in folders[KEEP_FOLDERS:]:
            shutil.rmtree(folder, ignore_errors=True)
