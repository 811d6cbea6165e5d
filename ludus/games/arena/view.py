"""What the viewer shows of the arena, and how a person plays it."""

from typing import Any

import numpy as np

from ludus.games.arena.world import ACTS, ATTACK, EAST, FACE, NORTH, NUM_ACTS, SOUTH, WEST
from ludus.sim import Batch

STEP_SECONDS = 0.15  # the rules know no seconds: a pace one can follow


def things(batch: Batch) -> Any:
    """The map without agents: walls, blocks and converters as in world.py."""
    grid = batch["grid"][0]
    return np.where(grid < 0, 0, grid)


def frozen(batch: Batch) -> Any:
    return batch["frozen_until"][0] >= batch["step"][0]


STEPS = {
    **{
        name: name
        for name in (
            "row",
            "column",
            "facing",
            "held",
            "last_act",
            "last_success",
            "stock",
            "converting",
        )
    },
    "frozen": frozen,
}
RARE = {"things": things}
STATIC = {
    name: name
    for name in ("converter_count", "converter_kind", "converter_row", "converter_column")
}
SEEN = {"tokens": lambda batch, agent: batch["seen_tokens"][0, agent]}

CONTROLS = [
    ("W A S D, arrows", "turn that way, then walk"),
    ("E", "get from the converter ahead"),
    ("Q", "put into the converter ahead"),
    ("R", "swap places with a block"),
    ("Space", "attack"),
]
PAD = ("KeyE", "KeyQ", "KeyR", "Space")
WAYS = {
    NORTH: {"KeyW", "ArrowUp"},
    EAST: {"KeyD", "ArrowRight"},
    SOUTH: {"KeyS", "ArrowDown"},
    WEST: {"KeyA", "ArrowLeft"},
}


def act(keys: set[str], batch: Batch, agent: int) -> dict[str, Any]:
    allowed = batch["mask_act"][0, agent]
    if "Space" in keys:
        targets = [act for act in range(ATTACK, NUM_ACTS) if allowed[act]]
        return {"act": ACTS[targets[0]] if targets else "noop"}
    for key, name in (("KeyE", "get"), ("KeyQ", "put"), ("KeyR", "swap")):
        if key in keys:
            return {"act": name}
    for way, names in WAYS.items():
        if keys & names:
            return {"act": "forward" if batch["facing"][0, agent] == way else ACTS[FACE + way]}
    return {"act": "noop"}
