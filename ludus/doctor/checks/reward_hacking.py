"""Is the return earned by doing the task?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ludus.doctor.checks import Early, check
from ludus.doctor.finding import Finding
from ludus.doctor.log import Curve, Log
from ludus.doctor.progress import FEWEST_ROWS, Progress, progress
from ludus.doctor.statistics import certainty, head, noise, tail

FELL = -3.0
LEANS = 1.0
"""Standard errors. A goal that leans upwards may be on its way: hide-and-seek's catches rise later
than its return, and noisily."""
APART = 2.0
"""Standard errors, of the difference between two rises. Two noisy curves of which one rises a
little more are no contradiction."""
HALF = 0.5
"""Share of a goal, or of what the return had gained."""
HARDLY = 0.2
"""Share of a return that may be lost with the goal: what is left was not paid for it."""
FEWEST_EVALUATIONS = 3


@check(family="reward_hacking", figure="goal/ROLE/GOAL")
def return_without_goal(log: Log) -> Iterator[Finding]:
    """The return rises while the measure of success (catches, wins, finishes) does not, or holds
    while that is lost by half or more.

    The agent has found a way to earn without doing the task: shaping that outweighs the goal, a
    cycle that pays, a bonus for being there. The curve that everyone looks at goes up, so it is
    found last. Where opponents learn too, a goal may well be met less and less often, but then a
    reward that is paid for it falls with it. Of a game whose values change on a schedule, only what
    came after the last change counts.

    Audit the reward (`ludus doctor check`): it shows what can be earned without the goal. Lower
    that term, or make it a difference of potentials.
    """
    for role in log.roles():
        curve = log.get(f"episode/{role}/return")
        goals = [
            c
            for c in log.starting(f"goal/{role}/")
            if c.name.split("/", 2)[2] not in log.better_low
        ]
        if curve is None:
            continue
        curve, *goals = (log.after_first_episodes(log.in_this_game(c)) for c in (curve, *goals))
        told = _rises_without(curve, goals) or _holds_without(curve, goals)
        if told is None:
            continue
        name, verb = told.name.split("/", 2)[2], "does not" if told.rises else "falls"
        term = _risen_term(log, role)
        yield Finding(
            check="return_without_goal",
            severity="critical" if told.rises else "warning",
            cause=f"the return of {role} {'rises but' if told.rises else 'holds while'} '{name}' "
            f"{verb}: the reward is earned without the task"
            + (f", through '{term}'" if term else ""),
            evidence=f"return {told.returns.start:.4g} to {told.returns.end:.4g}; {told.name} "
            f"{told.goal.start:.3g} to {told.goal.end:.3g}" + (" (falling)" if told.fell else ""),
            confidence=0.8 if told.fell else 0.65,
            fix="audit the reward (`ludus doctor check RECIPE`) and lower what pays without the "
            "goal" + (f": '{term}'" if term else ""),
            first_step=log.curves[told.name].first_step,
            last_step=log.curves[told.name].last_step,
        )


@dataclass(frozen=True)
class _Without:
    """A return and the goal that does not go with it."""

    returns: Progress
    name: str
    goal: Progress
    fell: bool
    rises: bool


def _rises_without(curve: Curve, goals: list[Curve]) -> _Without | None:
    """The return rises surely, and no goal does, or leans that way."""
    if len(curve) < FEWEST_ROWS:
        return None
    returns, rise = progress(curve), _rise(curve)
    judged = {c.name: (progress(c), _rise(c)) for c in goals if len(c) >= FEWEST_ROWS}
    if not judged or not returns.learned or returns.lost > HALF:
        return None
    if any((p.learned and p.lost < HALF) or sure >= LEANS for p, sure in judged.values()):
        return None
    if rise < LEANS or rise - max(sure for _, sure in judged.values()) < APART * math.sqrt(2):
        return None
    name, (goal, sure) = min(judged.items(), key=lambda pair: pair[1][1])
    if 0.9 < min(goal.start, goal.end) <= goal.best <= 1.0:
        return None  # a share that is full already cannot rise
    return _Without(returns, name, goal, sure < FELL and goal.end < goal.start, rises=True)


def _holds_without(curve: Curve, goals: list[Curve]) -> _Without | None:
    """Every goal falls surely, by half or more, and the return does not lean that way, or hardly
    loses anything."""
    if not goals or any(len(c) < FEWEST_ROWS for c in (curve, *goals)):
        return None
    returns, rise = progress(curve), _rise(curve)
    judged = {c.name: (progress(c), _rise(c)) for c in goals}
    holds = rise >= 0 or returns.end >= (1 - HARDLY) * returns.start > 0
    if not holds or not all(sure < FELL and p.end <= HALF * p.start for p, sure in judged.values()):
        return None
    name, (goal, _) = min(judged.items(), key=lambda pair: pair[1][1])
    return _Without(returns, name, goal, fell=True, rises=False)


def _rise(curve: Curve) -> float:
    """Standard errors by which the end lies above the start."""
    return certainty(head(curve.values), tail(curve.values, 0.2), noise(curve.values))


def _risen_term(log: Log, role: str) -> str:
    """The reward term that has risen most surely, if terms are logged."""
    risen = [
        (_rise(c), c.name.split("/term/")[1])
        for c in log.starting(f"episode/{role}/term/")
        if len(c) >= FEWEST_ROWS
    ]
    return max(risen)[1] if risen and max(risen)[0] > 3 else ""


@check(family="reward_hacking", figure="eval/OPPONENT/GOAL", early=Early(noted_until=0.5))
def goal_not_reached(log: Log) -> Iterator[Finding]:
    """The measure by which the best checkpoint is chosen is 0 in every evaluation: the goal was not
    reached even once. Nothing is said while training plays an easier game, on its way to the one
    that is evaluated.

    The return may well rise all the same, by what is paid on the way; what training is for has not
    begun. And where all evaluations are alike, the last checkpoint is called the best, however far
    an earlier one got.

    See how far play gets (the other goal metrics), and whether other findings name a cause. Without
    one: train longer, start nearer to the goal, or choose checkpoints by a measure that is above 0
    already.
    """
    name = str(log.config.get("checkpoint.best_metric") or "")
    curve = log.get(name)
    if (
        curve is None
        or len(curve) < FEWEST_EVALUATIONS
        or name.rsplit("/", 1)[-1] in log.better_low
        or curve.values.any()
    ):
        return
    if not log.evaluated_as_trained():
        return
    yield Finding(
        check="goal_not_reached",
        severity="warning",
        cause=f"the goal was not reached in any evaluation: '{name.removeprefix('eval/')}' is 0 in "
        "all of them",
        evidence=f"{len(curve)} evaluations, the last at step {curve.last_step:,}"
        + _on_the_way(log, name),
        confidence=0.6,
        fix="see the other findings for the cause; without one: train longer, or start nearer to "
        "the goal",
        first_step=curve.first_step,
        last_step=curve.last_step,
    )


def _on_the_way(log: Log, name: str) -> str:
    """How the return went in the same evaluations."""
    returns = log.get(f"{name.rsplit('/', 1)[0]}/return")
    return (
        f"; return {returns.values[0]:.3g} in the first, {returns.values[-1]:.3g} in the last"
        if returns is not None
        else ""
    )
