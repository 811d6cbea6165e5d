"""What the viewer shows of pursuit, and how a person plays it."""

from typing import Any

from ludus.sim import Batch

STEP_SECONDS = 0.1
STEPS = {"position": "position", "heading": "heading"}

CONTROLS = [("W ↑", "run"), ("A ←", "turn left"), ("D →", "turn right")]
PAD = ("KeyW",)


def act(keys: set[str], batch: Batch, agent: int) -> dict[str, Any]:
    turn = bool(keys & {"KeyA", "ArrowLeft"}) - bool(keys & {"KeyD", "ArrowRight"})
    return {"turn": float(turn), "go": int(bool(keys & {"KeyW", "ArrowUp"}))}
