"""What went wrong inside somebody else's env, told with the lines of their own files."""

from __future__ import annotations

import os
import traceback
from importlib.util import find_spec

MOST_FRAMES = 4


def _folder(package: str) -> str:
    found = find_spec(package)
    return os.path.dirname(found.origin or "") + os.sep if found is not None else ""


OURS = _folder("ludus")
WRAPPERS = tuple(filter(None, (OURS, *map(_folder, ("gymnasium", "pettingzoo")), "<frozen")))


def told(error: BaseException) -> str:
    """The kind of error and what it says, then a line for each frame outside of Ludus and of the libraries that wrap envs (where
    there is none, outside of Ludus): the innermost last."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((OURS, "<frozen"))]
    mine = [f for f in frames if not f.filename.startswith(WRAPPERS)] or frames
    lines = [f"\n  {f.filename}:{f.lineno} in {f.name}: {f.line}" for f in mine[-MOST_FRAMES:]]
    return f"{error}{''.join(lines)}"
