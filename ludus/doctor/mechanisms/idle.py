"""Doing nothing pays."""

from __future__ import annotations

from collections.abc import Iterator

from ludus.doctor.finding import Finding
from ludus.doctor.ledger import Ledger
from ludus.doctor.mechanisms.side import HALF, TENTH
from ludus.doctor.rewards import Term


def doing_nothing_pays(ledger: Ledger) -> Iterator[Finding]:
    """A bonus for being alive, for staying on the road, for not being seen: an agent that stands
    still collects it from the first episode on, and every attempt at the goal puts it at risk.
    Harmless where standing still soon fails (a pole falls), which is what failure_probability is
    for."""
    passive = [t for t in ledger.reward.terms if t.passive and t.high > 0 and not t.potential_based]
    if not passive:
        return
    income = sum(_idle_income(ledger, t) for t in passive) - ledger.failure_penalty
    while_succeeding = sum(
        t.high * ledger.time_to_goal
        for t in passive
        if not t.goal and t.kind in ("per_step", "shaping")
    )
    whole = ledger.success + (while_succeeding if ledger.goal_is_dense else 0.0)
    share = income / whole if whole > 0 else float("inf")
    # beside a goal paid every step a bonus is an offset that success shares
    warn = HALF if ledger.goal_is_dense else TENTH
    if income <= 0 or share < warn:
        return
    parts = " + ".join(f"{t.name} {t.high:g} x {_idle_times(ledger, t):.3g}" for t in passive)
    less = f" less {ledger.failure_penalty:g} for failing" if ledger.failure_penalty else ""
    yield Finding(
        check="doing_nothing_pays",
        severity="critical" if share >= HALF else "warning",
        cause=f"standing still earns '{passive[0].name}', so there is little or nothing to gain by "
        "doing the task",
        evidence=f"doing nothing earns {income:g} ({parts}{less}); {ledger.success_text}",
        confidence=0.85 if share >= HALF else 0.5,
        fix=f"lower '{passive[0].name}' until an idle episode earns less than a tenth of the goal, "
        "or pay it only while the task advances",
    )


def _idle_times(ledger: Ledger, term: Term) -> float:
    if term.kind in ("per_step", "shaping"):
        return min(ledger.times(term), ledger.idle_steps)
    return ledger.times(term) * ledger.idle_steps / ledger.steps if ledger.times(term) > 1 else 1.0


def _idle_income(ledger: Ledger, term: Term) -> float:
    return term.high * _idle_times(ledger, term)
