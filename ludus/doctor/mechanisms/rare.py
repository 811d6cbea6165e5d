"""The goal is unreachable or too rare."""

from __future__ import annotations

from collections.abc import Iterator

from ludus.doctor.finding import Finding
from ludus.doctor.ledger import Ledger
from ludus.doctor.rewards import Term

HOPELESS = 1e-3
"""Fewer than one success in a thousand random episodes: a run of usual length sees a handful,
drowned in noise."""
RARE = 1e-2
"""One in a hundred is learnable with patience and luck."""
COUNTS = 0.05
"""A goal term below a twentieth of the goal's pay does not teach the rest."""


def goal_unreachable_or_too_rare(ledger: Ledger) -> Iterator[Finding]:
    """Learning starts from what random play stumbles on. If it never meets the goal, and nothing on
    the way tells better from worse, every episode looks the same and there is nothing to learn
    from. A goal can also be out of reach by its own conditions: it requires something that cannot
    be had, that ends the episode, or, in a circle, itself."""
    blocked = [(g, reason) for g in ledger.goals if (reason := _blocked(ledger, g))]
    if blocked and len(blocked) == len(ledger.goals):
        goal, reason = blocked[0]
        yield Finding(
            check="goal_unreachable_or_too_rare",
            severity="critical",
            cause=f"the goal '{goal.name}' can never be earned",
            evidence=reason,
            confidence=0.9,
            fix=f"correct what '{goal.name}' requires",
        )
        return
    paid = [
        g
        for g in ledger.goals
        if ledger.span(g) >= COUNTS * sum(ledger.span(t) for t in ledger.goals)
        and not _blocked(ledger, g)
    ]
    if not paid or ledger.guided:
        return
    goal, chance = max(((g, _next_chance(ledger, g)) for g in paid), key=lambda pair: pair[1])
    if chance >= RARE:
        return
    episodes = f"once in {1 / chance:,.0f} episodes" if chance > 0 else "never"
    yield Finding(
        check="goal_unreachable_or_too_rare",
        severity="critical" if chance < HOPELESS else "warning",
        cause=f"random play hardly ever meets the goal '{goal.name}' and nothing on the way says "
        "better from worse",
        evidence=f"random play meets '{goal.name}' {episodes} (chance {chance:g} in an episode of "
        f"{ledger.steps} steps); no shaping leads there",
        confidence=0.85 if chance < HOPELESS else 0.5,
        fix="start episodes near the goal and move the start back (curriculum), pay stepping "
        "stones that it requires, or add "
        "potential-based shaping towards it",
    )


def _blocked(ledger: Ledger, goal: Term) -> str:
    chain = ledger.needs(goal)
    if any(t.name == goal.name for t in chain):
        return (
            f"'{goal.name}' requires itself: {' -> '.join([goal.name, *(t.name for t in chain)])}"
        )
    for t in chain:
        if t.ends_episode and not t.goal:
            return f"'{goal.name}' requires '{t.name}', which ends the episode"
        if t.cycle_steps > ledger.steps:
            return (
                f"'{goal.name}' requires '{t.name}', which takes {t.cycle_steps} steps; an "
                f"episode has {ledger.steps}"
            )
    return ""


def _next_chance(ledger: Ledger, goal: Term) -> float:
    """The smallest chance on the way: from one paid step to the next, each learnt before the one
    after it."""
    way = [goal, *ledger.needs(goal)]
    paid = [t for t in way if t.high > 0 or t is goal]
    chances = [ledger.chance(t) for t in paid]
    steps = [
        c / before if before > 0 else 0.0
        for c, before in zip(chances, [*chances[1:], 1.0], strict=True)
    ]
    return min(steps)
