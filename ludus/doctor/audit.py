"""The reward audit: can this reward lead to the goal? One small file per mechanism by which it
cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ludus.doctor.finding import Finding, worst_first
from ludus.doctor.ledger import Ledger, clipped
from ludus.doctor.mechanisms import (
    clip,
    credit,
    cycle,
    dying,
    idle,
    penalties,
    punished,
    rare,
    side,
)
from ludus.doctor.rewards import Reward

# Causes before their symptoms: among equally severe findings the first is the one to mend.
MECHANISMS: tuple[Callable[[Ledger], Iterable[Finding]], ...] = (
    punished.goal_punished,
    cycle.paid_cycle,
    idle.doing_nothing_pays,
    side.shaping_or_proxy_outweighs,
    dying.dying_early_pays,
    penalties.penalties_outweigh_the_goal,
    rare.goal_unreachable_or_too_rare,
    credit.credit_too_late_for_the_discount,
)


def audit(reward: Reward) -> list[Finding]:
    """Everything that is wrong with a reward, worst first. The mechanisms look at what the learner
    receives: clipped."""
    received = Ledger(clipped(reward))
    found = list(clip.clip_cuts_the_goal(Ledger(reward)))
    for mechanism in MECHANISMS:
        found += mechanism(received)
    return worst_first(found)
