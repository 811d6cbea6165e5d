"""Watches the first envs of a foreign batch through one episode each, and keeps a few of them as
recordings.

Stands in for `ludus.play.replay.Recorder`, whose replays are played again: foreign envs cannot
be.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ludus.external import pictures
from ludus.external.foreign import ForeignBatch
from ludus.external.recording import ACTIONS, MOST_NAMES, MOST_OBSERVED, MOST_STEPS, Pictures, write
from ludus.sim.episode import RANDOM

CANNOT_DRAW = "the env has no render mode rgb_array"
NOT_NOW = "drawing had taken enough of the run's time; the last evaluation has some"


class Take:
    """One episode while it is played."""

    def __init__(self) -> None:
        self.frames: list[dict[str, np.ndarray]] = []  # what is shown
        self.steps: list[dict[str, np.ndarray]] = []  # what is done, and earned
        self.pictures = Pictures()
        self.returns: np.ndarray | None = None  # once it is over
        self.length = 0

    @property
    def full(self) -> bool:
        return len(self.steps) >= MOST_STEPS


class ForeignRecorder:
    def __init__(self, batch: ForeignBatch, most: int, players: Sequence[Any] = ()) -> None:
        """`players` may say what they think (`Player.thought`). Envs that draw themselves are few,
        the others are cheap to watch."""
        self.batch, self.players = batch, players
        self.count = min(most, batch.num_envs, batch.filmed or most)
        self.takes = [Take() for _ in range(self.count)]
        frame_bytes = 4 * batch.layout.num_agents * len(batch.layout.observation)
        self.observes = frame_bytes * (MOST_STEPS + 1) <= MOST_OBSERVED
        for env in range(self.count):
            self._show(env)

    @property
    def drawing_seconds(self) -> float:
        return float(self.batch.arrays["picture_seconds"].sum()) if self.batch.filmed else 0.0

    @property
    def open(self) -> list[int]:
        return [env for env in range(self.count) if self.takes[env].returns is None]

    def _show(self, env: int) -> None:
        """What there is to see now, and a picture if it is time for one."""
        take, arrays = self.takes[env], self.batch.arrays
        frame = {"alive": arrays["alive"][env].copy()}
        if self.observes:
            frame["observation"] = arrays["observation"][env].copy()
        at = len(take.frames)
        take.frames.append(frame)
        if env < self.batch.filmed:
            rows, columns = arrays["picture_size"][env]
            if take.pictures.due(at) and rows:
                take.pictures.add(at, pictures.compress(arrays["picture"][env, :rows, :columns]))
            arrays["picture_wanted"][env] = rows > 0 and take.pictures.due(at + 1) and not take.full

    def before(self) -> None:
        """After everybody has decided."""
        thoughts = self._thoughts() if self.open else {}
        for env in self.open:
            if not self.takes[env].full:
                self.takes[env].frames[-1] |= {
                    name: values[env] for name, values in thoughts.items()
                }

    def _thoughts(self) -> dict[str, np.ndarray]:
        """[watched envs, agents, …] by name."""
        out: dict[str, np.ndarray] = {}
        widest = max((p.thought()["chances"].shape[-1] for p in self.players), default=0)
        for player in self.players:
            if player.envs.start >= self.count:
                continue
            envs = slice(player.envs.start, min(player.envs.stop, self.count))
            for name, values in player.thought().items():
                ours = values.reshape(player.num_envs, player.count, *values.shape[1:])[
                    : envs.stop - envs.start
                ]
                shape = (
                    self.count,
                    self.batch.layout.num_agents,
                    *((widest,) if name == "chances" else ()),
                )
                mine = out.setdefault(name, np.full(shape, np.nan, np.float32))[envs, player.agents]
                (mine[..., : ours.shape[-1]] if name == "chances" else mine)[...] = ours
        return out

    def after(self) -> None:
        arrays = self.batch.arrays
        for env in self.open:
            take = self.takes[env]
            # it went away in the middle of the episode, and starts anew
            if arrays["resetting"][env]:
                self.takes[env] = Take()
                self._show(env)
                continue
            take.length += 1
            if not take.full:
                take.steps.append({name: arrays[name][env].copy() for name in (*ACTIONS, "reward")})
                self._show(env)
            if arrays["counted"][env]:
                take.returns = arrays["episode_return"][env].copy()
                if env < self.batch.filmed:
                    arrays["picture_wanted"][env] = False

    def chosen(self, agent: int) -> dict[str, int]:
        """The envs of the best and the worst episode by one agent's return, and of the one in the
        middle."""
        done = [env for env in range(self.count) if self.takes[env].returns is not None]
        order = sorted(
            done,
            key=lambda env: float(self.takes[env].returns[agent]),  # type: ignore[index]
        )
        labels = ("best", "worst", "middle")[: len(order)]
        return dict(
            zip(labels, (*order[-1:], *order[:1], *order[len(order) // 2 :][:1]), strict=False)
        )

    def save(self, path: Path, env: int, header: dict[str, Any]) -> None:
        take = self.takes[env]
        tensors = {name: np.stack([step[name] for step in take.steps]) for name in take.steps[0]}
        for name, first in take.frames[0].items():
            # nothing is decided after the last step
            missing = np.full_like(first, np.nan) if first.dtype.kind == "f" else first
            tensors[name] = np.stack([frame.get(name, missing) for frame in take.frames])
        write(path, {**self._about(env), **header}, {**tensors, **take.pictures.tensors()})

    def _about(self, env: int) -> dict[str, Any]:
        layout, take = self.batch.layout, self.takes[env]
        names = {
            role: list(entries) if len(entries) <= MOST_NAMES else []
            for role, entries in layout.entries.items()
        }
        roles = [
            {
                "name": s.role,
                "count": s.count,
                "observation": names[s.role],
                "actions": layout.actions[s.role].describe(),
            }
            for s in layout.seats
        ]
        players = [
            "bot:random" if c == RANDOM else "policy"
            for c in self.batch.arrays["controller"][env].tolist()
        ]
        return {
            "roles": roles,
            "players": players,
            "seconds_per_step": self.batch.seconds_per_step,
            "note": self._note(env, take),
        }

    def _note(self, env: int, take: Take) -> str:
        """What is missing, and why."""
        notes = []
        if take.length > len(take.steps):
            notes.append(f"These are the first {len(take.steps):,} of {take.length:,} steps.")
        if take.pictures.every > 1:
            notes.append(f"There is a picture of one step in {take.pictures.every}.")
        if not take.pictures.taken:
            fault = pictures.fault_of(self.batch.arrays, env) if env < self.batch.filmed else ""
            why = (
                f"render() failed with {fault}"
                if fault
                else NOT_NOW
                if self.batch.can_draw
                else CANNOT_DRAW
            )
            notes.append(f"There are no pictures: {why}.")
        if not self.observes:
            notes.append("Its observations are too large to be kept.")
        return " ".join(notes)
