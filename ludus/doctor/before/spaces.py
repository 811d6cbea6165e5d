"""Observations that are numbers of a sensible size, actions that do something, the same game for
the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ludus.doctor.finding import Finding

LARGE = 20.0
"""Without normalisation: units of a layer that starts with weights around 0.1 saturate."""
UNBOUNDED = 1e5
"""With normalisation: what grows that far in an episode has no bounds, and its mean and deviation
never settle."""


@dataclass(frozen=True)
class Spaces:
    """What was seen of one role in random play and with bots."""

    role: str
    entries: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    """[entries], over what was finite."""
    not_finite: tuple[str, ...]
    normalised: bool
    dead_actions: tuple[str, ...]
    """Action entries or options that changed nothing in any situation that was tried."""
    never_allowed: tuple[str, ...]
    """Keys and options that a mask never allowed."""
    situations: int
    differs: str = ""
    """The first array that was not the same when the same steps were played again; empty: none."""


def judge(seen: Spaces) -> list[Finding]:
    return [f for check in CHECKS for f in check(seen)]


def _some(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names[:8]) + (" …" if len(names) > 8 else "")


def not_deterministic(seen: Spaces) -> Iterator[Finding]:
    """The same state and the same seed, played again, gave another game.

    Something draws randomness that the seed does not govern: a global generator, the clock, an
    array used before it is written.

    Draw from the env's own key. Without this no run can be repeated, resumed or compared.
    """
    if seen.differs:
        yield Finding(
            check="not_deterministic",
            severity="critical",
            cause="the game is not the same when it is played again from the same state and seed",
            evidence=f"first to differ: {seen.differs}",
            fix="draw all randomness from the env's key; write every array before it is read",
            confidence=0.95,
        )


def observation_not_finite(seen: Spaces) -> Iterator[Finding]:
    """Observation entries are NaN or infinite before anything is learnt.

    A division by a distance that can be zero, a logarithm of nothing, an entry that is read before
    it is written.

    Guard the division; write the entry in every step.
    """
    if seen.not_finite:
        yield Finding(
            check="observation_not_finite",
            severity="critical",
            cause=f"observations of {seen.role} are not finite",
            evidence=f"entries: {_some(seen.not_finite)}",
            fix="guard divisions and logarithms where these entries are made",
            confidence=0.99,
        )


def observation_scale(seen: Spaces) -> Iterator[Finding]:
    """Observation entries are so large that the network saturates, or grow without bounds.

    Positions in centimetres, counters of steps, products of counts. A normaliser mends what is
    merely large; what keeps growing it cannot follow.

    Divide by the largest value there can be, or set policy.normalise_observation.
    """
    size = np.maximum(np.abs(seen.low), np.abs(seen.high))
    limit = UNBOUNDED if seen.normalised else LARGE
    large = [n for n, s in zip(seen.entries, size, strict=True) if s > limit]
    if large:
        yield Finding(
            check="observation_scale",
            severity="warning",
            cause=f"{len(large)} observation entries of {seen.role} are far too large",
            evidence=f"{_some(large)}: up to {size.max():.3g}"
            + ("" if seen.normalised else "; observations are not normalised"),
            fix="divide by the largest possible value"
            + ("" if seen.normalised else ", or --policy.normalise-observation True"),
            confidence=0.7,
            overrides={} if seen.normalised else {"policy.normalise_observation": "True"},
        )


def observation_constant(seen: Spaces) -> Iterator[Finding]:
    """Observation entries that were the same in every step of every episode.

    Never written, or of something this recipe does not use.

    Take out what can never change: each costs a column of weights.
    """
    same = [
        n
        for n, a, b in zip(seen.entries, seen.low, seen.high, strict=True)
        if a == b and n not in seen.not_finite
    ]
    if same:
        every = len(same) == len(seen.entries)
        yield Finding(
            check="observation_constant",
            severity="critical" if every else "info",
            cause=f"{'all' if every else len(same)} observation entries of {seen.role} never "
            "change",
            evidence=_some(same),
            fix="write them in every step" if every else "leave them out if they can never change",
            confidence=0.95 if every else 0.4,
        )


def action_without_effect(seen: Spaces) -> Iterator[Finding]:
    """Changing an action entry changed nothing in the game, in any situation that was tried.

    An entry that the rules do not read, an index that is off by one, or an action that needs a
    situation nobody got into.

    Follow the entry into the rules; remove it if nothing reads it.
    """
    if seen.dead_actions:
        yield Finding(
            check="action_without_effect",
            severity="warning",
            cause=f"{seen.role}: nothing depends on {_some(seen.dead_actions)}",
            evidence=f"played both ways for a few steps from {seen.situations} situations, with "
            "the same result",
            fix="see where the rules read it; remove it if nothing does",
            confidence=0.5,
        )
    if seen.never_allowed:
        yield Finding(
            check="action_without_effect",
            severity="info",
            cause=f"{seen.role}: the mask never allowed {_some(seen.never_allowed)}",
            evidence=f"in {seen.situations} situations",
            fix="nothing to do where it takes skill to get there",
            confidence=0.3,
        )


CHECKS = (
    not_deterministic,
    observation_not_finite,
    observation_scale,
    observation_constant,
    action_without_effect,
)
