"""Are updates of a sensible size, and do values follow returns?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ludus.doctor.checks import AT_ONCE, check
from ludus.doctor.finding import Finding
from ludus.doctor.log import Curve, Log
from ludus.doctor.options import flag, in_brackets, lacks, named, overrides
from ludus.doctor.progress import of_role
from ludus.doctor.statistics import medians, tail

LARGE_KL = 0.1
"""Usual updates move a policy by 0.005 to 0.03 nats; ten times the middle of that leaves the region
the data came from."""
HUGE_KL = 1.0
MOSTLY_CLIPPED = 0.5
"""Where every second row is clipped, every second row teaches nothing."""
SMALL_KL = 1e-3
NO_KL = 1e-5
"""A hundredth of the smallest update that learns: the policy stands still."""
FIRST_ROWS = 3
"""Iterations: what a run began with is lost at once, or not by this."""
CROWDING = 1000.0
"""Error of the values in units of reward: beside it the gradient of the policy, of size 1, has no
part in a clipped norm."""
CERTAIN = 0.01
"""Nats: less than one action in five hundred is not the favourite."""
EXPLAINS_NOTHING = 0.05
WORSE_THAN_NOTHING = -0.5


@check(family="updates", figure="learner/ROLE/approx_kl", early=AT_ONCE)
def beginning_lost(log: Log) -> Iterator[Finding]:
    """A run that began with a trained policy (`--init-from`) is thrown far from it by its first
    updates: what it knew is lost.

    The learning rate is that of a beginner, or parts that are new mean nothing yet and disturb the
    rest (a wide strategy encoder, for one). It then learns anew from nearly nothing, and nothing in
    its curves tells: they only start low.

    Divide the learning rate by three to ten, and evaluate the run it began with: the first
    evaluation should be as good.
    """
    for role in log.roles() if log.began_with else ():
        kl = log.of(role, "approx_kl")
        far = float(kl.values[:FIRST_ROWS].max()) if kl is not None and len(kl) else 0.0
        if kl is None or far <= LARGE_KL:
            continue
        yield Finding(
            check="beginning_lost",
            severity="critical" if far > HUGE_KL else "warning",
            cause=f"the first updates throw {role} far from the policy it began with, that of "
            f"{log.began_with}",
            evidence=f"KL {far:.3g} in the first {FIRST_ROWS} rows (0.005 to 0.03 is usual)",
            confidence=0.9 if far > HUGE_KL else 0.6,
            fix=f"{flag(log, 'learning_rate', 'a third to a tenth of what it is')}, and begin "
            "again",
            overrides=overrides(log, {"learning_rate": "*0.1"}),
            first_step=kl.first_step,
            last_step=int(kl.steps[min(FIRST_ROWS, len(kl)) - 1]),
        )


def _sustained(curve: Curve | None) -> float:
    """The highest median of a fifth of the run."""
    return float(medians(curve.values, 5).max()) if curve is not None and len(curve) >= 5 else 0.0


def _rise_of_rate(log: Log, role: str) -> str:
    """A learning rate that was raised on the way is the likely cause."""
    rate = log.of(role, "lr")
    if rate is None:
        return ""
    first, highest = float(rate.values[0]), float(rate.values.max())
    return (
        f"; the learning rate rose from {first:.2g} to {highest:.2g}"
        if first > 0 and highest > 3 * first
        else ""
    )


def _value_error(log: Log, role: str) -> float:
    """How far values are off, from their loss."""
    loss = log.of(role, "value_loss")
    return float(np.sqrt(max(0.0, np.median(loss.values)))) if loss is not None else 0.0


def _why_frozen(log: Log, role: str) -> tuple[str, str, dict[str, str]]:
    """What holds the policy, what to do, and as overrides."""
    clip, error = log.of(role, "clip_fraction"), _value_error(log, role)
    if clip is not None and float(np.median(clip.values)) > MOSTLY_CLIPPED:
        return (
            ": the clip range is too small",
            flag(log, "clip", "0.2"),
            overrides(log, {"clip": "0.2"}),
        )
    if error > CROWDING:
        why = (
            f": rewards are so large that values, off by {error:.2g}, take all of the clipped "
            "gradient"
        )
        fix = f"divide rewards by {error:.1g}, or normalise returns" + in_brackets(
            log, "normalise_values", "true"
        )
        return why, fix, overrides(log, {"normalise_values": "true"})
    rate = flag(log, "learning_rate", "3e-4")
    return (
        "",
        f"{rate}; if that is what it is, see whether advantages are all zero",
        overrides(log, {"learning_rate": "3e-4"}),
    )


@check(family="updates", figure=("learner/ROLE/approx_kl", "learner/ROLE/clip_fraction"))
def updates_too_large(log: Log) -> Iterator[Finding]:
    """Each update moves the policy far from the one that gathered the data (KL), or most rows are
    clipped.

    The learning rate is too high, or the same batch is used for too many epochs. The data then no
    longer tells what the new policy would do, and improvement becomes chance.

    Divide the learning rate by ten, use fewer epochs or larger minibatches, or stop an iteration's
    epochs at a KL of 0.02.
    """
    for role in log.roles():
        kl, clip = log.of(role, "approx_kl"), log.of(role, "clip_fraction")
        much, share = _sustained(kl), _sustained(clip)
        peak = float(kl.values.max()) if kl is not None else 0.0
        failing = of_role(log, role).failing
        if kl is not None and much < SMALL_KL:
            share = 0.0  # rows are clipped because the range is tiny: policy_frozen says so
        if not (much > LARGE_KL or share > MOSTLY_CLIPPED or (failing and peak > HUGE_KL)):
            continue
        curve, limit = (
            (kl, LARGE_KL) if kl is not None and peak > LARGE_KL else (clip, MOSTLY_CLIPPED)
        )
        assert curve is not None
        onset = int(curve.steps[np.flatnonzero(curve.values > limit)[0]])
        bad = failing or much > HUGE_KL
        stop = (
            "stop an iteration's updates at a KL of 0.02"
            if lacks(log, "target_kl")
            else flag(log, "target_kl", "0.02")
        )
        yield Finding(
            check="updates_too_large",
            severity="critical" if bad else "warning",
            cause=f"updates throw the policy of {role} far from the one that played",
            evidence=f"KL {much:.3g} over a fifth of the run, largest {peak:.3g} (0.005 to 0.03 is "
            f"usual), clip fraction {share:.2f}"
            + _rise_of_rate(log, role)
            + (", and the return has not risen or not stayed" if failing else ""),
            confidence=0.8 if bad else 0.5,
            fix=f"{flag(log, 'learning_rate', 'a tenth of what it is')}, or {stop}",
            overrides=overrides(log, {"learning_rate": "*0.1", "target_kl": "0.02"}),
            first_step=onset,
            last_step=curve.last_step,
        )


@check(family="updates", figure="learner/ROLE/approx_kl")
def policy_frozen(log: Log) -> Iterator[Finding]:
    """The policy has not moved: KL stays at nothing and no row is ever clipped.

    A learning rate that is far too small (or a schedule that has reached 0), advantages that are
    all zero, a network whose parameters are not in the optimizer, or rewards so large that the
    gradient of the values takes all that the clip leaves.

    Raise the learning rate (3e-4 is a usual start), see whether advantages vary, and count the
    parameters that get gradients.
    """
    for role in log.roles():
        kl, largest = log.while_learning(role, "approx_kl"), frozen_at(log, role)
        if kl is None or largest is None:
            continue
        bad = of_role(log, role).flat or of_role(log, role).little
        rate = log.of(role, "lr")
        why, fix, overrides = _why_frozen(log, role)
        yield Finding(
            check="policy_frozen",
            severity="critical" if bad else "warning",
            cause=f"the policy of {role} does not move{why}",
            evidence=f"KL per update never above {largest:.2g} nats (usual: 0.005 to 0.03)"
            + (
                f"; learning rate {rate.values[0]:.2g} to {rate.values[-1]:.2g}"
                if rate is not None
                else ""
            ),
            confidence=0.85 if bad else 0.6,
            fix=fix,
            overrides=overrides,
            first_step=kl.first_step,
            last_step=kl.last_step,
        )


def frozen_at(log: Log, role: str) -> float | None:
    """The largest KL of a role's updates where it is next to nothing; None where the policy moves,
    or has no doubt left."""
    kl = log.while_learning(role, "approx_kl")
    if kl is None or len(kl) < 8 or _certain(log, role):
        return None
    largest = float(medians(np.abs(kl.values)).max())
    return largest if largest < NO_KL else None


def _certain(log: Log, role: str) -> bool:
    """A policy without any doubt cannot move either: then entropy_collapsed names the cause."""
    entropy = log.of(role, "entropy")
    return entropy is not None and 0 <= float(np.median(entropy.values)) < CERTAIN


@check(family="updates", figure="learner/ROLE/explained_variance")
def values_explain_nothing(log: Log) -> Iterator[Finding]:
    """Values predict returns no better than their mean does (explained variance at 0 or below),
    while the return does not rise.

    Values lag behind: targets of unnormalised size, a value loss with too little weight, a discount
    so small that there is nothing to predict, or observations that do not tell good states from bad
    ones. Once a task is solved all returns are alike and explained variance means nothing, so this
    check is silent then.

    Normalise returns, raise the value's learning rate or weight, and see whether observations hold
    what the return depends on.
    """
    for role in log.roles():
        curve = log.of(role, "explained_variance")
        if curve is None or len(curve) < 12 or not of_role(log, role).failing:
            continue
        late = float(np.median(tail(curve.values)))
        if late >= EXPLAINS_NOTHING:
            continue
        yield Finding(
            check="values_explain_nothing",
            severity="warning",
            cause=f"the values of {role} do not predict its returns",
            evidence=f"explained variance {late:.3g} over the last half (1 is perfect, 0 no better "
            "than the mean" + (", below 0 worse than that)" if late < WORSE_THAN_NOTHING else ")"),
            confidence=0.55,
            fix=f"normalise returns or scale rewards{in_brackets(log, 'reward_scale')}, raise "
            f"{named(log, 'value_weight')}; check gamma and the observations",
            first_step=curve.first_step,
            last_step=curve.last_step,
        )
