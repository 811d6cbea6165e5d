"""What went wrong inside somebody else's env, told with the lines of their own files."""

from __future__ import annotations

import importlib
import os
import traceback
from types import ModuleType

import gymnasium
import pettingzoo

import ludus

MOST_FRAMES = 4


def _folder(package: ModuleType) -> str:
    return os.path.dirname(str(package.__file__)) + os.sep


OURS = (_folder(ludus), _folder(importlib), "<frozen")
WRAPPERS = (_folder(gymnasium), _folder(pettingzoo))


def told(error: BaseException) -> str:
    """What an error says, then a line for each frame outside of Ludus and of the libraries that
    wrap envs, the innermost last; where there is none, the innermost of those libraries, unless it
    is one that misses a package."""
    said = f"{error}"
    if isinstance(error, SystemExit):
        said = (
            "sys.exit() would end the whole program: raise an error instead, or end the episode "
            "(terminated or truncated)"
        )
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(OURS)
    ]
    mine = [f for f in frames if not f.filename.startswith(WRAPPERS)]
    if not mine and "not installed" not in str(error).lower():
        mine = frames[-1:]
    lines = [f"\n  {f.filename}:{f.lineno} in {f.name}: {f.line}" for f in mine[-MOST_FRAMES:]]
    return f"{said}{''.join(lines)}"
