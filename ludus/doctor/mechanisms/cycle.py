"""Paid cycles."""

from __future__ import annotations

from collections.abc import Iterator

from ludus.doctor.finding import Finding
from ludus.doctor.ledger import BACK_AND_FORTH, Ledger
from ludus.doctor.mechanisms.side import HALF, TENTH
from ludus.doctor.rewards import Term


def paid_cycle(ledger: Ledger) -> Iterator[Finding]:
    """Gain, undo, gain again: a reward for approaching that is not taken back on leaving, a target
    that grows back, an item that can be dropped and picked up. Circling then earns without end, and
    the longer the episode the more. Shaping that is a difference of potentials cannot be circled:
    what a round gains it also loses."""
    for term in ledger.reward.terms:
        farmed = term.cycles or (term.respawns_after and not term.goal)
        if not farmed or term.high <= 0 or term.potential_based:
            continue
        if any(n.goal and not n.cycles for n in ledger.needs(term)):
            continue
        period = max(
            term.cycle_steps or (BACK_AND_FORTH if term.cycles else 1), term.respawns_after
        )
        net = term.high - (ledger.time_cost * period if not term.goal else 0.0)
        if net <= 0:
            continue  # a round costs more time than it pays
        yield from _judge(ledger, term, period, net * ledger.times(term))


def _judge(ledger: Ledger, term: Term, period: int, farmed: float) -> Iterator[Finding]:
    others = ledger.success - (ledger.span(term) if term.goal else 0.0)
    if ledger.times(term) <= 1:
        return
    if term.goal and not term.cycles:
        return
    share = farmed / others if others > 0 else float("inf")
    if share < TENTH:
        return
    of_goal = f"{share:.0%} of" if others > 0 else "with nothing beside it:"
    yield Finding(
        check="paid_cycle",
        severity="critical" if share >= HALF else "warning",
        cause=f"'{term.name}' can be earned again and again by going round, so circling pays and "
        "the task does not have to be done",
        evidence=f"a round of {period} steps pays {term.high:g}: {ledger.times(term):g} rounds in "
        f"{ledger.steps} steps earn {farmed:g}"
        f"{' after the cost of time' if ledger.time_cost else ''}, {of_goal} {ledger.success_text}",
        confidence=0.9 if term.cycles else 0.75,
        fix=f"pay '{term.name}' once per episode, take it back on undoing, or pay progress as a "
        "difference of potentials "
        "(gamma * after - before)",
    )
