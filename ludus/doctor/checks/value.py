"""Are values possible, and do they stay so?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ludus.doctor.checks import AT_ONCE, check
from ludus.doctor.finding import Finding
from ludus.doctor.log import SECONDS, STEPS, Curve, Log
from ludus.doctor.options import flag, named, overrides
from ludus.doctor.progress import of_role
from ludus.doctor.statistics import medians, tail

BEYOND = 3.0
FAR_BEYOND = 10.0
"""Times the largest return seen. A discounted sum of rewards is hardly ever larger than the largest
whole return."""
GREW = 30.0
GREW_MUCH = 1000.0
NORMALISED = 2.0
"""Growth of the value loss from its lowest. It may grow with the square of the return, so one that
also learns is let be, as long as its error is of the size of returns."""

ENOUGH_TO_SETTLE = 20
MANY_STEPS = 8.0
"""Steps of an episode: with fewer, one reward is a fair part of all."""
SETTLED = 0.3
ONE_REWARD = (0.7, 1.5)
"""Where a value that has settled stands, in rewards of one step."""
HALF_SEEN = 0.5
"""Of the discounted steps of an episode. Recipes of ours that learn see all of them, but CartPole
can do with two thirds."""


def _largest_return(log: Log, role: str) -> float | None:
    curves = [log.get(f"episode/{role}/return{suffix}") for suffix in ("", "_min", "_max")]
    found = [float(np.abs(c.values).max()) for c in curves if c is not None]
    return max(found) if found else None


@check(family="value", figure=("learner/ROLE/q_mean", "learner/ROLE/value_mean"), early=AT_ONCE)
def value_impossible(log: Log) -> Iterator[Finding]:
    """Q or V lies far outside what rewards can add up to.

    Bootstrapping feeds estimates back into their own targets. With a learning rate that is too
    high, targets that move with every step, a discount of 1 or a maximum over noisy actions, errors
    grow instead of shrinking: Q falls to -40,000 in a game of returns around 100.

    Update the target network by whole copies every thousand steps or so, lower the learning rate,
    use double Q, clip the gradient, and keep gamma below 1.
    """
    for role in log.roles():
        limit = _largest_return(log, role)
        for key in ("q_mean", "q_max", "q_min", "value_mean"):
            curve = log.of(role, key)
            if curve is None or len(curve) < 5:
                continue
            low, high, known = _range(log, role, limit, BEYOND)
            if low is None or high is None:
                continue
            middle = medians(curve.values, 20)
            worst = float(middle[np.abs(middle).argmax()])
            beyond = max(worst / high if high > 0 else 0.0, worst / low if low < 0 else 0.0)
            if beyond <= 1:
                continue
            outside = (curve.values > high) | (curve.values < low)
            onset = (
                int(curve.steps[np.flatnonzero(outside)[0]]) if outside.any() else curve.first_step
            )
            yield Finding(
                check="value_impossible",
                severity="critical"
                if known or beyond * BEYOND > FAR_BEYOND or of_role(log, role).failing
                else "warning",
                cause=f"{key} of {role} lies outside what rewards can add up to: values diverge",
                evidence=f"{key} reaches {worst:.4g}; "
                + (
                    f"possible is {low:.4g} to {high:.4g}"
                    if known
                    else f"the largest return seen is {limit:.4g}"
                )
                + f"; outside since step {onset:,}",
                confidence=0.85,
                fix="lower the learning rate to a tenth; "
                + (
                    "copy the target network every 1,000 updates or more; "
                    if key != "value_mean"
                    else ""
                )
                + "gamma at most 0.99",
                overrides=overrides(log, {"learning_rate": "*0.1"}),
                first_step=onset,
                last_step=curve.last_step,
            )
            break


@check(family="value", figure="learner/ROLE/q_mean")
def values_see_one_step(log: Log) -> Iterator[Finding]:
    """Values have settled at the reward of a single step, though episodes pay it many times over.

    What is still to come is missing from their targets: the target network is never updated and
    stays near 0, the discount is 0, every step is taken for the last of its episode, or the
    bootstrap is multiplied by a mask that is always 0.

    Copy the online network into the target network (every thousand updates or so), look at gamma,
    and see how often a transition is stored as the end of an episode.
    """
    for role in log.roles():
        curve, returns, lengths = (log.of(role, key) for key in ("q_mean", "return", "length"))
        if curve is None or returns is None or lengths is None or len(curve) < ENOUGH_TO_SETTLE:
            continue
        steps = float(np.median(tail(lengths.values)))
        reward = float(np.median(tail(returns.values))) / max(steps, 1.0)
        late = medians(tail(curve.values), 4)
        settled = float(np.ptp(late)) < SETTLED * abs(reward)
        if (
            steps < MANY_STEPS
            or not settled
            or not ONE_REWARD[0] < float(late[-1]) / (reward or np.inf) < ONE_REWARD[1]
        ):
            continue
        yield Finding(
            check="values_see_one_step",
            severity="critical" if of_role(log, role).failing else "warning",
            cause=f"values of {role} hold the next reward and nothing of what follows it",
            evidence=f"q_mean has settled at {late[-1]:.3g}, a step pays {reward:.3g} on average, "
            f"an episode has {steps:.0f} steps",
            confidence=0.75,
            fix="see that the target network is updated, that gamma is about 0.99, and that only "
            "true ends are stored as ends",
            first_step=curve.first_step,
            last_step=curve.last_step,
        )


@check(family="value", figure="learner/ROLE/q_mean")
def values_see_few_steps(log: Log) -> Iterator[Finding]:
    """The target network is copied so seldom that values hold the rewards of the next few steps
    only, at the end of the run too: less than half of what an episode is worth. While the return is
    fine this is only noted.

    A copy lets rewards travel back by one target, which is n_step steps. After k of them nothing
    that is more than k times n_step steps away is in the values, whatever gamma says: the speed of
    now counts, the crash behind the next bend does not. An interval made for millions of updates
    does this to a short run.

    Copy more often, look further at once (n_step), or train longer: copies times n_step should be
    well above 1 / (1 - gamma).
    """
    every, tau, n_step, gamma = (
        _setting(log, key) for key in ("target_every", "target_tau", "n_step", "gamma")
    )
    updates = _updates_in_all(log)
    if every is None or n_step is None or gamma is None or updates is None:
        return
    for role in log.roles():
        lengths = log.of(role, "length")
        if lengths is None or len(lengths) < ENOUGH_TO_SETTLE:
            continue
        copies, steps = (
            updates * (tau or 1.0) / every,
            max(1, round(float(np.median(lengths.values)))),
        )
        worth = gamma ** np.arange(steps)
        seen = float(worth[: max(1, round(copies * n_step))].sum() / worth.sum())
        if seen >= HALF_SEEN:
            continue
        judged, ahead = of_role(log, role), 1 / (1 - gamma) if gamma < 1 else steps
        enough = max(1, int(float(f"{every * copies * n_step / ahead:.1g}")))
        slowly = tau is not None and tau < 1
        yield Finding(
            check="values_see_few_steps",
            severity="critical" if judged.failing else "info" if judged.learned else "warning",
            cause=f"values of {role} hold the rewards of the next {copies * n_step:.0f} steps and "
            "nothing of what follows",
            evidence=f"{copies:.0f} copies of the target network in the whole run, each worth "
            f"{n_step:g} step(s); an episode has {steps} steps, "
            f"and gamma {gamma:g} counts {ahead:.0f}: {seen:.0%} of a value is seen"
            + (", and the return has not risen or not stayed" if judged.failing else ""),
            confidence=0.75,
            fix=(
                f"a larger {named(log, 'target_tau')}"
                if slowly
                else flag(log, "target_every", str(enough))
            )
            + f", a larger {named(log, 'n_step')}, or a longer run",
            overrides={} if slowly else overrides(log, {"target_every": str(enough)}),
            first_step=lengths.first_step,
            last_step=lengths.last_step,
        )


def _setting(log: Log, key: str) -> float | None:
    value = log.setting(key)
    return float(value) if isinstance(value, int | float) else None


def _updates_in_all(log: Log) -> float | None:
    """Updates when the budget is spent, at the pace there has been since the first. None before
    there are enough to tell."""
    updates = log.get("progress/updates")
    if updates is None or (updates.values > 0).sum() < ENOUGH_TO_SETTLE:
        return None
    made = float(updates.values[-1])
    since = int((updates.values > 0).argmax())
    spent = [
        c.values / float(total)
        for budget, name in (("total_agent_steps", STEPS), ("total_seconds", SECONDS))
        if (total := log.config.get(f"train.{budget}"))
        and (c := log.get(name)) is not None
        and len(c) == len(updates)
    ]
    if not spent:
        return made
    share = max(spent, key=lambda s: s[-1])
    pace = (made - float(updates.values[since])) / max(float(share[-1] - share[since]), 1e-9)
    return made + pace * max(0.0, 1 - float(share[-1]))


def _range(
    log: Log, role: str, limit: float | None, slack: float
) -> tuple[float | None, float | None, bool]:
    """What a value can be: as declared, or some times the largest return seen."""
    low, high = log.of(role, "q_feasible_low"), log.of(role, "q_feasible_high")
    if low is not None and high is not None:
        margin = 0.1 * float(high.values.max() - low.values.min())
        return float(low.values.min()) - margin, float(high.values.max()) + margin, True
    if limit is None:
        return None, None, False
    size = slack * max(limit, 1.0)
    return -size, size, False


@check(
    family="value", figure=("learner/ROLE/value_loss", "learner/ROLE/loss", "learner/ROLE/td_error")
)
def value_loss_grows(log: Log) -> Iterator[Finding]:
    """The loss of the values has grown manyfold from its lowest, and the return does not explain
    it. While the return is fine, only a thousandfold growth counts, to an error several times as
    large as any return.

    Targets run away from the network that has to follow them: divergence, seen from its error.

    As for value_impossible; look at what else changed at the step where the loss began to grow.
    """
    for role in log.roles():
        judged, limit = of_role(log, role), _largest_return(log, role)
        fine = judged.learned and not judged.failing
        for key in _errors(log, role):
            curve = log.of(role, key)
            if curve is None or len(curve) < 12 or float(curve.values.min()) < 0:
                continue
            grown, onset = _growth(curve)
            if grown < GREW or _harmless(log, key, curve):
                continue
            error = _error(key, curve)
            impossible = (
                grown >= GREW_MUCH and limit is not None and error > BEYOND * max(limit, 1.0)
            )
            if fine and not impossible:
                continue
            yield Finding(
                check="value_loss_grows",
                severity="critical" if grown >= GREW_MUCH else "warning",
                cause=f"the {key.replace('_', ' ')} of {role} runs away",
                evidence=f"{grown:,.0f} times its lowest level, growing since step {onset:,}"
                + (
                    f"; values are off by {error:.3g}, and the largest return seen is {limit:.4g}"
                    if impossible
                    else ""
                ),
                confidence=0.7,
                fix="lower the learning rate to a tenth; normalise returns or scale rewards"
                + ("; slower target updates" if log.by_values or not log.ours else ""),
                overrides=overrides(log, {"learning_rate": "*0.1"}),
                first_step=onset,
                last_step=curve.last_step,
            )
            break


def _errors(log: Log, role: str) -> tuple[str, str]:
    """What tells how far values are off. A total loss does so only where theirs is not logged: it
    holds the loss of the policy too."""
    loss = "loss" if log.of(role, "value_loss") is None else "value_loss"
    return loss, "td_error"


def _error(key: str, curve: Curve) -> float:
    """How far values are off at the end: losses are squared errors."""
    last = float(medians(curve.values)[-1])
    return last if key == "td_error" else float(np.sqrt(last))


def _harmless(log: Log, key: str, curve: Curve) -> bool:
    """Our values are normalised: half a squared deviation is 0.5, so a loss about that, after one
    near 0, is no divergence."""
    normalised = log.ours and key == "value_loss" and bool(log.setting("normalise_values"))
    return normalised and float(medians(curve.values)[-1]) < NORMALISED


def _growth(curve: Curve) -> tuple[float, int]:
    """Last level over the lowest one before it, and the step of the lowest."""
    middle = medians(curve.values)
    at = int(middle[:-1].argmin()) if len(middle) > 1 else 0
    lowest = max(float(middle[at]), 1e-5 * float(np.abs(middle).max()), 1e-8)
    return float(middle[-1]) / lowest, int(
        curve.steps[min(at * len(curve) // len(middle), len(curve) - 1)]
    )
