"""Recordings: episodes of foreign envs as they were played. Their state is out of reach, so they
cannot be played again.

A file is safetensors. Frame 0 is the start of the episode, frame t what step t led to:

- `continuous`, `binary`, `choices` [steps, agents, entries] and `reward` [steps, agents]: what was
  done and earned
- `alive` [frames, agents]; `observation` [frames, agents, entries] where it is not too large
- `value` [frames, agents] and `chances` [frames, agents, entries]: what policies thought (NaN for
  others)
- `pictures` [bytes]: JPEG after JPEG, `picture_end` where each ends, `picture_step` the frame each
  shows

The header (metadata) is JSON under "recording". Nothing here needs torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ludus.errors import LudusError
from ludus.files import regular, settle

VERSION = 1
KEY = "recording"
MOST_STEPS = 2_000  # of an episode that are kept
MOST_OBSERVED = 4 * 2**20  # bytes of observations
MOST_PICTURES = 240
MOST_PICTURE_BYTES = 2 * 2**20
MOST_AGENTS = 1_000
ACTIONS = {"continuous": "f", "binary": "iu", "choices": "iu"}
MOST_NAMES = 64  # of observation entries: more are shown by number


class Pictures:
    """Evenly spread pictures of an episode of any length: when they get too many, every other one
    goes."""

    def __init__(self) -> None:
        self.every = 1
        self.taken: dict[int, bytes] = {}  # frame → JPEG

    def due(self, frame: int) -> bool:
        return frame % self.every == 0

    def add(self, frame: int, picture: bytes) -> None:
        self.taken[frame] = picture
        while (
            len(self.taken) > MOST_PICTURES
            or sum(map(len, self.taken.values())) > MOST_PICTURE_BYTES
        ):
            self.every *= 2
            self.taken = {at: p for at, p in self.taken.items() if at % self.every == 0}

    def tensors(self) -> dict[str, np.ndarray]:
        if not self.taken:
            return {}
        return {
            "pictures": np.frombuffer(b"".join(self.taken.values()), np.uint8),
            "picture_end": np.cumsum([len(p) for p in self.taken.values()], dtype=np.int32),
            "picture_step": np.array(list(self.taken), np.int32),
        }


def write(path: Path, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".tmp")
    metadata = {KEY: json.dumps({"version": VERSION, **header}, allow_nan=False)}
    save_file({n: np.ascontiguousarray(t) for n, t in tensors.items()}, partial, metadata)
    settle(partial)
    partial.replace(path)


def is_recording(path: Path) -> bool:
    try:
        with safe_open(regular(path), "numpy") as file:
            return KEY in (file.metadata() or {})
    except (OSError, SafetensorError):
        return False


class Recording:
    """A file, checked: nothing in it is trusted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with safe_open(regular(path), "numpy") as file:
                metadata = file.metadata() or {}
                names = file.keys()
                self.tensors: dict[str, np.ndarray] = {n: file.get_tensor(n) for n in names}
        except (OSError, SafetensorError, ValueError, TypeError, KeyError) as error:
            raise LudusError(f"{path.name} is no replay: {error}") from None
        try:
            self.header: dict[str, Any] = json.loads(metadata[KEY])
            version = self.header["version"]
        except (KeyError, TypeError, ValueError, RecursionError):
            raise LudusError(f"{path.name} is no replay: it has no header") from None
        if version != VERSION:
            fix = ": update Ludus" if isinstance(version, int) and version > VERSION else ""
            raise LudusError(
                f"{path.name} is a recording of version {str(version)[:20]}, this Ludus reads "
                f"version {VERSION}{fix}"
            )
        self._check_header()
        self._check_tensors()
        self._check_pictures()

    def _fault(self, what: str) -> LudusError:
        return LudusError(f"{self.path.name} is damaged: {what}")

    def _check_header(self) -> None:
        h = self.header
        for name in ("source", "note", "against", "role", "label"):
            if not isinstance(h.get(name), str) or len(h[name]) > 1000:
                raise self._fault(f"its {name} is no short text")
        for name, low, high in (("step", 0, 2**53), ("seconds_per_step", 1e-3, 60.0)):
            if not _is_number(h.get(name)) or not low <= h[name] <= high:
                raise self._fault(
                    f"its {name} is {str(h.get(name))[:40]}, between {low:g} and {high:g} is "
                    "possible"
                )
        roles = h.get("roles")
        if not isinstance(roles, list) or not roles or not all(_is_role(role) for role in roles):
            raise self._fault("its roles are not a list of names, counts and actions")
        self.agents = sum(role["count"] for role in roles)
        if not _is_names(h.get("players")) or len(h["players"]) != self.agents:
            raise self._fault("it does not say who played")
        if self.agents > MOST_AGENTS:
            raise self._fault(
                f"it has {self.agents:,} agents, at most {MOST_AGENTS:,} are possible"
            )

    def _check_tensors(self) -> None:
        reward = self.tensors.get("reward")
        if reward is None or reward.ndim != 2 or not 1 <= len(reward) <= MOST_STEPS:
            raise self._fault(f"it has no rewards of 1 to {MOST_STEPS:,} steps")
        self.steps = len(reward)
        done, shown = (self.steps, self.agents), (self.steps + 1, self.agents)
        self._check("reward", done, "f")
        self._check("alive", shown, "b")
        for name, kind in ACTIONS.items():
            self._check(name, (*done, self._width(name)), kind)
        for name in ("observation", "chances"):
            if name in self.tensors:
                self._check(name, (*shown, self._width(name)), "f")
        if "value" in self.tensors:
            self._check("value", shown, "f")
        if not np.isfinite(reward).all() or not all(
            np.isfinite(self.tensors[n]).all() for n in ("continuous", *self._observed())
        ):
            raise self._fault("a number in it is not finite")
        for role, seats in self.seats():
            for i, options in enumerate(role["actions"]["choices"].values()):
                taken = self.tensors["choices"][:, seats, i]
                if ((taken < 0) | (taken >= len(options))).any():
                    raise self._fault("an action is none of its options")

    def _observed(self) -> list[str]:
        return [name for name in ("observation",) if name in self.tensors]

    def _width(self, name: str) -> int:
        """Of actions as wide as the widest role needs; of others as the tensor says."""
        if name in ACTIONS:
            return max(len(role["actions"][name]) for role in self.header["roles"])
        return self.tensors[name].shape[-1] if self.tensors[name].ndim == 3 else -1

    def _check(self, name: str, shape: tuple[int, ...], kinds: str) -> None:
        found = self.tensors.get(name)
        if found is None or found.shape != shape or found.dtype.kind not in kinds:
            what = "nothing" if found is None else f"{found.dtype.name} {found.shape}"
            raise self._fault(f"'{name}' holds {what} instead of {shape}")

    def _check_pictures(self) -> None:
        if "pictures" not in self.tensors:
            return
        data, ends, steps = (
            self.tensors.get(n) for n in ("pictures", "picture_end", "picture_step")
        )
        if data is None or data.ndim != 1 or data.dtype != np.uint8:
            raise self._fault("its pictures are no bytes")
        if (
            ends is None
            or steps is None
            or ends.dtype != np.int32
            or steps.dtype != np.int32
            or ends.ndim != 1
        ):
            raise self._fault("its pictures have no places")
        if (
            ends.shape != steps.shape
            or not 1 <= len(ends) <= MOST_PICTURES
            or ends[-1] != len(data)
            or len(data) > MOST_PICTURE_BYTES
        ):
            raise self._fault(f"its {len(ends)} pictures do not fill their {len(data)} bytes")
        if (
            (np.diff(ends, prepend=0) <= 0).any()
            or (np.diff(steps, prepend=-1) <= 0).any()
            or not 0 <= steps[-1] <= self.steps
        ):
            raise self._fault("its pictures are out of order")

    def seats(self) -> list[tuple[dict[str, Any], slice]]:
        """Every role and its agents."""
        out, first = [], 0
        for role in self.header["roles"]:
            out.append((role, slice(first, first + role["count"])))
            first += role["count"]
        return out


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_role(role: Any) -> bool:
    if (
        not isinstance(role, dict)
        or not isinstance(role.get("name"), str)
        or len(role["name"]) > 200
    ):
        return False
    count, actions = role.get("count"), role.get("actions")
    if (
        not isinstance(count, int)
        or isinstance(count, bool)
        or not 1 <= count <= MOST_AGENTS
        or not isinstance(actions, dict)
    ):
        return False
    choices = actions.get("choices")
    named = [role.get("observation"), actions.get("continuous"), actions.get("binary")]
    if not isinstance(choices, dict) or not all(
        _is_names(names) for names in [*named, *choices.values()]
    ):
        return False
    return all(choices.values())


def _is_names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= 2**16
        and all(isinstance(name, str) and len(name) <= 200 for name in value)
    )
