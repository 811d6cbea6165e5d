"""Replays: the actions of an episode and a state every so often, enough to play it again exactly.

A file is safetensors: per step `continuous`, `binary`, `choices`, `reward` and `terms` [steps,
agents, …], and keyframes `keyframe/FIELD` [keyframes, …] of every per-env array, the first one
before the first step. The header (metadata) is JSON under "replay": version, game, settings, seeds,
who played, keyframe interval, layout.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ludus.errors import LudusError, disk_in_one_sentence
from ludus.files import parse_json, regular, settle
from ludus.games import is_ours, load_game
from ludus.imports import is_path
from ludus.runs import trust
from ludus.sim import Batch
from ludus.sim.game import Settings

VERSION = 1
KEYFRAME_EVERY = 60
WATCHED = 16  # envs that are recorded, of which a few are kept
PER_STEP = ("continuous", "binary", "choices", "reward", "terms")


class Recorder:
    """Watches the first envs of a batch through one episode each."""

    drawing_seconds = 0.0  # what is seen of a game is drawn when somebody looks

    def __init__(self, batch: Batch, most: int = WATCHED) -> None:
        self.batch = batch
        self.count = min(most, batch.num_envs)
        self.steps: list[list[dict[str, np.ndarray]]] = [[] for _ in range(self.count)]
        self.keyframes: list[list[dict[str, np.ndarray]]] = [[] for _ in range(self.count)]
        self.finished: list[dict[str, np.ndarray] | None] = [None] * self.count

    @property
    def open(self) -> list[int]:
        return [env for env in range(self.count) if self.finished[env] is None]

    def before(self) -> None:
        due = [env for env in self.open if len(self.steps[env]) % KEYFRAME_EVERY == 0]
        if due:
            shared = {n for n, f in self.batch.layout.arrays.items() if f.shared}
            state = {n: v for n, v in self.batch.state().items() if n not in shared}
            for env in due:
                self.keyframes[env].append({n: v[env].copy() for n, v in state.items()})

    def after(self) -> None:
        """Actions are read after the step: bots have chosen theirs in it."""
        if not self.open:
            return
        values = {name: self.batch.numpy(name) for name in PER_STEP}
        counted, returns = self.batch.numpy("counted"), self.batch.numpy("episode_return")
        for env in self.open:
            self.steps[env].append({n: v[env].copy() for n, v in values.items()})
            if counted[env]:
                self.finished[env] = {"return": returns[env].copy()}

    def chosen(self, agent: int) -> dict[str, int]:
        """The envs of the best and the worst episode by one agent's return, and of one in
        between."""
        done = [env for env in range(self.count) if self.finished[env] is not None]
        order = sorted(
            done,
            key=lambda env: float(self.finished[env]["return"][agent]),  # type: ignore[index]
        )
        return (
            {"best": order[-1], "worst": order[0], "random": random.Random(len(done)).choice(done)}
            if order
            else {}
        )

    def save(self, path: Path, env: int, header: dict[str, Any]) -> None:
        """One env's episode: what it needs to be played again, and `header`. The file appears
        complete, or not at all."""
        tensors = {name: np.stack([s[name] for s in self.steps[env]]) for name in PER_STEP}
        for name in self.keyframes[env][0]:
            stacked = np.stack([k[name] for k in self.keyframes[env]])
            tensors[f"keyframe/{name}"] = (
                stacked.view(np.int64) if stacked.dtype == np.uint64 else stacked
            )
        settings = self.batch.settings
        own_bots = {
            name: number
            for table in self.batch.controllers.values()
            for name, number in table.items()
            if is_path(name)
        }
        whole = {
            "version": VERSION,
            "game": self.batch.game.name,
            "sizes": settings.sizes,
            "params": settings.params,
            "weights": settings.weights,
            "keyframe_every": KEYFRAME_EVERY,
            "layout": self.batch.layout.describe(),
            "fingerprint": self.batch.fingerprint(),
            **({"own_bots": own_bots} if own_bots else {}),
            **header,
        }
        path.parent.mkdir(exist_ok=True)
        partial = path.with_suffix(".tmp")
        with disk_in_one_sentence(path):
            save_file(
                {n: np.ascontiguousarray(t) for n, t in tensors.items()},
                partial,
                {"replay": json.dumps(whole)},
            )
            settle(partial)
        partial.replace(path)


class Replay:
    """A replay file, checked."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            with safe_open(regular(self.path), "numpy") as file:
                metadata = file.metadata() or {}
                names = file.keys()
                self.tensors = {name: file.get_tensor(name) for name in names}
        except (OSError, SafetensorError) as error:
            raise LudusError(f"{path} is no replay: {error}") from None
        try:
            self.header: dict[str, Any] = parse_json(metadata["replay"])
            version = self.header["version"]
        except (KeyError, TypeError, ValueError):
            raise LudusError(f"{path} is no replay: it has no header") from None
        if version != VERSION:
            fix = ": update Ludus" if isinstance(version, int) and version > VERSION else ""
            raise LudusError(
                f"{path} is a replay of version {str(version)[:20]}, this Ludus reads version "
                f"{VERSION}{fix}"
            )
        lengths = {name: len(self.tensors[name]) for name in PER_STEP if name in self.tensors}
        if (
            len(lengths) < len(PER_STEP)
            or len(set(lengths.values())) != 1
            or not any(n.startswith("keyframe/") for n in self.tensors)
        ):
            raise LudusError(f"{path} is damaged: it has {lengths} steps")

    def __len__(self) -> int:
        return len(self.tensors["reward"])

    def play(self, start: int = 0) -> Iterator[Batch]:
        """A batch of one env after each step from `start` on (a multiple of the keyframe
        interval)."""
        every = self.header["keyframe_every"]
        if start % every:
            raise LudusError(f"a replay starts at keyframes, every {every} steps, not at {start}")
        source = str(self.header.get("source", self.header["game"]))
        if not is_ours(source) and not trust.is_trusted(self.path):
            trust.refuse(self.path, {source: "game"})
        game, _ = load_game(source)
        settings = Settings(self.header["sizes"], self.header["params"], self.header["weights"])
        overrides = {
            **settings.sizes,
            **settings.params,
            **{f"reward.{n}": w for n, w in settings.weights.items()},
        }
        batch = Batch(game, 1, overrides=overrides)
        state = batch.state()
        for name in state:
            saved = self.tensors.get(f"keyframe/{name}")
            if saved is not None:
                state[name] = saved[start // every][None].view(state[name].dtype)
        state["controller"][...] = 0  # everyone does what was recorded
        batch.load_state(state)
        for t in range(start, len(self)):
            for name in ("continuous", "binary", "choices"):
                batch.arrays[name][0] = self.tensors[name][t]
            batch.step()
            yield batch
