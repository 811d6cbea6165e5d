"""Penalties outweigh the goal."""

from __future__ import annotations

from collections.abc import Iterator

from ludus.doctor.finding import Finding
from ludus.doctor.ledger import Ledger
from ludus.doctor.mechanisms.dying import SELDOM
from ludus.doctor.rewards import Term

# How many times the goal's worth each kind of penalty may cost before it decides what is learned.
EFFORT = 1.0  # paid by everyone who tries: at 1, success itself earns nothing
MISTAKES = 2.0  # can be avoided with skill
FATAL = 10.0  # once per episode, and only by failing
FATAL_GUIDED = 30.0  # something else leads past it
WARN = 0.75  # a loss that costs what a win pays is a fair game: it counts as half
SLOW = 5.0  # costs of time are paid anyway: they only hide the goal


def penalties_outweigh_the_goal(ledger: Ledger) -> Iterator[Finding]:
    """Trying costs more than succeeding pays: energy, collisions, falls. An agent that keeps still
    avoids them all, and does. A cost of time is different: it is paid whatever one does, and
    reaching the goal ends it."""
    worth = ledger.success + ledger.failure_penalty
    if worth <= 0:
        return
    effort = {
        t.name: _effort(ledger, t) * ledger.time_to_goal
        for t in ledger.reward.terms
        if _effort(ledger, t) > 0
    }
    fixed = {t.name: -t.high * ledger.steps for t in ledger.time_costs if not t.passive}
    if ledger.goal_is_dense:
        effort |= fixed
    mistakes = {
        t.name: _mistakes(ledger, t) for t in ledger.reward.terms if _mistakes(ledger, t) > 0
    }
    if not ledger.goal_ends and not ledger.goal_is_dense:
        mistakes |= fixed  # succeeding does not end them
    fatal = {
        t.name: -t.high * _chance_to_fail(ledger)
        for t in ledger.reward.terms
        if t.ends_episode and t.high < 0 and not t.goal
    }
    bearable = FATAL_GUIDED if ledger.guided else FATAL
    total = (
        sum(effort.values()) / EFFORT
        + sum(mistakes.values()) / MISTAKES
        + sum(fatal.values()) / bearable
    )
    if total >= WARN * worth:
        yield _finding(
            ledger, effort | mistakes | fatal, "critical" if total >= worth else "warning"
        )
    elif (
        ledger.goal_ends
        and 0
        < sum(t.high for t in ledger.goals if t.high > 0) * SLOW
        < ledger.time_cost * ledger.time_to_goal
    ):
        yield _finding(
            ledger, {t.name: -t.high * ledger.time_to_goal for t in ledger.time_costs}, "warning"
        )


def _effort(ledger: Ledger, term: Term) -> float:
    """What acting costs a step, for terms that are only ever a cost: random play's share, or the
    middle where none is said."""
    only_a_cost = not term.goal and term.kind == "per_step" and term.high <= 0
    if not only_a_cost or term in ledger.time_costs or _bad_place(ledger, term):
        return 0.0
    return -(term.high + (term.random_share or 0.5) * (term.low - term.high))


def _mistakes(ledger: Ledger, term: Term) -> float:
    """Penalties for events. Where time presses, keeping still is no way out, and mistakes are
    learnt to be avoided."""
    if _bad_place(ledger, term):
        return -term.low * term.random_share * ledger.time_to_goal
    if term.goal or term.kind != "event" or term.ends_episode or term.high >= 0 or ledger.time_cost:
        return 0.0
    # a goal that ends the episode ends them too, unless next to nobody gets there
    seldom = (
        not ledger.guided and max((ledger.chance(g) for g in ledger.goals), default=0.0) < SELDOM
    )
    lived = max(1.0, ledger.times(term) * (1.0 if seldom else ledger.time_to_goal / ledger.steps))
    return -term.high * lived * (term.random_share or 1.0)


def _bad_place(ledger: Ledger, term: Term) -> bool:
    """A cost of some places (a puddle) that random play meets now and then, while time presses: one
    goes round it."""
    now_and_then = (
        term.kind == "per_step" and not term.goal and term.high == 0 and term.random_share > 0
    )
    return now_and_then and ledger.time_cost > 0


def _chance_to_fail(ledger: Ledger) -> float:
    p = ledger.reward.episode.failure_probability
    return 1 - (1 - p) ** ledger.steps if p else 1.0


def _finding(ledger: Ledger, costs: dict[str, float], severity: str) -> Finding:
    parts = ", ".join(
        f"{name} {cost:g}" for name, cost in sorted(costs.items(), key=lambda pair: -pair[1])
    )
    return Finding(
        check="penalties_outweigh_the_goal",
        severity=severity,
        cause="trying costs more than succeeding pays, so the agent learns to keep still or to "
        "give up"
        if severity == "critical"
        else "penalties come close to what succeeding pays: early attempts are punished more than "
        "they are paid",
        evidence=f"penalties of an episode: {parts}; {ledger.success_text}",
        confidence=0.8 if severity == "critical" else 0.45,
        fix="lower the penalties until those of a usual attempt stay below half of what the goal "
        "pays, or raise the goal",
    )
