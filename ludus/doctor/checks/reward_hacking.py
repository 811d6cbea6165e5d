"""Is the return earned by doing the task?"""

from __future__ import annotations

from collections.abc import Iterator

from ludus.doctor.finding import Finding
from ludus.doctor.log import Curve, Log
from ludus.doctor.progress import progress
from ludus.doctor.statistics import certainty, head, noise, tail

FELL = -3.0
LEANS = 1.0
"""Standard errors. A goal that leans upwards may be on its way: hide-and-seek's catches rise later than its return, and noisily."""


def return_without_goal(log: Log) -> Iterator[Finding]:
    """The return rises while the measure of success (catches, wins, finishes) does not, or falls.

    The agent has found a way to earn without doing the task: shaping that outweighs the goal, a cycle that pays, a bonus for
    being there. The curve that everyone looks at goes up, so it is found last.

    Audit the reward (`ludus doctor check`): it shows what can be earned without the goal. Lower that term, or make it a
    difference of potentials.
    """
    for role in log.roles():
        returns = progress(log.get(f"episode/{role}/return"))
        if not returns.learned or returns.lost > 0.5:
            continue
        goals = [c for c in log.starting(f"goal/{role}/") if len(c) >= 12]
        judged = {c.name: (progress(c), certainty(head(c.values), tail(c.values, 0.2), noise(c.values))) for c in goals}
        if not judged or any((p.learned and p.lost < 0.5) or sure >= LEANS for p, sure in judged.values()):
            continue
        name, (goal, sure) = min(judged.items(), key=lambda pair: pair[1][1])
        if 0.9 < min(goal.start, goal.end) <= goal.best <= 1.0:
            continue  # a share that is full already cannot rise
        fell = sure < FELL and goal.end < goal.start
        term = _risen_term(log, role)
        yield Finding(
            check="return_without_goal",
            severity="critical",
            cause=f"the return of {role} rises but '{name.split('/', 2)[2]}' does not: the reward is earned without the task"
            + (f", through '{term}'" if term else ""),
            evidence=f"return {returns.start:.4g} to {returns.end:.4g}; {name} {goal.start:.3g} to {goal.end:.3g}"
            + (" (falling)" if fell else ""),
            confidence=0.8 if fell else 0.65,
            fix="audit the reward (ludus doctor check) and lower what pays without the goal" + (f": '{term}'" if term else ""),
            first_step=log.curves[name].first_step,
            last_step=log.curves[name].last_step,
        )


def _risen_term(log: Log, role: str) -> str:
    """The reward term that has risen most surely, if terms are logged."""

    def rise(curve: Curve) -> float:
        return certainty(head(curve.values), tail(curve.values, 0.2), noise(curve.values))

    risen = [(rise(c), c.name.split("/term/")[1]) for c in log.starting(f"episode/{role}/term/") if len(c) >= 12]
    return max(risen)[1] if risen and max(risen)[0] > 3 else ""


CHECKS = (return_without_goal,)
