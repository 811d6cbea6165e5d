"""What happened in one env, step by step, as arrays: made by re-simulation or by playing, read by
the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ludus.films.pack import pack
from ludus.films.shows import Show
from ludus.sim import Batch

COMMON = (
    "step",
    "alive",
    "reward",
    "terms",
    "term_totals",
    "episode_return",
    "outcome",
    "continuous",
    "binary",
    "choices",
)
MOST_BYTES = 256 * 2**20  # of a film in memory: far more than an episode needs


def value_of(what: Any, batch: Batch) -> np.ndarray:
    """A field by its name, or what a function of `view.py` makes of the batch: for env 0."""
    return np.array(what(batch)) if callable(what) else batch.numpy(what)[0]


def about(show: Show, batch: Batch) -> dict[str, Any]:
    """What the page must know to show this game, whoever plays."""
    layout, settings = batch.layout, batch.settings
    agents = [
        {"role": s.role, "team": team, "number": team * s.count + i}
        for s in layout.seats
        for team in range(s.teams)
        for i in range(s.count)
    ]
    return {
        "view": show.name,
        "game": batch.game.name,
        "summary": batch.game.summary,
        "agents": agents,
        "sizes": settings.sizes,
        "params": settings.params,
        "weights": settings.weights,
        "terms": layout.terms,
        "earns": [[bool(x) for x in row] for row in layout.applies()],
        "term_kinds": [batch.game.rewards[t].kind for t in layout.terms],
        "goals": layout.goals,
        "actions": {
            "continuous": layout.continuous,
            "binary": layout.binary,
            "choices": layout.choices,
        },
        "step_seconds": show.step_seconds,
        "seen": list(show.seen),
        "controls": [list(c) for c in show.controls],
        "pad": list(show.pad),
        "playable": show.act is not None,
    }


class Camera:
    """Takes one frame after another of env 0."""

    def __init__(self, show: Show, batch: Batch) -> None:
        self.show, self.batch = show, batch

    def static(self) -> dict[str, np.ndarray]:
        return {f"static/{n}": value_of(what, self.batch) for n, what in self.show.static.items()}

    def frame(self) -> dict[str, np.ndarray]:
        """The state after a step, and the actions that led to it."""
        out = {n: self.batch.numpy(n)[0] for n in COMMON}
        return out | {n: value_of(what, self.batch) for n, what in self.show.steps.items()}

    def rare(self) -> dict[str, np.ndarray]:
        return {n: value_of(what, self.batch) for n, what in self.show.rare.items()}

    def seen(self, agent: int) -> dict[str, np.ndarray]:
        return {n: np.array(function(self.batch, agent)) for n, function in self.show.seen.items()}


class Film:
    """All frames of an episode. Frame 0 is the start, frame t what step t led to."""

    def __init__(
        self, camera: Camera, header: Mapping[str, Any], keep_seen: Sequence[int] = ()
    ) -> None:
        self.camera, self.header = camera, {**about(camera.show, camera.batch), **header}
        self.static = camera.static()
        self.frames: list[dict[str, np.ndarray]] = []
        self.changes: dict[str, tuple[list[int], list[np.ndarray]]] = {
            n: ([], []) for n in camera.show.rare
        }
        self.seen: dict[int, list[dict[str, np.ndarray]]] = {agent: [] for agent in keep_seen}
        self.bytes = 0

    def shoot(self, think: Callable[[], Mapping[str, np.ndarray]]) -> None:
        """One frame. `think` is called after it is taken: policies write their next actions where
        the last ones are."""
        frame = self.camera.frame()
        seen = {agent: self.camera.seen(agent) for agent in self.seen}
        frame |= think()
        at = len(self.frames)
        self.frames.append(frame)
        self.bytes += sum(v.nbytes for v in frame.values())
        for name, value in self.camera.rare().items():
            steps, values = self.changes[name]
            if not values or not np.array_equal(values[-1], value):
                steps.append(at)
                values.append(value)
                self.bytes += value.nbytes
        for agent, kept in self.seen.items():
            kept.append(seen[agent])
            self.bytes += sum(v.nbytes for v in seen[agent].values())

    def __len__(self) -> int:
        return len(self.frames)

    def message(self) -> bytes:
        """Everything but what single agents see."""
        arrays = dict(self.static)
        for name in self.frames[0]:
            arrays[f"step/{name}"] = np.stack([frame[name] for frame in self.frames])
        for name, (steps, values) in self.changes.items():
            arrays[f"rare/{name}/at"] = np.array(steps, np.int32)
            arrays[f"rare/{name}/values"] = np.stack(values)
        return pack({**plain(self.header), "frames": len(self)}, arrays)

    def seen_message(self, agent: int) -> bytes:
        kept = self.seen[agent]
        return pack(
            {"agent": agent},
            {f"seen/{n}": np.stack([k[n] for k in kept]) for n in kept[0]} if kept else {},
        )


def plain(value: Any) -> Any:
    """The same as JSON has it: what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
