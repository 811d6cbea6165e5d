"""The clip cuts the goal."""

from __future__ import annotations

from collections.abc import Iterator

from ludus.doctor.finding import Finding
from ludus.doctor.ledger import Ledger, clipped
from ludus.doctor.mechanisms.side import HALF, TENTH
from ludus.doctor.rewards import Term

TENFOLD = 10.0
"""Goals of one kind that were ten times apart, the least of one above the most of the other, and
are now alike: the order is lost with the size."""


def clip_cuts_the_goal(ledger: Ledger) -> Iterator[Finding]:
    """Clipping rewards keeps gradients small, and makes everything above the clip worth the same:
    winning the match is then worth one hit. Where all that is paid are goals of one kind (bricks of
    different colours) the order survives and little is lost; where the one thing that matters is
    the large reward, it is gone."""
    limit = ledger.reward.episode.reward_clip
    if not limit:
        return
    received = Ledger(clipped(ledger.reward))
    for goal in ledger.goals:
        size = max(abs(goal.low), abs(goal.high))
        if size <= limit:
            continue
        kin = [t for t in ledger.goals if t is not goal and _far_apart(goal, t)]
        distorted = sorted(
            (
                t
                for t in ledger.reward.terms
                if t is not goal and _distorts(t, goal, limit) and _weight(received, t) >= TENTH
            ),
            key=lambda t: -_weight(received, t),
        )
        kept = limit / size
        heavy = any(_weight(received, t) >= HALF for t in distorted)
        severity = "critical" if heavy and kept < 0.5 else "warning" if distorted or kin else "info"
        beside = (
            f"; '{distorted[0].name}' keeps "
            f"{min(abs(distorted[0].high or distorted[0].low), limit):g}"
            if distorted
            else ""
        )
        yield Finding(
            check="clip_cuts_the_goal",
            severity=severity,
            cause=f"the clip at {limit:g} cuts the goal '{goal.name}' to {kept:.0%} of its worth"
            + (
                ""
                if distorted or kin
                else ", but little else is paid that it would have to outweigh"
            ),
            evidence=f"'{goal.name}' pays {size:g}, the learner receives {limit:g}{beside}",
            confidence=0.9 if distorted else 0.3,
            fix=f"divide rewards by {size / limit:g} instead of clipping, or raise the clip to "
            f"{size:g}",
        )


def _weight(received: Ledger, other: Term) -> float:
    """What the other term can add up to in an episode, beside the goals, both as the learner
    receives them."""
    cut = received.reward.term(other.name)
    goals = sum(received.span(g) for g in received.goals if g.name != other.name)
    return max(abs(cut.low), abs(cut.high)) * received.times(cut) / max(goals, 1e-12)


def _far_apart(goal: Term, other: Term) -> bool:
    most = max(abs(other.low), abs(other.high), 1e-12)
    return (
        max(abs(goal.low), abs(goal.high)) / most >= TENFOLD
        and min(abs(goal.low), abs(goal.high)) > most
    )


def _distorts(other: Term, goal: Term, limit: float) -> bool:
    """Is `other` worth more beside the goal after the clip than it was meant to be? Another goal
    event is worth doing anyway."""
    size = max(abs(other.low), abs(other.high))
    same_kind = other.goal and other.kind == goal.kind and other.ends_episode == goal.ends_episode
    return (
        size > 0
        and not same_kind
        and min(size, limit) / limit > 1.01 * size / max(abs(goal.low), abs(goal.high))
    )
