"""Dying early pays."""

from __future__ import annotations

from collections.abc import Iterator

from ludus.doctor.finding import Finding
from ludus.doctor.ledger import Ledger

SELDOM = 0.05
"""A goal met by random play less than once in twenty episodes is met long after dying has been
found."""
SOMETIMES = 0.3
HALF_WAY = 0.5
"""Where nobody said how rare the goal is: dying that gets half the way from failing to succeeding
is worth a word."""
WORTH_IT = 0.1
"""What dying saves matters once it is a tenth of what success would bring."""


def dying_early_pays(ledger: Ledger) -> Iterator[Finding]:
    """Where every step costs and an episode can be ended by failing, failing at once is the
    cheapest thing to do: the agent jumps into the pit. It need not be the best of all; it is enough
    that it is found before the goal is."""
    exits = [t for t in ledger.reward.terms if t.ends_episode and not t.goal]
    if not exits and not ledger.reward.episode.failure_probability:
        return
    exits = exits or [
        t for t in ledger.reward.terms if t.kind == "terminal" and not t.goal and t.high < 0
    ]
    way_out = max(exits, key=lambda t: t.high) if exits else None
    per_step = (
        ledger.steady_income
        - ledger.time_cost
        - _badly_done(ledger)
        - _far_away(ledger)
        - _costly(ledger)
    )
    living = per_step * ledger.steps
    # who fails by chance alone has lived until then
    dying = way_out.high if way_out else per_step * min(ledger.idle_steps, ledger.steps)
    if living >= 0:
        return  # what ends the episode may pay more than living does, but living does not hurt
    succeeding = (
        sum(t.high * ledger.times(t) for t in ledger.goals)
        + (ledger.steady_income - ledger.time_cost) * ledger.time_to_goal
    )
    if dying - living <= WORTH_IT * max(succeeding - living, 0.0) or dying <= living:
        return
    chance = max((ledger.chance(g) for g in ledger.goals), default=0.0)
    if dying >= succeeding or _badly_done(ledger) or _far_away(ledger):
        severity, confidence = "critical", 0.8
    elif chance < SOMETIMES and not ledger.guided:
        severity, confidence = ("critical", 0.75) if chance < SELDOM else ("warning", 0.5)
    elif (
        not _stated(ledger)
        and not ledger.guided
        and dying - living >= HALF_WAY * (succeeding - living)
    ):
        severity, confidence = "warning", 0.4
    else:
        return
    name = f"'{way_out.name}'" if way_out else "failing"
    yield Finding(
        check="dying_early_pays",
        severity=severity,
        cause=f"living costs and {name} ends the episode, so the agent learns to fail at once",
        evidence=f"{name} at once: {dying:g}; living {ledger.steps} steps without the goal: "
        f"{living:g} ({per_step:g} a step); "
        f"succeeding after {ledger.time_to_goal:g} steps: {succeeding:g}; random play meets the "
        f"goal with chance {chance:g}",
        confidence=confidence,
        fix=f"make failing cost more than living ({living:g}), pay a small bonus for each step "
        "alive in place of the cost, "
        "or do not end the episode on failure",
    )


def _stated(ledger: Ledger) -> bool:
    return any(g.reach_probability is not None or g.random_share for g in ledger.goals)


def _far_away(ledger: Ledger) -> float:
    """What a step costs through shaping that only ever charges, such as minus the distance: half of
    its range."""
    charges = [
        t
        for t in ledger.reward.terms
        if not t.goal and t.kind == "shaping" and t.high <= 0 and not t.potential_based
    ]
    return -sum((t.low + t.high) / 2 for t in charges)


def _costly(ledger: Ledger) -> float:
    """What a step costs through terms that depend on what the agent does, where nothing else tells
    it what to do."""
    costs = [
        t
        for t in ledger.reward.terms
        if not t.goal and t.kind == "per_step" and t.low < 0 <= -t.high
    ]
    return 0.0 if ledger.guided else -sum((t.low - t.high) / 2 for t in costs if t.low < t.high)


def _badly_done(ledger: Ledger) -> float:
    """What a step costs an agent that does the task badly, where the goal itself is a cost to bring
    to zero."""
    costs = [
        t for t in ledger.goals if t.kind in ("per_step", "shaping") and t.low < 0 and t.high <= 0
    ]
    return -sum(t.low + (t.random_share or 0.5) * (t.high - t.low) for t in costs)
