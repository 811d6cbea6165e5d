"""Is enough tried?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ludus.doctor.checks import SECOND_HALF, check
from ludus.doctor.checks.entropy import more_entropy
from ludus.doctor.finding import Finding
from ludus.doctor.log import Curve, Log
from ludus.doctor.options import flag, lacks, overrides
from ludus.doctor.progress import of_role
from ludus.doctor.statistics import tail

NEVER = 1e-4
SATURATED = 0.9
SPENT_EARLY = 0.05
"""Share of the run. A tenth is a usual choice; half of that is hardly one."""
MOSTLY_RANDOM = 0.5
"""Share of random actions above which a return hardly shows the policy."""
FEWEST = 12
"""Rows."""
TINY_STD = 0.02
"""Of actions in [-1, 1]: a hundredth of the range tells no action from its neighbour."""


@check(family="exploration", figure="learner/ROLE/epsilon")
def only_exploring(log: Log) -> Iterator[Finding]:
    """Most actions are random to the end of the log, so the return is that of random play, whatever
    was learnt.

    The schedule is made for a much longer run, counts in another unit, or is never advanced.

    Let epsilon fall within the first third of the run, down to a few percent; or evaluate without
    random actions.
    """
    for role in log.roles():
        curve = log.of(role, "epsilon")
        if curve is None or len(curve) < 12 or not of_role(log, role).flat:
            continue
        first, last = float(curve.values[0]), float(np.median(tail(curve.values, 0.2)))
        if last < MOSTLY_RANDOM:
            continue
        yield Finding(
            check="only_exploring",
            severity="critical" if last > 0.95 * first else "warning",
            cause=f"{role} still acts at random: its return says nothing about what it has learnt",
            evidence=f"epsilon {first:.3g} at the start, {last:.3g} at the end of "
            f"{curve.last_step:,} steps",
            confidence=0.85,
            fix=f"let epsilon fall to 0.05 within {curve.last_step // 3:,} steps, or judge by "
            "evaluations without random actions",
            overrides=overrides(log, {"epsilon_over": str(max(1, curve.last_step // 3))}),
            first_step=curve.first_step,
            last_step=curve.last_step,
        )


@check(family="exploration", figure="learner/ROLE/epsilon", early=SECOND_HALF)
def exploration_spent(log: Log) -> Iterator[Finding]:
    """Random actions ended early in the run, and the return has not risen since.

    A schedule counted in episodes while episodes are short, or made for a longer run: the budget is
    gone before anything was found.

    Count the schedule in steps, over a tenth of the run at the least; keep a remainder of a few
    percent.
    """
    for role in log.roles():
        curve = log.of(role, "epsilon")
        if curve is None or len(curve) < 5 or not of_role(log, role).failing:
            continue
        low, high = float(curve.values.min()), float(curve.values.max())
        at_low = np.flatnonzero(curve.values <= low + 0.05 * (high - low))
        since = int(curve.steps[at_low[0]])
        if since > SPENT_EARLY * curve.last_step or low > 0.2:
            continue
        yield Finding(
            check="exploration_spent",
            severity="critical",
            cause=f"{role} stopped exploring before it had found anything",
            evidence=f"epsilon is at {low:.3g} since step {since:,} of {curve.last_step:,}, and "
            "the return has not risen or not stayed",
            confidence=0.75,
            fix=f"let epsilon fall over at least {curve.last_step // 10:,} steps, and end at 0.05",
            overrides=overrides(log, {"epsilon_over": str(max(1, curve.last_step // 3))}),
            first_step=since,
            last_step=curve.last_step,
        )


@check(family="exploration", figure="learner/ROLE/std")
def noise_collapsed(log: Log) -> Iterator[Finding]:
    """The deviation of a continuous policy is next to nothing, and the return has not risen.

    Like a collapsed entropy: one action is repeated, so no other can be found better.

    Lower the learning rate, add a little entropy, bound the deviation from below.
    """
    for role in log.roles():
        curve = log.of(role, "std")
        if curve is None or len(curve) < FEWEST or not of_role(log, role).failing:
            continue
        late = float(np.median(tail(curve.values)))
        if 0 <= late < TINY_STD:
            yield Finding(
                check="noise_collapsed",
                severity="critical",
                cause=f"the noise of {role}'s actions has collapsed before it was any good",
                evidence=f"deviation {late:.3g} over the last half",
                confidence=0.75,
                fix=f"lower the learning rate to a tenth; {more_entropy(log, '0.003')}; bound the "
                "deviation from below",
                overrides=overrides(log, {"learning_rate": "*0.1", "entropy": "0.003"}),
                first_step=curve.first_step,
                last_step=curve.last_step,
            )


@check(family="exploration", figure="action/ROLE/ACTION/saturated")
def actions_saturated(log: Log) -> Iterator[Finding]:
    """Nearly all values of a continuous action lie at its limits, and the return has not risen.

    The policy's mean or deviation has outgrown the range: everything is cut to the same two values,
    and the gradient with it.

    Lower the entropy coefficient and the initial deviation, squash actions, or penalise what
    exceeds the range.
    """
    for role in log.roles():
        for curve in log.starting(f"action/{role}/"):
            if not curve.name.endswith("/saturated") or len(curve) < 5:
                continue
            late = float(np.median(tail(curve.values)))
            if late > SATURATED:
                bad = of_role(log, role).failing
                yield Finding(
                    check="actions_saturated",
                    severity="critical" if bad else "warning",
                    cause=f"'{curve.name.split('/')[2]}' of {role} is at its limits nearly always",
                    evidence=f"{late:.0%} of its values lie beyond 0.99 over the last half",
                    confidence=0.7 if bad else 0.4,
                    fix=("no entropy bonus" if lacks(log, "entropy") else flag(log, "entropy", "0"))
                    + f" and {flag(log, 'policy.initial_log_std', '-1')}",
                    overrides=overrides(log, {"entropy": "0"}),
                    first_step=curve.first_step,
                    last_step=curve.last_step,
                )


@check(family="exploration", figure="action/ROLE/ACTION/OPTION")
def action_never_tried(log: Log) -> Iterator[Finding]:
    """Options of a choice are hardly ever taken, from the start. Where the mask did not allow them,
    this is only noted.

    A mask that never allows it, an initial bias, or a wrong index in the action's table: what is
    never tried is never learnt.

    Count how often the mask allows it; see whether it has any effect; remove it if it has none.
    """
    for role in log.roles():
        never = [
            c
            for c in log.starting(f"action/{role}/")
            if _is_option(c) and len(c) >= 5 and float(c.values.max()) < NEVER
        ]
        names = [c.name.split("/", 2)[2] for c in never]
        forbidden = log.lists.get(f"mask/{role}/never_allowed", [])
        untried = [name for name in names if name not in forbidden]
        if not names:
            continue
        shown = untried or names
        yield Finding(
            check="action_never_tried",
            severity="warning" if untried else "info",
            cause=f"{role} never tries {', '.join(shown[:4])}{' …' if len(shown) > 4 else ''}"
            + ("" if untried else ", which its mask did not allow"),
            evidence=f"{len(names)} options, each at most "
            f"{max(float(c.values.max()) for c in never):.2g} of its actions in any iteration"
            + (
                f"; {len(names) - len(untried)} of them not allowed when the mask was last looked "
                "at"
                if forbidden
                else ""
            ),
            confidence=0.5,
            fix="see how often the mask allows it, and whether it has an effect; otherwise remove "
            "it",
            first_step=never[0].first_step,
            last_step=never[0].last_step,
        )


def _is_option(curve: Curve) -> bool:
    return curve.name.count("/") == 3 and curve.name.rsplit("/", 1)[-1] not in (
        "mean",
        "std",
        "saturated",
        "pressed",
    )
