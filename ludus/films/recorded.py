"""A recording of a foreign env as a film: nothing is played again and nothing of the env is
imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from ludus.external.recording import ACTIONS, Recording
from ludus.films.film import plain
from ludus.films.pack import pack
from ludus.films.shows import RECORDED


class RecordedFilm:
    """Has the fields of `ludus.films.film.Film` that a page needs. Frame 0 is the start, frame t
    what step t led to."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.seen: dict[int, Any] = {}
        self.header = header_of(recording)

    def __len__(self) -> int:
        return self.recording.steps + 1

    def message(self) -> bytes:
        tensors = self.recording.tensors
        steps = {name: at_frames(tensors[name]) for name in (*ACTIONS, "reward")}
        steps |= {
            name: tensors[name]
            for name in ("alive", "observation", "value", "chances")
            if name in tensors
        }
        steps["step"] = np.arange(len(self), dtype=np.int32)
        steps["terms"] = steps["reward"][..., None]
        steps["episode_return"] = np.cumsum(steps["reward"], 0, dtype=np.float32)
        steps["term_totals"] = steps["episode_return"][..., None]
        arrays = {f"step/{name}": values for name, values in steps.items()}
        arrays |= {
            f"static/{n}": tensors[n]
            for n in ("pictures", "picture_end", "picture_step")
            if "pictures" in tensors
        }
        return pack({**plain(self.header), "frames": len(self)}, arrays)

    def seen_message(self, agent: int) -> bytes:
        return pack({"agent": agent}, {})


def at_frames(values: np.ndarray) -> np.ndarray:
    """What steps did, at the frames they led to: nothing led to the first one."""
    return np.concatenate([np.zeros_like(values[:1]), values])


def header_of(recording: Recording) -> dict[str, Any]:
    h = recording.header
    thinks = "" if "value" in recording.tensors else "nobody who played says what it thinks"
    return {
        "kind": "replay",
        "view": RECORDED,
        "game": h["source"],
        "summary": f"an env of another library, as it was recorded. {h['note']}".strip(),
        "agents": [
            {"role": role["name"], "team": 0, "number": i}
            for role, _ in recording.seats()
            for i in range(role["count"])
        ],
        "sizes": {},
        "params": {},
        "weights": {"reward": 1.0},
        "terms": ["reward"],
        "earns": [[True]] * recording.agents,
        "term_kinds": ["goal"],
        "goals": [],
        "actions": max(
            (role["actions"] for role in h["roles"]), key=lambda a: sum(map(len, a.values()))
        ),
        "actions_by_role": {role["name"]: role["actions"] for role in h["roles"]},
        "observation_by_role": {role["name"]: role["observation"] for role in h["roles"]},
        "step_seconds": h["seconds_per_step"],
        "seen": [],
        "controls": [],
        "pad": [],
        "playable": False,
        "replay": {name: h[name] for name in ("step", "against", "role", "label")},
        "players": h["players"],
        "note": h["note"],
        "thinks": thinks,
        "differs": None,
    }
