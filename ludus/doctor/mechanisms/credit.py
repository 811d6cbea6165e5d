"""Credit comes too late for the discount."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ludus.doctor.finding import Finding
from ludus.doctor.ledger import SLACK, Ledger
from ludus.doctor.rewards import Term

GONE = 0.01
"""A hundredth of the goal is below the error of any value estimate."""
FAINT = 0.05
OFTEN = 10
"""A goal that comes ten times an episode also comes at shorter intervals than the average: faint is
enough."""


def credit_too_late_for_the_discount(ledger: Ledger) -> Iterator[Finding]:
    """With a discount of gamma a reward t steps away is worth gamma^t now: 0.99 sees about 100
    steps far. If the first reward for doing right comes much later than that, the actions that led
    to it get no credit."""
    gamma = ledger.reward.episode.gamma
    paid = [g for g in ledger.goals if ledger.span(g) > 0 or g.ends_episode]
    if not paid or ledger.guided:
        return
    goal = min(paid, key=lambda g: _delay(ledger, g))
    delay = _delay(ledger, goal)
    left = gamma**delay
    if left >= FAINT or (left >= GONE and _often(ledger, goal)):
        return
    wanted = math.exp(math.log(0.3) / delay) if delay > 0 else 1.0
    yield Finding(
        check="credit_too_late_for_the_discount",
        severity="critical" if left < GONE else "warning",
        cause=f"the goal '{goal.name}' is paid so late that discounting leaves next to nothing of "
        "it where it has to be learnt",
        evidence=f"{gamma:g}^{delay:.0f} = {left:.2g} of '{goal.name}' is left {delay:.0f} steps "
        "before it is paid; "
        f"gamma {gamma:g} sees about {1 / (1 - gamma) if gamma < 1 else math.inf:.0f} steps far, "
        f"an episode has {ledger.steps}",
        confidence=0.8 if left < GONE else 0.5,
        fix=f"raise gamma to {wanted:.4g} (30% left), shorten the episode, or pay progress on the "
        "way",
    )


def _often(ledger: Ledger, goal: Term) -> bool:
    return goal.kind == "event" and ledger.times(goal) >= OFTEN


def _delay(ledger: Ledger, goal: Term) -> float:
    """Steps from a decision to its pay. At the end of the episode for a terminal reward; a goal
    that can come at any time comes at a quarter of the time limit, a repeated one that much sooner,
    and paid steps on the way shorten it further."""
    if goal.kind in ("per_step", "shaping"):
        return 0.0
    scored = goal.varies and goal.reach_probability is None  # every episode is, at its end
    if goal.kind == "terminal" and (scored or not goal.ends_episode):
        return float(ledger.steps)
    if (
        goal.kind == "event"
        and not goal.ends_episode
        and goal.max_times is None
        and not goal.respawns_after
    ):
        return ledger.steps / SLACK**2  # how often was not said: perhaps once, perhaps many times
    stones = sum(1 for t in ledger.needs(goal) if t.high > 0)
    return ledger.steps / SLACK / max(ledger.times(goal), 1) / (1 + stones)
