"""Tries every action entry both ways from the same situations, and plays a stretch twice from the
same state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ludus.doctor.before.spaces import Spaces
from ludus.examine.rollouts import Seen
from ludus.sim import Batch
from ludus.sim.layout import Layout

HELD_STEPS = 4
"""An action is held so long: some act only after a wind-up."""
REPEATED_STEPS = 40
ENGINE = ("alive", "terms", "outcome", "terminated", "goals")


@dataclass(frozen=True)
class Change:
    """Two values of one action entry to compare, and where its mask is (None: always allowed)."""

    name: str
    array: str
    index: int
    one: float
    other: float
    mask: int | None = None


def changes(layout: Layout) -> Iterator[Change]:
    for i, name in enumerate(layout.continuous):
        yield Change(name, "continuous", i, -1.0, 1.0)
    for i, name in enumerate(layout.binary):
        yield Change(
            name,
            "binary",
            i,
            0,
            1,
            layout.binary_mask_at[i] if layout.binary_mask_at[i] >= 0 else None,
        )
    for i, (name, options) in enumerate(layout.choices.items()):
        for k, option in enumerate(options[1:], start=1):
            at = layout.choice_mask_at[i]
            yield Change(f"{name}={option}", "choices", i, 0, k, at + k if at >= 0 else None)


def examine_spaces(batch: Batch, seen: Seen, normalised: bool, seconds: float) -> list[Spaces]:
    differs = first_difference(batch, seen.states[0]) if seen.states else ""
    out = []
    for seats in batch.layout.seats:
        dead, never, situations = dead_actions(
            batch, seats, seen.states, seconds / len(batch.layout.seats)
        )
        role, names = seats.role, batch.layout.observation
        mine = set(batch.layout.observation_of(role))
        kept = [i for i, n in enumerate(names) if n in mine]
        out.append(
            Spaces(
                role=role,
                entries=tuple(names[i] for i in kept),
                low=seen.low[role][kept],
                high=seen.high[role][kept],
                not_finite=tuple(names[i] for i in kept if not seen.finite[role][i]),
                normalised=normalised,
                dead_actions=tuple(dead),
                never_allowed=tuple(never),
                situations=situations,
                differs=differs,
            )
        )
    return out


def first_difference(batch: Batch, state: dict[str, np.ndarray]) -> str:
    """Plays the same stretch twice; the first array that ends otherwise."""
    ends = []
    for _ in range(2):
        batch.load_state(state)
        for _ in range(REPEATED_STEPS):
            batch.step()
        ends.append(batch.state(setup=False))
    return next((n for n in ends[0] if ends[0][n].tobytes() != ends[1][n].tobytes()), "")


def dead_actions(
    batch: Batch, seats: Any, states: list[dict[str, np.ndarray]], seconds: float
) -> tuple[list[str], list[str], int]:
    """Entries without any effect, options that were never allowed, and how many situations were
    looked at."""
    watched = [n for n, f in batch.game.state.items() if not f.shared and not n.startswith("seen_")]
    begin, left, allowed_once = time.perf_counter(), list(changes(batch.layout)), set()
    looked = 0
    for state in states:
        if not left or time.perf_counter() - begin > seconds:
            break
        looked += batch.num_envs
        still = []
        for change in left:
            rows = _allowed(batch, state, seats, change)
            if rows.any():
                allowed_once.add(change.name)
            if not rows.any() or _same(batch, state, seats, change, rows, [*watched, *ENGINE]):
                still.append(change)
        left = still
    dead = [c.name for c in left if c.name in allowed_once]
    return dead, [c.name for c in left if c.name not in allowed_once], looked


def _allowed(batch: Batch, state: dict[str, np.ndarray], seats: Any, change: Change) -> np.ndarray:
    """[envs, agents of the role] that may choose and whose choice counts."""
    alive = (
        state["alive"][:, seats.agents]
        & ~state["idle"][:, seats.agents]
        & ~state["finished"][:, None]
    )
    return (
        alive
        if change.mask is None
        else alive & state["action_mask"][:, seats.agents, change.mask].astype(bool)
    )


def _same(
    batch: Batch,
    state: dict[str, np.ndarray],
    seats: Any,
    change: Change,
    rows: np.ndarray,
    watched: list[str],
) -> bool:
    """Does it come to the same whichever of the two values the agents of the role choose?"""
    ends = []
    for value in (change.one, change.other):
        batch.load_state(state)
        batch["controller"][...] = 0
        # the same both times: what a target is worth shows only while a key is down
        _act_at_random(batch)
        mine = batch[change.array][:, seats.agents]
        mine[..., change.index] = np.where(rows, value, mine[..., change.index])
        for _ in range(HELD_STEPS):
            batch.step()
        ends.append({n: batch.numpy(n) for n in watched})
    return all(np.array_equal(ends[0][n], ends[1][n]) for n in watched)


def _act_at_random(batch: Batch) -> None:
    """Among what masks allow, always the same."""
    draw, layout, mask = np.random.default_rng(0), batch.layout, batch["action_mask"].astype(bool)
    batch["continuous"][...] = draw.uniform(-1, 1, batch["continuous"].shape)
    batch["binary"][...] = draw.integers(0, 2, batch["binary"].shape)
    for i, at in enumerate(layout.binary_mask_at):
        if at >= 0:
            batch["binary"][..., i] *= mask[..., at]
    for i, (options, at) in enumerate(
        zip(layout.choices.values(), layout.choice_mask_at, strict=True)
    ):
        liking = draw.uniform(0.1, 1, (*batch["choices"].shape[:-1], len(options)))
        if at >= 0:
            liking *= mask[..., at : at + len(options)]
        batch["choices"][..., i] = liking.argmax(-1)
