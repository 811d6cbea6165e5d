"""How much of a run's budget is spent, and where its schedules stand.

Schedules follow the share of the budget. When a budget changes on the way
(`--train.total-agent-steps` of a resume, a rollback), they go on from where they stood and reach
their ends with the new budget: a learning rate that has come down never jumps up again.
"""

from __future__ import annotations

from dataclasses import dataclass

from ludus.config import TrainConfig

BUDGETS = ("train.total_agent_steps", "train.total_seconds")


@dataclass(frozen=True)
class Anchor:
    """Where schedules stood when the budget changed last, and what had been spent then."""

    share: float = 0.0
    agent_steps: int = 0
    seconds: float = 0.0


def spent(
    budget: TrainConfig, agent_steps: int, seconds: float, since: Anchor | None = None
) -> float:
    """The share of the budget that is spent, of what there was to spend `since` then."""
    since = since or Anchor()
    shares = [0.0]
    if budget.total_agent_steps is not None:
        left = budget.total_agent_steps - since.agent_steps
        shares.append((agent_steps - since.agent_steps) / left if left > 0 else 1.0)
    if budget.total_seconds is not None:
        time_left = budget.total_seconds - since.seconds
        shares.append((seconds - since.seconds) / time_left if time_left > 0 else 1.0)
    return min(1.0, max(shares))


def schedule_share(budget: TrainConfig, agent_steps: int, seconds: float, anchor: Anchor) -> float:
    """Where schedules stand, from 0 to 1."""
    return anchor.share + (1.0 - anchor.share) * spent(budget, agent_steps, seconds, anchor)
