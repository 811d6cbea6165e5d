"""What the viewer shows of mechs, and how a person plays one."""

from typing import Any

import numpy as np

from ludus.games.mechs.classes import HALF, HEAT_CAP, MAX_HP, SMOKE_RADIUS, STEP_SECONDS, TALL
from ludus.games.mechs.sensing import CONTACTS
from ludus.games.mechs.voxels import LARGEST
from ludus.sim import Batch

__all__ = ["STEP_SECONDS"]


def bank(name):
    return lambda batch: batch[f"bank_{name}"][batch["chart"][0]]


def patches(batch: Batch) -> Any:
    """[patches, (x, z, solid, opaque, debris)]: the columns that were damaged, as they are now."""
    keys = batch["patch_key"][0]
    taken = np.flatnonzero(keys)
    at = keys[taken].astype(np.int32) - 1
    columns = [
        at // LARGEST,
        at % LARGEST,
        *(batch[f"patch_{n}"][0][taken] for n in ("solid", "opaque", "debris")),
    ]
    return padded(np.stack(columns, 1).astype(np.int32), len(keys))


def padded(rows, count):
    """Always the same shape: rows that are not used have x = -1."""
    out = np.full((count, rows.shape[1]), -1, np.int32)
    out[: len(rows)] = rows
    return out


def bodies(batch: Batch) -> Any:
    """[agents, (class, half width, height, most hit points, heat cap)]."""
    kind = batch["kind"]
    return np.stack([kind, HALF[kind], TALL[kind], MAX_HP[kind], HEAT_CAP[kind]], 1).astype(
        np.float32
    )


def facts(batch: Batch) -> Any:
    return np.array([SMOKE_RADIUS, batch["sight_range"][0]], np.float32)


NAMES = (
    "position",
    "yaw",
    "hp",
    "legs",
    "heat",
    "shut",
    "down",
    "painted",
    "wreck",
    "target",
    "hit",
    "missile",
    "missile_left",
    "shell",
    "shell_left",
    "burst",
    "burst_live",
    "smoke",
    "smoke_left",
    "ecm",
    "eccm",
    "score",
    "tick",
)
STEPS = {name: name for name in NAMES}
RARE = {"patches": patches}
STATIC = {
    **{name: bank(name) for name in ("solid", "opaque", "breakable", "floor", "ground", "zone")},
    "bodies": bodies,
    "facts": facts,
}
SEEN = {"occupancy": lambda batch, agent: batch["seen_occupancy"][0, agent]}

CONTROLS = [
    ("W S", "forward, back"),
    ("A D", "step left, right"),
    ("← →", "turn"),
    ("Space", "jets"),
    ("J K L", "primary, secondary, tertiary weapon"),
    ("I", "smoke"),
    ("V C", "vent heat, electronic warfare"),
    ("1 … 5", "choose a contact as target"),
]
PAD = ("KeyJ", "KeyK", "KeyL", "Space", "KeyI")


def act(keys: set[str], batch: Batch, agent: int) -> dict[str, Any]:
    def axis(more, less):
        return float((more in keys) - (less in keys))

    allowed = batch["mask_target"][0, agent]
    chosen = [i for i in range(CONTACTS) if f"Digit{i + 1}" in keys and allowed[i + 1]]
    target = chosen[0] if chosen else 0
    pressed = {
        "primary": "KeyJ",
        "secondary": "KeyK",
        "tertiary": "KeyL",
        "special": "KeyI",
        "vent": "KeyV",
        "ewar": "KeyC",
    }
    return {
        "forward": axis("KeyW", "KeyS"),
        "strafe": axis("KeyD", "KeyA"),
        "turn": axis("ArrowRight", "ArrowLeft"),
        "vertical": float("Space" in keys),
        "target": f"contact{target}" if allowed[target + 1] else "none",
        **{name: int(key in keys) for name, key in pressed.items()},
    }
