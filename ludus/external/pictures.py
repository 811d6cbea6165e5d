"""Pictures of foreign envs: which envs can draw themselves, and how a drawing becomes a small one.

Only the first few envs of an evaluation are drawn, and only in the steps that are asked for:
drawing often takes longer than a step. An env that fails to draw itself is played on without
pictures.
"""

from __future__ import annotations

import io
import math
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.errors import FAULTS

FILMED = 3  # envs of an evaluation that are drawn
SIDE = 320  # pixels of a picture's longer side, at most
QUALITY = 80
MODE = "rgb_array"
MOST_FAULT = 300  # bytes of the reason why there are no pictures

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it would greet everybody who evaluates
if (
    sys.platform == "linux"
    and not os.environ.get("DISPLAY")
    and not os.environ.get("WAYLAND_DISPLAY")
):
    # no screen here: it would complain each time that it found none
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def shapes(filmed: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """What a batch and its envs share about pictures; nothing where none are taken."""
    if not filmed:
        return {}
    return {
        "picture_wanted": ("bool", (filmed,)),
        "picture": ("uint8", (filmed, SIDE, SIDE, 3)),
        # rows and columns of `picture` that are used; 0: there is none
        "picture_size": ("int32", (filmed, 2)),
        "picture_fault": ("uint8", (filmed, MOST_FAULT)),
        "picture_seconds": ("float64", (filmed,)),  # that drawing took
    }


def draws(env: Any) -> bool:
    """Can it be asked for pictures as arrays?"""
    modes = (getattr(env, "metadata", None) or {}).get("render_modes") or ()
    return getattr(env, "render_mode", None) == MODE or MODE in modes


def frames_per_second(env: Any) -> float | None:
    """As the env says, if it does."""
    found = (getattr(env, "metadata", None) or {}).get("render_fps")
    return float(found) if isinstance(found, int | float) and 0 < found < 1000 else None


def photograph(env: Any, number: int, arrays: Mapping[str, np.ndarray]) -> None:
    """A small picture of an env into its place; or the reason why there is none, and no more
    attempts."""
    begin = time.perf_counter()
    try:
        small = shrink(env.render())
    except FAULTS as error:  # whatever a drawing library does: the evaluation does not depend on it
        text = f"{type(error).__name__}: {error}".encode()[:MOST_FAULT]
        arrays["picture_fault"][number, : len(text)] = np.frombuffer(text, np.uint8)
        arrays["picture_size"][number] = 0
        return
    arrays["picture_seconds"][number] += time.perf_counter() - begin
    arrays["picture_size"][number] = small.shape[:2]
    arrays["picture"][number, : small.shape[0], : small.shape[1]] = small


def shrink(image: Any) -> np.ndarray:
    """At most SIDE pixels high and wide, in colour: every pixel is the mean of a square, which is
    the fastest way."""
    from PIL import Image

    whole = np.asarray(image)
    if whole.ndim != 3 or whole.shape[2] not in (3, 4) or whole.dtype != np.uint8 or not whole.size:
        raise ValueError(
            f"render() gave {whole.dtype} {whole.shape} instead of a picture [height, width, 3] of "
            "bytes"
        )
    small = Image.fromarray(np.ascontiguousarray(whole[..., :3]))
    return np.asarray(small.reduce(math.ceil(max(small.size) / SIDE)))


def compress(picture: np.ndarray) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(picture).save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def fault_of(arrays: Mapping[str, np.ndarray], env: int) -> str:
    """Why there are no pictures of an env; empty where nothing went wrong."""
    return bytes(arrays["picture_fault"][env]).rstrip(b"\0").decode(errors="replace")
