"""Does a curriculum move on?"""

from __future__ import annotations

from collections.abc import Iterator

from ludus.doctor.checks import check
from ludus.doctor.finding import Finding
from ludus.doctor.log import SECONDS, STEPS, Log

MOST_OF_THE_BUDGET = 0.5


@check(family="curriculum", figure="curriculum/stage")
def stage_not_passed(log: Log) -> Iterator[Finding]:
    """A stage of the curriculum has taken half of the budget, and what ends it is not reached.
    Nothing is said where the stage ends after a number of steps anyway.

    The aim is out of reach of the policy, of the opponents it trains against or of the episodes it
    is measured over; or the policy does not learn. The later stages, and what the run is for, are
    never played.

    Lower what the stage asks for, make it easier, or limit it with most_agent_steps, so that the
    run moves on in any case.
    """
    stage, stages, spent = (
        log.get(f"curriculum/{name}") for name in ("stage", "stages", "stage_agent_steps")
    )
    steps = log.get(STEPS)
    if (
        stage is None
        or stages is None
        or spent is None
        or steps is None
        or stage.values[-1] >= stages.values[-1] - 1
    ):
        return
    number, count = int(stage.values[-1]), int(stages.values[-1])
    settings = log.config.get("curriculum.stages") or []
    if number < len(settings) and settings[number].get("most_agent_steps") is not None:
        return
    share = float(spent.values[-1]) / max(1.0, float(steps.values[-1])) * _budget_spent(log)
    if share < MOST_OF_THE_BUDGET:
        return
    bound, needed = log.get("curriculum/bound"), log.get("curriculum/needed")
    where = "nothing was measured yet"
    if bound is not None and needed is not None:
        where = f"its bound is {bound.values[-1]:.3g}, and {needed.values[-1]:.3g} is needed"
    yield Finding(
        check="stage_not_passed",
        severity="warning",
        cause=f"stage {number + 1} of {count} of the curriculum has taken {share:.0%} of the "
        "budget and is not passed",
        evidence=where,
        confidence=0.8,
        fix=f"lower what stage {number + 1} asks for, make it easier, or give it most_agent_steps "
        "in the recipe",
        first_step=int(steps.values[-1] - spent.values[-1]),
        last_step=spent.last_step,
    )


def _budget_spent(log: Log) -> float:
    """The share of the run's budget; 0 where no budget is known."""
    shares = [0.0]
    for curve, budget in ((STEPS, "train.total_agent_steps"), (SECONDS, "train.total_seconds")):
        found, total = log.get(curve), log.config.get(budget)
        if found is not None and total:
            shares.append(float(found.values[-1]) / float(total))
    return min(1.0, max(shares))
