"""What the viewer shows of racing (camera or lidar), and how a person drives."""

from typing import Any

import numpy as np

from ludus.games.racing import observation
from ludus.games.racing.car import STEP_SECONDS as STEP_SECONDS
from ludus.games.racing.vision import LIDAR_RANGE
from ludus.sim import Batch


def line(batch: Batch) -> Any:
    """[points, (x, y, tangent x, tangent y, curvature)] of the centre line."""
    return batch["bank_line"][batch["track"][0]]


def road(batch: Batch) -> Any:
    """Half width, length, 1 with walls."""
    track = batch["track"][0]
    return np.array(
        [batch["bank_half_width"][track], batch["bank_length"][track], batch["walled"][0]],
        np.float32,
    )


def beams(batch: Batch, agent: int) -> np.ndarray:
    """Metres to the road's edge along each lidar beam, left to right; empty for a camera."""
    if "beams" not in batch.layout.sizes:
        return np.zeros(0, np.float32)
    return batch["observation"][0, agent, observation.LIDAR_0 : observation.LIDAR_1] * LIDAR_RANGE


def camera(batch: Batch, agent: int) -> np.ndarray:
    return (
        batch["seen_camera"][0, agent]
        if "camera" in batch.layout.sizes
        else np.zeros((0, 0), np.uint8)
    )


STEPS = {name: name for name in ("car", "along", "across", "laps")}
STATIC = {"line": line, "road": road}
SEEN = {"beams": beams, "camera": camera}

CONTROLS = [("W ↑", "gas"), ("S ↓ Space", "brake"), ("A ←", "steer left"), ("D →", "steer right")]
PAD = ("KeyW", "KeyS")


def act(keys: set[str], batch: Batch, agent: int) -> dict[str, Any]:
    gas, brake = bool(keys & {"KeyW", "ArrowUp"}), bool(keys & {"KeyS", "ArrowDown", "Space"})
    way = bool(keys & {"KeyA", "ArrowLeft"}) - bool(keys & {"KeyD", "ArrowRight"})
    side = {1: "left", -1: "right", 0: ""}[way]
    if side and gas and brake:
        return {"drive": f"gas_brake_{side}"}
    if side:
        return {"drive": f"gas_{side}" if gas else side}
    return {"drive": "brake" if brake else "gas" if gas else "nothing"}
