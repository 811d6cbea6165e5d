"""Does the policy make up its mind, neither never nor at once?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ludus.doctor.checks import SECOND_HALF, check
from ludus.doctor.checks.environment import rows_alike
from ludus.doctor.checks.updates import CERTAIN, frozen_at
from ludus.doctor.finding import Finding
from ludus.doctor.log import Curve, Log
from ludus.doctor.options import equal, flag, lacks, named, overrides
from ludus.doctor.progress import Progress, of_role, same_but_sooner
from ludus.doctor.statistics import head, medians, tail

STILL_RANDOM = 0.97
"""Share of the first entropy. A policy that learns anything is below 0.95 after a few updates that
matter."""
HARDLY_LESS = 0.98
"""Beside a return that has risen, though it has not doubled: worth a word."""
AS_RANDOM_AS_EVER = 0.99
DECIDED = 0.05
"""Share of the first entropy below which hardly an action is tried any more. Never less than
CERTAIN: some logs begin after the first, fatal update."""
HARDLY_MORE = 0.4
"""Of the first return: what a policy has gained that was certain early. Tasks that are solved
mostly give more."""
FEWEST_BEFORE = 3
"""Rows before that which tell what random play earns."""
EARLY = 0.4
"""Part of the run before which a policy has no business being certain."""
NATS = 0.5
MANY_NATS = 1.5
"""Growth of a continuous policy's entropy: 0.7 nats double the deviation of one action."""


def _choices(curve: Curve) -> bool:
    """Entropy of discrete actions: positive and largest, within noise, at the start."""
    start = float(np.median(head(curve.values)))
    return (
        bool(curve.values.min() > -1e-3)
        and start >= 0
        and float(np.median(tail(curve.values, 0.2))) <= 1.05 * start + CERTAIN
    )


@check(family="entropy", figure=("learner/ROLE/entropy_share", "learner/ROLE/entropy"))
def entropy_collapsed(log: Log) -> Iterator[Finding]:
    """The policy became certain early, before it was any good. Where the return has risen, but by
    less than two fifths since the first rows, this is a warning.

    One update too large, or advantages of one sign, drive all probability to one action. From then
    on the others are never tried, so nothing can show that they are better. A policy that is
    certain because it has solved the task is healthy.

    Lower the learning rate, normalise advantages, add a little entropy (0.01), start again: a
    collapsed policy seldom comes back.
    """
    for role in log.roles():
        curve = log.of(role, "entropy")
        if curve is None or len(curve) < 12 or not _choices(curve):
            continue
        start = float(curve.values[0])
        limit = max(DECIDED * start, CERTAIN)
        below = np.flatnonzero(curve.values < limit)
        if not len(below) or float(np.median(tail(curve.values))) >= limit:
            continue
        since = int(curve.steps[below[0]])
        failing, hardly = of_role(log, role).failing, _hardly_more(log, role, since)
        if since > EARLY * curve.last_step or not (failing or hardly):
            continue
        yield Finding(
            check="entropy_collapsed",
            severity="critical" if failing else "warning",
            cause=f"the policy of {role} became certain before it was any good: other actions are "
            "no longer tried",
            evidence=f"entropy {start:.3g} in the first row, below {limit:.2g} from step "
            f"{since:,}; " + ("the return has not risen or not stayed" if failing else hardly),
            confidence=0.8 if failing else 0.5,
            fix=f"lower {named(log, 'learning_rate')} to a tenth, {more_entropy(log, '0.01')}, "
            "and start again",
            overrides=overrides(log, {"learning_rate": "*0.1", "entropy": "0.01"}),
            first_step=since,
            last_step=curve.last_step,
        )


def more_entropy(log: Log, weight: str) -> str:
    if lacks(log, "entropy"):
        return f"add an entropy bonus of weight {weight} to the loss"
    return f"set {equal(log, 'entropy', weight)}"


def _hardly_more(log: Log, role: str, since: int) -> str:
    """Both returns where the last half earns hardly more than the first rows, from before the
    policy was certain, did; else "". Against its own past, after the game has changed or where only
    the time counts, earning the same may well be progress."""
    curve = log.of(role, "return")
    if curve is None or not of_role(log, role).whole or log.get("league/pool/win_rate") is not None:
        return ""
    before = curve.values[curve.steps < since]
    if (
        len(before) < FEWEST_BEFORE
        or log.in_this_game(curve) is not curve
        or same_but_sooner(log, role) is not None
    ):
        return ""
    first, now = float(head(before).mean()), float(tail(curve.values).mean())
    hardly = now - first < HARDLY_MORE * abs(first)
    return (
        f"return {first:.4g} in the first rows and {now:.4g} over the last half, hardly more"
        if hardly
        else ""
    )


@check(
    family="entropy",
    figure=("learner/ROLE/entropy_share", "learner/ROLE/entropy"),
    early=SECOND_HALF,
)
def entropy_stuck(log: Log) -> Iterator[Finding]:
    """The policy is as random as on the first day, and the return has not risen, or hardly.

    The entropy bonus outweighs the reward, or nothing else pushes: rewards too small or too rare,
    advantages that vanish.

    Lower the entropy coefficient (0.01 is a usual value, 0 is fine with few actions), and scale
    rewards up. That helps only where there is something to push: where the policy does not move at
    all (policy_frozen) or every episode earns the same (reward_never_met), mend that first.
    """
    for role in log.roles():
        curve = log.of(role, "entropy")
        if (
            curve is None
            or len(curve) < 12
            or log.of(role, "std") is not None
            or not _choices(curve)
        ):
            continue
        first, last = (
            float(np.median(head(curve.values))),
            float(np.median(tail(curve.values, 0.3))),
        )
        judged = of_role(log, role)
        limit = STILL_RANDOM if judged.flat else HARDLY_LESS if _modest(judged) else 2.0
        share = last / max(first, float(np.median(curve.values)), CERTAIN)
        if first < CERTAIN or share < limit:
            continue
        stuck = judged.flat or (judged.little and share >= AS_RANDOM_AS_EVER)
        fix, overrides = _mend(log, role)
        yield Finding(
            check="entropy_stuck",
            severity="critical" if stuck else "warning",
            cause=f"the policy of {role} stays as random as it began",
            evidence=f"entropy {first:.4g} at the start, {last:.4g} at the end "
            f"({last / first:.0%}), and the return has hardly risen",
            confidence=0.75,
            fix=fix,
            overrides=overrides,
            first_step=curve.first_step,
            last_step=curve.last_step,
        )


def _modest(judged: Progress) -> bool:
    """Less than doubled: a policy that is as random as ever did not do that by deciding
    anything. Episodes that end in a run's first rows are the short ones, so that some rise comes
    by itself."""
    return judged.whole and judged.gain < abs(judged.start)


def _mend(log: Log, role: str) -> tuple[str, dict[str, str]]:
    """What to do about a policy that stays random, and as overrides: none where the entropy
    coefficient is not to blame."""
    logged = log.of(role, "entropy_coefficient")
    coefficient = (
        log.setting("entropy") if logged is None else float(np.median(tail(logged.values, 0.3)))
    )
    if frozen_at(log, role) is not None:
        return (
            "see policy_frozen: a policy that does not move stays random with any entropy "
            "coefficient",
            {},
        )
    if rows_alike(log, role):
        return (
            "see reward_never_met: where every episode earns the same, no entropy coefficient is "
            "small enough",
            {},
        )
    if coefficient == 0:
        return (
            "the entropy coefficient is 0 already: see whether advantages vary, and whether "
            "rewards reach the learner",
            {},
        )
    if coefficient is None and lacks(log, "entropy"):
        return (
            "see whether advantages vary, and whether rewards reach the learner; if the loss has "
            "an entropy bonus, lower its weight",
            {},
        )
    now, option = f" (now {coefficient})" if coefficient else "", log.option("entropy")
    to = {"entropy": "0.01" if _above(coefficient, 0.01) else "0"}
    typed = f" (--{option.replace('_', '-')})" if option else ""
    return f"lower the entropy coefficient{now} to 0.01, or 0{typed}", overrides(log, to)


def _above(coefficient: object, limit: float) -> bool:
    """A schedule is text: it cannot be compared, and is taken to be above."""
    return not isinstance(coefficient, int | float) or coefficient > limit


@check(family="entropy", figure=("learner/ROLE/entropy_share", "learner/ROLE/entropy"))
def entropy_rising(log: Log) -> Iterator[Finding]:
    """A continuous policy becomes more random as training goes on: its deviation grows.

    The bonus for entropy pays more than the task does, and for continuous actions it has no upper
    end: noise grows until actions are all at their limits.

    Lower the entropy coefficient (0 is usual for continuous actions), bound the deviation, squash
    actions with the correction in the entropy.
    """
    for role in log.roles():
        curve = log.of(role, "entropy")
        if curve is None or len(curve) < 12:
            continue
        middle = medians(curve.values)
        grown = float(middle[-1] - middle[0])
        rising = float((np.diff(middle) > 0).mean())
        judged = of_role(log, role)
        if grown < NATS or rising < 0.7 or _choices(curve):
            continue
        bad = grown >= MANY_NATS and (judged.failing or not judged.whole)
        if not bad and judged.learned and not judged.failing and grown < MANY_NATS:
            continue
        yield Finding(
            check="entropy_rising",
            severity="critical" if bad else "warning",
            cause=f"the policy of {role} gets more random while it trains",
            evidence=f"entropy rises from {middle[0]:.3g} to {middle[-1]:.3g} nats ({rising:.0%} "
            "of the way upwards)",
            confidence=0.8 if bad else 0.5,
            fix="lower the weight of the entropy bonus, if the loss has one; bound the deviation"
            if lacks(log, "entropy")
            else f"{flag(log, 'entropy', '0')}, or a tenth of what it is",
            overrides=overrides(log, {"entropy": "*0.1"}),
            first_step=curve.first_step,
            last_step=curve.last_step,
        )
