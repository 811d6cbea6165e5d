"""What the viewer shows of hide-and-seek, and how a person plays it."""

from typing import Any

import numpy as np

from ludus.games.hide_and_seek import observation
from ludus.games.hide_and_seek.physics import STEP_SECONDS as STEP_SECONDS
from ludus.games.hide_and_seek.vision import RANGE, VIEW_ACROSS, VIEW_UP
from ludus.sim import Batch


def masks(batch: Batch) -> Any:
    """[3, x, z]: blocks, those that stop sight, those an agent placed; bit y is layer y."""
    return np.stack([batch[name][0] for name in ("solid", "sight", "placed")])


def rays(batch: Batch, agent: int) -> np.ndarray:
    """[64, 2]: how far each ray goes in metres, and what it meets (see vision.py)."""
    row = batch["observation"][0, agent]
    first, kinds = observation.RAY_DISTANCE, observation.RAY_KIND
    return np.stack(
        [row[first : first + observation.RAYS] * RANGE, row[kinds : kinds + observation.RAYS]], 1
    )


def facts(batch: Batch) -> Any:
    return np.array([VIEW_ACROSS, VIEW_UP, RANGE, batch["hide_steps"][0]], np.float32)


STEPS = {
    name: name
    for name in (
        "position",
        "yaw",
        "pitch",
        "held",
        "caught",
        "visible",
        "idle",
        "places_left",
        "removes_left",
    )
}
RARE = {"masks": masks}
STATIC = {"ground": "ground", "plan": "plan", "facts": facts}
SEEN = {"rays": rays}

CONTROLS = [
    ("W S", "forward, back"),
    ("A D", "step left, right"),
    ("← →", "turn"),
    ("↑ ↓", "look up, down"),
    ("Space", "jump"),
    ("E Q", "place, remove a block"),
]
PAD = ("Space", "KeyE", "KeyQ")


def act(keys: set[str], batch: Batch, agent: int) -> dict[str, Any]:
    def axis(more, less):
        return float((more in keys) - (less in keys))

    return {
        "forward": axis("KeyW", "KeyS"),
        "strafe": axis("KeyD", "KeyA"),
        "turn": axis("ArrowRight", "ArrowLeft"),
        "look": axis("ArrowUp", "ArrowDown"),
        "jump": int("Space" in keys),
        "place": int("KeyE" in keys),
        "remove": int("KeyQ" in keys),
    }
