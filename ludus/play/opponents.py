"""Whom a trained run can be measured against, by name: itself, bots, its own snapshots, other
runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ludus.batches import find_game, is_foreign
from ludus.errors import LudusError, nearest
from ludus.intervals import by_world
from ludus.play.evaluate import against_list
from ludus.protocols import ActingPolicy, Layout
from ludus.runs import checkpoint
from ludus.runs.load import check_same_layout, load_policies, make_policies
from ludus.runs.run import Run, split_reference
from ludus.runs.snapshots import Pool, evenly

SAMPLE = 8  # snapshots that 'snapshots' stands for


@dataclass(frozen=True)
class Rival:
    """`policies` by role, or None for self and bots. Its results also count in those of
    `groups`."""

    name: str
    policies: Mapping[str, ActingPolicy] | None = None
    groups: tuple[str, ...] = ()


class Rivals:
    """The rivals of a run. Its pool is that of its newest checkpoint."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.manifest = checkpoint.read_manifest(run, checkpoint.find(run, None))
        self.pool = Pool(run, size=0)
        saved = {
            int(step): text
            for step, text in ((self.manifest["league"] or {}).get("snapshots") or {}).items()
        }
        # a run that is still being trained may have dropped some since
        self.pool.hashes = {
            step: text for step, text in saved.items() if self.pool.path(step).exists()
        }

    def find(
        self, wanted: Sequence[str], layout: Layout, bots: Mapping[str, Mapping[str, int]]
    ) -> list[Rival]:
        """'snapshots' and 'bots' are spelled out; everybody once. `layout` is that of the game to
        be played."""
        out: list[Rival] = []
        for name in wanted:
            if name == "snapshots":
                out += self.sample(SAMPLE)
            elif name == "bots":
                single = len(layout.seats) == 1 and layout.seats[0].teams == 1
                out += [
                    Rival(bot, groups=("bots",)) for bot in against_list(bots, ("bots",), single)
                ]
            elif name.startswith("snapshot:"):
                out.append(Rival(name, self.snapshot(name.removeprefix("snapshot:"))))
            elif name == "self" or name.startswith("bot:"):
                out.append(Rival(name))
            elif (split_reference(name)[0] / "config.json").exists() or "/" in name or "@" in name:
                out.append(Rival(name, self.other_run(name, layout.describe())))
            else:
                known = [
                    "self",
                    "bots",
                    "snapshots",
                    "snapshot:STEP",
                    *(f"bot:{n}" for table in bots.values() for n in table),
                ]
                raise LudusError(
                    f"unknown opponent '{name}': {nearest(name, dict.fromkeys(known))} (or a run's "
                    "folder)"
                )
        unique: dict[str, Rival] = {}
        for rival in out:
            unique.setdefault(rival.name, rival)
        return list(unique.values())

    def sample(self, count: int) -> list[Rival]:
        """Snapshots evenly over the pool; those of its older half are marked, for they show what
        has been forgotten."""
        steps = self.steps()
        older = steps[: len(steps) // 2]
        return [
            Rival(
                f"snapshot:{s}",
                self.snapshot(str(s)),
                ("snapshots", "older_snapshots") if s in older else ("snapshots",),
            )
            for s in evenly(steps, count)
        ]

    def steps(self) -> list[int]:
        """Of the run's own snapshots, oldest first."""
        if not self.pool.own:
            raise LudusError(
                f"{self.run.path} has no snapshots: train with opponents from a pool, such as "
                '--league.mix "self 80, pool 20"'
            )
        return self.pool.own

    def snapshot(self, text: str) -> dict[str, ActingPolicy]:
        steps = self.steps()
        if not text.isdecimal() or int(text) not in steps:
            near = min(steps, key=lambda s: abs(s - int(text))) if text.isdecimal() else steps[-1]
            raise LudusError(
                f"{self.run.path} has no snapshot:{text}: the nearest is snapshot:{near} (there "
                f"are {len(steps)})"
            )
        tensors = self.pool.read(int(text))
        return make_policies(
            self.run, tensors, self.manifest["layout"], str(self.pool.path(int(text)))
        )[0]

    def other_run(self, reference: str, layout: Mapping[str, Any]) -> dict[str, ActingPolicy]:
        folder = split_reference(reference)[0]
        ours, theirs = (game_name(run) for run in (self.run, Run(folder)))
        if ours != theirs:
            raise LudusError(
                f"{folder} was trained to play {theirs}, not {ours}: choose a run of the same game"
            )
        policies, their_layout = load_policies(reference)
        check_same_layout(their_layout, layout, f"{folder} and {self.run.path}")
        return policies


def game_name(run: Run) -> str:
    """Without preset, however it was written."""
    name = run.config().game
    return name if is_foreign(name) else find_game(name)[0].name


def together(
    values: Mapping[str, np.ndarray], groups: Mapping[str, Sequence[str]]
) -> dict[str, np.ndarray]:
    """OPPONENT/METRIC → GROUP/METRIC: all opponents of a group as one. They were met in the same
    worlds."""
    parts: dict[str, list[np.ndarray]] = {}
    for opponent, names in groups.items():
        for metric in (
            n.removeprefix(f"{opponent}/") for n in values if n.startswith(f"{opponent}/")
        ):
            for group in names:
                parts.setdefault(f"{group}/{metric}", []).append(values[f"{opponent}/{metric}"])
    return {name: by_world(arrays) for name, arrays in parts.items()}
