"""Shaping outweighs the goal; a proxy pays without the goal."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ludus.doctor.finding import Finding
from ludus.doctor.ledger import Ledger
from ludus.doctor.rewards import Term

HALF = 0.5
"""A safe half beats a risky whole: an agent that succeeds less than every second time is better off
without the goal."""
TENTH = 0.1
"""Below a tenth, shaping is lost in the goal's own noise."""
BESIDE_DENSE = 0.4
"""Beside a goal that is paid every step, stages on the way (reach, grasp, lift) may pay a good part
of it."""
ONCE = 0.3
"""What can be had only once distracts less than a stream does."""


def shaping_or_proxy_outweighs(ledger: Ledger) -> Iterator[Finding]:
    """Shaping is meant to lead to the goal. If it adds up to as much as the goal itself, leading is
    all it does: the seeker watches and does not catch, the boat collects targets and does not
    finish. Compare the best episode that avoids the goal with one that reaches it. A proxy is the
    same with single events in place of a stream, or with no goal paid at all."""
    if not ledger.goals or ledger.success <= 0:
        yield from _nothing_for_the_goal(ledger)
        return
    failing = ledger.side_income - ledger.failure_penalty
    # a goal paid every step comes on top of what is earned beside it; any other takes its place
    whole = ledger.success + (ledger.side_income if ledger.goal_is_dense else 0.0)
    share = failing / whole
    streams = sum(ledger.most(t) for t in ledger.side if not _once(ledger, t))
    warn = BESIDE_DENSE if ledger.goal_is_dense else TENTH
    if share >= HALF:
        proxy = ledger.side[0].kind in ("event", "terminal")
        yield _finding(ledger, "critical", share, proxy, confidence=0.9 if share >= 1 else 0.75)
        # then it is both: shaping that outweighs, and a proxy that does without the goal
        if share >= 1:
            yield _finding(ledger, "critical", share, not proxy, confidence=0.6)
    elif streams / whole >= warn or ledger.side_income / whole >= max(ONCE, warn):
        proxy = ledger.side[0].kind in ("event", "terminal")
        yield _finding(ledger, "warning", ledger.side_income / whole, proxy, confidence=0.5)
    elif sum(ledger.most(t) for t in ledger.stepping_stones) > 2 * ledger.success:
        yield _stones(ledger)


def _once(ledger: Ledger, term: Term) -> bool:
    return (
        term.kind in ("event", "terminal")
        and not term.cycles
        and not term.respawns_after
        and ledger.times(term) <= 2
    )


def _finding(
    ledger: Ledger, severity: str, share: float, proxy: bool, confidence: float
) -> Finding:
    largest = ledger.side[0]
    parts = " + ".join(ledger.show(t) for t in ledger.side)
    less = f", less {ledger.failure_penalty:g} for failing" if ledger.failure_penalty else ""
    return Finding(
        check="proxy_without_goal" if proxy else "shaping_outweighs_the_goal",
        severity=severity,
        cause=f"{'the proxy' if proxy else 'shaping'} '{largest.name}' pays so much without the "
        "goal that the goal is not worth going for"
        if severity == "critical"
        else f"'{largest.name}' pays a good part of what the goal pays, so it can be preferred to "
        "it",
        evidence=f"without the goal an episode can earn {ledger.side_income:g} ({parts}{less}); "
        f"{ledger.success_text}: {share:.0%} of it",
        confidence=confidence,
        fix=f"lower '{largest.name}' by "
        f"{math.ceil(max(2.0, ledger.side_income / ledger.success / TENTH))}x so that side income "
        "stays below "
        "a tenth of the goal, pay it as a difference of potentials, or pay it only together with "
        "the goal",
    )


def _nothing_for_the_goal(ledger: Ledger) -> Iterator[Finding]:
    if any(t.goal and t.high < 0 and not ledger.is_cost_to_lower(t) for t in ledger.reward.terms):
        return  # goal_punished says it better
    if ledger.goals and ledger.failure_penalty > ledger.side_income / HALF:
        return  # the goal is to avoid what is punished, and that is worth more than all else
    if not ledger.goals and not ledger.side and (ledger.failure_penalty or _avoidable(ledger)):
        return  # only failures are paid: avoiding them is the goal
    what = "no term is marked as the goal" if not ledger.goals else "reaching the goal pays nothing"
    parts = ", ".join(ledger.show(t) for t in ledger.side) or "nothing else pays either"
    yield Finding(
        check="proxy_without_goal",
        severity="critical",
        cause=f"{what}: the agent will do what is paid, whether or not that is the task",
        evidence=f"{ledger.success_text}; without it: {parts}",
        confidence=0.8,
        fix="pay the goal itself, at least twice what all else in an episode can add up to, and "
        "mark it with goal = true",
    )


def _avoidable(ledger: Ledger) -> bool:
    return any(t.low < 0 and t not in ledger.time_costs for t in ledger.reward.terms)


def _stones(ledger: Ledger) -> Finding:
    paid = sum(ledger.most(t) for t in ledger.stepping_stones)
    parts = " + ".join(ledger.show(t) for t in ledger.stepping_stones)
    return Finding(
        check="shaping_outweighs_the_goal",
        severity="warning",
        cause="the steps on the way to the goal pay more than twice what the goal pays",
        evidence=f"stepping stones {paid:g} ({parts}); {ledger.success_text}",
        confidence=0.4,
        fix="let the goal pay at least as much as all steps towards it together",
    )
