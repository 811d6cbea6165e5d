"""Can one fixed seed be mastered in a short run? What cannot be learnt by heart cannot be
learnt."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ludus.doctor.finding import Finding

SURE = 3.0
PART = 0.5
"""Of the way from where it began to what the best bot earns."""


@dataclass(frozen=True)
class Overfit:
    """One role that played the same episode again and again, its opponents standing still."""

    role: str
    before: np.ndarray
    after: np.ndarray
    """Returns of episodes before and after learning."""
    best_bot: float
    """What the best of the bots earns in the same episode; -inf: there is none."""
    seconds: float


def judge(tried: Overfit) -> list[Finding]:
    return list(seed_not_mastered(tried))


def seed_not_mastered(tried: Overfit) -> Iterator[Finding]:
    """A policy that sees only one episode, over and over, against opponents that stand still, has
    not got better at it.

    With everything the same each time there is nothing to generalise: what is left is the learning
    itself. Rewards that are never met, observations that do not tell where the agent is, a learning
    rate that is far off.

    Give it more seconds first. Then look at the other findings, and at what the best bot does in
    this episode.
    """
    if len(tried.before) < 2 or len(tried.after) < 2:
        return
    error = math.sqrt(tried.before.var() / len(tried.before) + tried.after.var() / len(tried.after))
    start, end = float(tried.before.mean()), float(tried.after.mean())
    known = math.isfinite(tried.best_bot)
    nothing_to_do = known and tried.best_bot <= start + error
    mastered = end - start > SURE * error and (
        not known or end >= start + PART * (tried.best_bot - start)
    )
    fine = mastered or nothing_to_do
    yield Finding(
        check="seed_mastered" if fine else "seed_not_mastered",
        severity="info" if fine else "warning",
        cause=f"{tried.role} "
        + (
            "masters one fixed seed"
            if mastered
            else "plays as well as any bot from the start"
            if fine
            else "does not master even one fixed seed"
        ),
        evidence=f"return {start:.4g} before, {end:.4g} after {tried.seconds:.0f} s"
        + (f"; best bot {tried.best_bot:.4g}" if known else ""),
        fix="nothing"
        if fine
        else "more seconds; then the other findings, and what the best bot does differently",
        confidence=0.6,
    )


CHECKS = (seed_not_mastered,)
