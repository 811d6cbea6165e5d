"""Do gradients exist, everywhere, and of a sensible size?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ludus.doctor.checks import AT_ONCE, SECOND_HALF, check
from ludus.doctor.finding import Finding
from ludus.doctor.log import FEW_ROWS, Curve, Log
from ludus.doctor.options import equal, in_brackets, named, overrides
from ludus.doctor.progress import of_role
from ludus.doctor.statistics import head, tail, windows

LEARNERS = ("learner/", "module/", "units/")
FEWEST_LOOKS = 2
"""In one look all rows may have been idle ones, from which only the value learns."""
UNDEFINED = ("explained_variance",)
"""Not a number by right: where all returns are alike there is no variance to explain."""
NOTHING = 1e-7
GREW = 100.0
BEGAN = 0.1
"""Share of that growth: from there on it is more than noise."""
MOSTLY_DEAD = 0.5
NEARLY_ALL_DEAD = 0.9
"""Rectified networks learn well with two thirds of a wide layer dead; with next to nothing left
they cannot."""
FEW_DIRECTIONS = 1.5
"""Effective rank: at 1 all inputs look the same to the last layer."""


@check(family="gradients", figure="learner/ROLE/grad_norm", early=AT_ONCE)
def not_finite(log: Log) -> Iterator[Finding]:
    """A loss, a gradient or a statistic of the learner became NaN or infinite.

    Overflow after updates that were too large, a logarithm or a division of zero, or an observation
    or reward that was not a number to begin with. Whatever was learnt is gone from that step on.

    Look at the first tensor that had it (our runs name it), clip observations and rewards, lower
    the learning rate.
    """
    broken = first_broken(log)
    if broken is None:
        return
    name, step = broken
    yield Finding(
        check="not_finite",
        severity="critical",
        cause=f"'{name}' is not a number: the network is broken from here on",
        evidence=f"first at step {step:,}; so are {len(log.not_finite)} column(s)",
        confidence=0.95,
        fix="go back to the last checkpoint before this step; lower the learning rate; check "
        "observations and rewards for NaN",
        overrides=overrides(log, {"learning_rate": "*0.1"}),
        first_step=step,
        last_step=log.steps,
    )


def first_broken(log: Log) -> tuple[str, int] | None:
    """The first of the learner's columns that is not a number, and since which step; None while all
    of them are."""
    found = [
        (n, step)
        for n, step in log.not_finite.items()
        if n.startswith(LEARNERS) and not n.endswith(UNDEFINED)
    ]
    return min(found, key=lambda pair: pair[1], default=None)


@check(family="gradients", figure="progress/updates", early=SECOND_HALF)
def nothing_updated(log: Log) -> Iterator[Finding]:
    """Not one step of an optimizer was made, although rollouts were.

    A warm-up longer than the run, a learning rate of 0 from the start, an algorithm that never
    calls its optimizer, or roles that bots play all the time.

    Shorten the warm-up, see that the learning rate is above 0, and that `learn_role` of an
    algorithm of your own reaches `optimizer.step()`.
    """
    updates = log.get("progress/updates")
    if not log.ours or updates is None or len(updates) < FEW_ROWS or updates.values[-1] > 0:
        return
    yield Finding(
        check="nothing_updated",
        severity="critical",
        cause="nothing was learned: no step of an optimizer was made",
        evidence=f"0 updates in {len(updates)} iterations, {updates.last_step:,} agent-steps",
        confidence=0.95,
        fix="shorten the warm-up, see that the learning rate is above 0, and that the algorithm "
        "calls its optimizer",
        first_step=updates.first_step,
        last_step=updates.last_step,
    )


@check(family="gradients", figure="learner/ROLE/grad_norm")
def gradient_vanishes(log: Log) -> Iterator[Finding]:
    """The gradient is zero or next to it for the whole last half.

    Saturated or dead units, advantages that are all zero, a loss that does not depend on the
    parameters.

    See which module still gets a gradient; change the activation, the initial scale or the learning
    rate; normalise inputs.
    """
    for role in log.roles():
        curve = log.while_learning(role, "grad_norm")
        if curve is None or len(curve) < 12:
            continue
        late = float(np.median(tail(curve.values)))
        if late < NOTHING:
            yield Finding(
                check="gradient_vanishes",
                severity="critical",
                cause=f"the learner of {role} gets no gradient",
                evidence=f"gradient norm {late:.2g} over the last half",
                confidence=0.85,
                fix="look for dead units and constant advantages; lower the learning rate and "
                "start again",
                first_step=int(curve.steps[len(curve) // 2]),
                last_step=curve.last_step,
            )


@check(family="gradients", figure="learner/ROLE/grad_norm")
def gradient_explodes(log: Log) -> Iterator[Finding]:
    """The gradient's norm, before clipping, has grown a hundredfold since the start.

    Values or recurrent states run away; clipping hides it by making every update the same length in
    a random direction.

    Normalise returns, lower the learning rate, shorten the stretch of backpropagation through time.
    """
    for role in log.roles():
        curve = log.while_learning(role, "grad_norm")
        if curve is None or len(curve) < 12:
            continue
        early, late = (
            float(np.median(head(curve.values, 0.2))),
            float(np.median(tail(curve.values, 0.3))),
        )
        if early > 0 and late / early >= GREW:
            rate, clip = named(log, "learning_rate"), equal(log, "max_grad_norm", "0.5")
            other = (
                f"scale rewards down{in_brackets(log, 'reward_scale')}"
                if log.by_values
                else f"normalise returns, {clip}"
            )
            changes = {"learning_rate": "*0.3"}
            changes |= {} if log.by_values else {"max_grad_norm": "0.5"}
            yield Finding(
                check="gradient_explodes",
                severity="critical" if late / early >= GREW**1.5 else "warning",
                cause=f"the gradients of {role} grow without end",
                evidence=f"gradient norm {early:.3g} at the start, {late:.3g} at the end: "
                f"{late / early:,.0f} times",
                confidence=0.7,
                fix=f"lower {rate} to a third, {other}",
                overrides=overrides(log, changes),
                first_step=_first_above(curve, BEGAN * GREW * early),
                last_step=curve.last_step,
            )


def _first_above(curve: Curve, level: float) -> int:
    """Where the first window begins whose middle is above `level`."""
    parts = zip(windows(curve.steps), windows(curve.values), strict=True)
    return next(
        (int(steps[0]) for steps, values in parts if float(np.median(values)) > level),
        curve.last_step,
    )


@check(family="gradients", figure="module/ROLE/MODULE/gradient")
def module_without_gradient(log: Log) -> Iterator[Finding]:
    """A module of the network never gets a gradient, while others do.

    It is not connected to the loss (an output that is not used, a detach too many), or not in the
    optimizer.

    Follow its output to the loss; remove it if nothing uses it.
    """
    for role in log.roles():
        found = {
            c.name.split("/", 2)[2].removesuffix("/gradient"): c
            for c in log.starting(f"module/{role}/")
            if c.name.endswith("/gradient")
        }
        looked = {n: c for n, c in found.items() if len(c) >= FEWEST_LOOKS}
        silent = [
            n
            for n, c in looked.items()
            if float(np.abs(c.values).max()) == 0.0 and not _empty(log, role, n)
        ]
        if silent and len(silent) < len(found):
            curve = found[silent[0]]
            yield Finding(
                check="module_without_gradient",
                severity="warning",
                cause=f"'{silent[0]}' of {role} is never trained",
                evidence=f"gradient exactly 0 in all {len(curve)} looks; "
                f"{len(found) - len(silent)} other modules get one",
                confidence=0.7,
                fix=f"follow the output of '{silent[0]}' to the loss, or remove it",
                first_step=curve.first_step,
                last_step=curve.last_step,
            )


def _empty(log: Log, role: str, module: str) -> bool:
    """A module without parameters: deviations of a policy that has no continuous action."""
    weight = log.get(f"module/{role}/{module}/weight")
    return weight is not None and float(np.abs(weight.values).max()) == 0.0


@check(family="gradients", figure=("units/ROLE/LAYER/dead_share", "units/ROLE/effective_rank"))
def dead_units(log: Log) -> Iterator[Finding]:
    """More than half of a layer's units say the same whatever comes in, or the last layer tells
    hardly any inputs apart. While the return is fine this is only noted.

    Updates that were too large push units where their slope is zero; long training on shifting
    targets does it slowly.

    Lower the learning rate, use a smooth activation, normalise inputs.
    """
    for role in log.roles():
        for curve in log.starting(f"units/{role}/"):
            late = float(np.median(tail(curve.values)))
            dead = curve.name.endswith("dead_share") and late > MOSTLY_DEAD
            narrow = (
                curve.name.endswith("effective_rank")
                and late < FEW_DIRECTIONS
                and float(curve.values.max()) > 2 * FEW_DIRECTIONS
            )
            if dead or narrow:
                hurts = of_role(log, role).failing or (dead and late > NEARLY_ALL_DEAD)
                yield Finding(
                    check="dead_units",
                    severity="warning" if hurts else "info",
                    cause=f"the network of {role} has lost "
                    f"{'most units of a layer' if dead else 'the ability to tell inputs apart'}",
                    evidence=f"{curve.name} is {late:.3g} over the last half",
                    confidence=0.6,
                    fix=f"lower {named(log, 'learning_rate')} to a third and start again; "
                    + equal(log, "policy.activation", "silu"),
                    overrides=overrides(log, {"learning_rate": "*0.3"}),
                    first_step=curve.first_step,
                    last_step=curve.last_step,
                )
                break
