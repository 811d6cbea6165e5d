"""The goal is punished."""

from __future__ import annotations

from collections.abc import Iterator

from ludus.doctor.finding import Finding
from ludus.doctor.ledger import Ledger


def goal_punished(ledger: Ledger) -> Iterator[Finding]:
    """A sign error, or a price on the way: doing the task lowers the return, so the agent learns to
    avoid it. A cost that doing well brings to zero (the pendulum's) is no punishment: better still
    pays more."""
    for goal in ledger.goals:
        if goal.high < 0 and not ledger.is_cost_to_lower(goal):
            yield Finding(
                check="goal_punished",
                severity="critical",
                cause=f"doing the task costs: the goal '{goal.name}' has the wrong sign",
                evidence=f"'{goal.name}' pays {goal.low:g} to {goal.high:g} each time, at best "
                f"{goal.high * ledger.times(goal):g} in an episode"
                if goal.low < goal.high
                else f"'{goal.name}' pays {goal.high:g} each time, "
                f"{goal.high * ledger.times(goal):g} in an episode",
                confidence=0.9,
                fix=f"make '{goal.name}' positive; if it is a penalty, it is not the goal: set "
                "goal = false",
            )
            continue
        price = -sum(
            t.high * min(ledger.times(t), ledger.times(goal))
            for t in ledger.needs(goal)
            if t.high < 0
        )
        if price and price >= 0.5 * ledger.span(goal):
            needed = " + ".join(f"{t.name} {t.high:g}" for t in ledger.needs(goal) if t.high < 0)
            yield Finding(
                check="goal_punished",
                severity="critical" if price >= ledger.span(goal) else "warning",
                cause=f"what the goal '{goal.name}' requires costs more than half of what the goal "
                "pays",
                evidence=f"on the way to '{goal.name}' ({ledger.span(goal):g}) one pays {price:g} "
                f"({needed})",
                confidence=0.8,
                fix="lower the price on the way, or pay the goal more",
            )
