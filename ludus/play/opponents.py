"""Whom a trained run can be measured against, by name: itself, bots, its own snapshots, other
runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ludus.batches import find_game, is_foreign
from ludus.errors import LudusError
from ludus.intervals import by_world
from ludus.play.evaluate import Keep, measure
from ludus.play.lineups import alone
from ludus.protocols import ActingPolicy, Batch, Layout
from ludus.runs import checkpoint
from ludus.runs.load import check_same_layout, load_policies, make_policies
from ludus.runs.run import Run, split_reference
from ludus.runs.snapshots import Pool, evenly
from ludus.who import (
    BOT,
    BOTS,
    RUN,
    SAMPLE,
    SELF,
    SNAPSHOT,
    SNAPSHOTS,
    Who,
    bot_names,
    read,
)

Policies = Mapping[str, ActingPolicy]  # by role


@dataclass(frozen=True)
class Rival:
    """`policies` by role, or None for self and bots. Its results also count in those of
    `groups`."""

    name: str
    policies: Policies | None = None
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
        self, wanted: Sequence[str], layout: Layout, controllers: Mapping[str, Mapping[str, int]]
    ) -> list[Rival]:
        """'snapshots' and 'bots' are spelled out; everybody once. `layout` is that of the game to
        be played."""
        bots = bot_names(controllers)
        found: dict[str, Rival] = {}
        for name in wanted:
            who = read(name, (SELF, BOTS, BOT, SNAPSHOTS, SNAPSHOT, RUN), bots, "against")
            for rival in self._rivals(who, layout, bots):
                found.setdefault(rival.name, rival)
        return list(found.values())

    def _rivals(self, who: Who, layout: Layout, bots: Sequence[str]) -> list[Rival]:
        if who.kind == SNAPSHOTS:
            return sample(self.steps(), lambda step: self.snapshot(str(step)))
        if who.kind == BOTS:
            return [
                Rival(f"bot:{name}", groups=(BOTS,)) for name in (bots if not alone(layout) else ())
            ]
        if who.kind == SNAPSHOT:
            return [Rival(str(who), self.snapshot(who.name))]
        if who.kind == RUN:
            return [Rival(str(who), self.other_run(who.name, layout.describe()))]
        return [Rival(str(who))]

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


def spelled_out(
    wanted: Sequence[str], layout: Layout, controllers: Mapping[str, Mapping[str, int]]
) -> list[Who]:
    """Whom eval.against names, each once; 'bots' are all of them, or nobody in a game for one."""
    found: list[Who] = []
    bots = bot_names(controllers)
    for name in wanted:
        who = read(name, (SELF, BOTS, BOT, SNAPSHOTS), bots, "eval.against")
        if who.kind != BOTS:
            found.append(who)
        elif not alone(layout):
            found += [Who(BOT, bot) for bot in bots]
    return list(dict.fromkeys(found))


def sample(steps: Sequence[int], policies_of: Callable[[int], Policies]) -> list[Rival]:
    """What 'snapshots' stands for: some, evenly over those of these steps, oldest first. Those of
    the older half are marked, for they show what has been forgotten."""
    older = steps[: len(steps) // 2]
    return [
        Rival(
            f"{SNAPSHOT}:{step}",
            policies_of(step),
            (SNAPSHOTS, "older_snapshots") if step in older else (SNAPSHOTS,),
        )
        for step in evenly(steps, SAMPLE)
    ]


def measure_each(
    make: Callable[[int], Batch],
    policies: Policies,
    rivals: Sequence[Rival],
    episodes: int,
    seed: int,
    greedy: bool = False,
    keep: Keep | None = None,
    on_step: Callable[[int], None] = lambda done: None,
) -> dict[str, np.ndarray]:
    """OPPONENT/METRIC, a value per episode: so many episodes against each rival, and those of a
    group together. For the rest see `measure`."""
    values: dict[str, np.ndarray] = {}
    for number, rival in enumerate(rivals):
        before = number * episodes
        found = measure(
            make,
            policies,
            rival.name,
            episodes,
            seed,
            greedy,
            keep,
            rivals=rival.policies,
            on_step=lambda done, before=before: on_step(before + done),  # type: ignore[misc]
        )
        values |= {f"{rival.name}/{name}": v for name, v in found.items()}
    return values | together(values, {rival.name: rival.groups for rival in rivals})


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
