"""What the viewer shows of brawl, and how a person plays it."""

from typing import Any

import numpy as np

from ludus.games.brawl import moves
from ludus.games.brawl.state import FRAME, SIDE
from ludus.sim import Batch

STEP_SECONDS = 3 * FRAME


def hits(batch: Batch) -> Any:
    """[moves, hits, (first frame, last frame, middle ahead, middle up, half width, half height)] of
    the table of moves."""
    parts = (moves.FIRST, moves.LAST, moves.BOX_X, moves.BOX_Y, moves.BOX_HALF_X, moves.BOX_HALF_Y)
    return np.stack([part.astype(np.float32) for part in parts], -1)


STEPS = {"motion": "motion", "status": "status", "stage": "stage"}
STATIC = {"hits": hits}
BOTS = ("aggressive", "based")

CONTROLS = [
    ("W A S D, arrows", "direction"),
    ("Space", "jump"),
    ("J", "light attack"),
    ("K", "heavy attack"),
    ("L", "dash, dodge"),
    ("E", "pick up, drop"),
    ("T", "taunt"),
]
PAD = ("Space", "KeyJ", "KeyK", "KeyL", "KeyE")


def act(keys: set[str], batch: Batch, agent: int) -> dict[str, Any]:
    left, right = bool(keys & {"KeyA", "ArrowLeft"}), bool(keys & {"KeyD", "ArrowRight"})
    if batch["status"][0, agent, SIDE] < 0:  # this fighter's keys are mirrored; a person's are not
        left, right = right, left
    pressed = {
        "jump": "Space",
        "light": "KeyJ",
        "heavy": "KeyK",
        "dash": "KeyL",
        "pick": "KeyE",
        "taunt": "KeyT",
    }
    return {
        "up": int(bool(keys & {"KeyW", "ArrowUp"})),
        "down": int(bool(keys & {"KeyS", "ArrowDown"})),
        "left": int(left),
        "right": int(right),
        **{name: int(key in keys) for name, key in pressed.items()},
    }
