"""Does the environment behave: rewards to be had, episodes of a sensible length, observations that
are numbers?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ludus.doctor.checks import AT_ONCE, SECOND_HALF, check
from ludus.doctor.checks.gradients import first_broken
from ludus.doctor.finding import Finding
from ludus.doctor.log import Log
from ludus.doctor.progress import ALIKE, FEWEST_ROWS, LATE, same_but_sooner
from ludus.doctor.statistics import certainty, noise

VERY_SHORT = 2.5
JUMP = 3.0
"""A policy that learns changes lengths little by little; from one row to the next it takes a change
of the game."""
SIDE = 12
"""Rows on either side of a jump that have to be steady: single episodes never are, a changed game's
means are."""


@check(family="environment", early=AT_ONCE)
def observations_broken(log: Log) -> Iterator[Finding]:
    """Observation entries that are NaN or infinite, or that never change.

    A sensor divides by zero, an entry is never written, a normaliser met a constant.

    Write the entry, or take it out. Clip what has no bounds.
    """
    for name, entries in log.lists.items():
        if not entries or not name.startswith("observation/"):
            continue
        role = name.split("/")[1]
        if name.endswith("not_finite"):
            yield Finding(
                check="observations_broken",
                severity="critical",
                cause=f"observations of {role} are not finite",
                evidence=f"entries: {', '.join(entries[:8])}",
                confidence=0.95,
                fix="find the division or logarithm that makes it, and clip",
            )
        elif name.endswith("constant"):
            yield Finding(
                check="observations_broken",
                severity="info",
                cause=f"{len(entries)} observation entries of {role} did not change in a whole "
                "rollout",
                evidence=f"entries: {', '.join(entries[:8])}{' …' if len(entries) > 8 else ''}",
                confidence=0.3,
                fix="take out what is never written; nothing to do where the game simply did not "
                "use them yet",
            )


@check(family="environment", figure="episode/ROLE/return")
def return_not_a_number(log: Log) -> Iterator[Finding]:
    """The mean return is written as NaN after it had been a number.

    A reward was NaN or infinite (a division by zero in the game), or no episode ended in that
    iteration and the library writes NaN for an empty mean.

    Check rewards for NaN where they are made. If episodes are longer than an iteration, average
    over more of them.
    """
    for role in log.roles():
        name = f"episode/{role}/return"
        curve, since = log.get(name), log.not_finite.get(name)
        if log.ours or since is None or curve is None or since <= curve.first_step:
            # ours leave a mean of nothing out; before the first episode ends there is nothing to
            # average
            continue
        yield Finding(
            check="return_not_a_number",
            severity="warning",
            cause=f"the return of {role} is not a number: a reward was NaN, or no episode ended",
            evidence=f"first at step {since:,}, after {int((curve.steps < since).sum())} rows with "
            "a number",
            confidence=0.6,
            fix="check rewards for NaN where they are made",
            first_step=since,
            last_step=log.steps,
        )


@check(family="environment", figure="episode/ROLE/return", early=SECOND_HALF)
def reward_never_met(log: Log) -> Iterator[Finding]:
    """Every episode earns exactly the same: the reward depends on nothing the agent has done so
    far.

    Random play never meets the reward (a flag no one reaches in 200 steps), episodes are cut off
    before it can be earned, or rewards were lost on the way to the learner. All returns alike means
    all advantages zero: there is nothing to learn from.

    See what a scripted player earns in the same environment. Start nearer to the goal, add
    potential-based shaping, lengthen episodes, explore more; read the reward's weights back from
    the simulator.
    """
    for role in log.roles():
        curve, alike = log.get(f"episode/{role}/return"), rows_alike(log, role)
        if curve is None or not alike:
            continue
        yield Finding(
            check="reward_never_met",
            severity="critical" if alike == len(curve) else "warning",
            cause=f"every episode of {role} earns the same, so there is nothing to learn from",
            evidence=f"return {curve.values[0]:.4g} in {alike} rows without any variation",
            confidence=0.85,
            fix="see what a scripted player earns; start nearer to the goal or shape the reward; "
            "check that rewards arrive",
            first_step=curve.first_step,
            last_step=curve.last_step,
        )


def rows_alike(log: Log, role: str) -> int:
    """How many rows from the start on have the same return: all, the first half, or 0 where returns
    differ before that."""
    curve = log.get(f"episode/{role}/return")
    if curve is None or len(curve) < FEWEST_ROWS or curve.first_step > LATE * curve.last_step:
        return 0
    if same_but_sooner(log, role) is not None:
        return 0  # the goal is met in every episode: when it is met is what there is to learn
    early = curve.values[: max(FEWEST_ROWS, len(curve) // 2)]
    little = ALIKE * max(1.0, abs(float(early[0])))
    spread = log.get(f"episode/{role}/return_std")
    if float(np.ptp(early)) > little or (
        spread is not None and float(spread.values[: len(early)].max()) > ALIKE
    ):
        return 0  # or means alike by chance: single episodes differ
    return len(curve) if float(np.ptp(curve.values)) <= little else len(early)


@check(family="environment", figure="episode/ROLE/length")
def episodes_too_short(log: Log) -> Iterator[Finding]:
    """Episodes last two steps or less.

    The env ends as soon as it starts: a wrong sign in the condition for the end, a state that is
    not reset, a reset on every step.

    Play an episode by hand and print why it ends.
    """
    for role in log.roles():
        curve = log.get(f"episode/{role}/length")
        if curve is None or len(curve) < FEWEST_ROWS:
            continue
        usual = float(np.median(curve.values))
        if 1.0 < usual <= VERY_SHORT and float(np.ptp(curve.values)) > 0:
            yield Finding(
                check="episodes_too_short",
                severity="warning",
                cause=f"episodes of {role} end as soon as they begin",
                evidence=f"median length {usual:.3g} steps",
                confidence=0.5,
                fix="play one episode by hand and print why it ends",
                first_step=curve.first_step,
                last_step=curve.last_step,
            )


@check(family="environment", figure="episode/ROLE/length")
def game_changed(log: Log) -> Iterator[Finding]:
    """Episode length or return jumped from one row to the next and stayed there, though neither a
    schedule nor a stage of the run's own curriculum changed the game there.

    The game was changed under the policy: another preset, a curriculum of another library, a reward
    weight, a time limit. A policy changes slowly; a game does not. Nor does a network that breaks:
    of jumps after that only not_finite speaks.

    Compare the parameters of the game before and after that step. If a curriculum did it, make its
    stages smaller.
    """
    broken = first_broken(log)
    for role in log.roles():
        lengths, returns = log.get(f"episode/{role}/length"), log.get(f"episode/{role}/return")
        if lengths is None or returns is None or len(lengths) < 40 or len(returns) != len(lengths):
            continue
        at, jump = _largest_jump(lengths.values)
        if jump < JUMP or (broken is not None and broken[1] <= lengths.steps[at]):
            continue
        if _changed_on_purpose(log, lengths.steps[at - SIDE], lengths.steps[at]):
            continue
        before, after = returns.values[at - SIDE : at], returns.values[at + 1 : at + 1 + SIDE]
        usual = max(noise(before), noise(after), key=lambda n: n.deviation)
        if certainty(before, after, usual) > -3:
            continue  # the return did not suffer: it may well be the policy's own doing
        yield Finding(
            check="game_changed",
            severity="warning",
            cause=f"episodes of {role} changed from one row to the next: the game is not the same "
            "any more",
            evidence=f"length {lengths.values[at - 5 : at].mean():.4g} before and "
            f"{lengths.values[at + 1 : at + 6].mean():.4g} after step "
            f"{int(lengths.steps[at]):,}, return {before.mean():.4g} and {after.mean():.4g}",
            confidence=0.5,
            fix="compare the game's parameters before and after that step",
            first_step=int(lengths.steps[at]),
            last_step=lengths.last_step,
        )


def _largest_jump(values: np.ndarray) -> tuple[int, float]:
    """Where the mean of the next rows differs most from that of the last ones, in ratio, with both
    sides steady. The row in between holds episodes of both games: it counts to neither side."""
    best, where = 1.0, 0
    for at in range(SIDE, len(values) - SIDE):
        a, b = values[at - SIDE : at], values[at + 1 : at + 1 + SIDE]
        if a.min() <= 0 or b.min() <= 0 or np.ptp(a) > 0.5 * a.mean() or np.ptp(b) > 0.5 * b.mean():
            continue
        ratio = max(a.mean() / b.mean(), b.mean() / a.mean())
        if ratio > best:
            best, where = float(ratio), at
    return where, best


def _changed_on_purpose(log: Log, first: float, last: float) -> bool:
    """Did the run's own curriculum change the game between these steps?"""
    stage = log.get("curriculum/stage")
    for curve in (*([stage] if stage is not None else []), *log.starting("game/")):
        inside = curve.values[(curve.steps >= first) & (curve.steps <= last)]
        if len(inside) and float(np.ptp(inside)) > 0:
            return True
    return False


@check(family="environment", figure="game/PARAM")
def game_values_change(log: Log) -> Iterator[Finding]:
    """A value of the game has changed since the run began, or is another one in training than in
    evaluation. Never more than a note.

    A schedule (`--game.trees "0 -> 20"`) or a stage of a curriculum did it, on purpose. Figures
    from before the change are of another game, and so are those of training beside those of
    evaluation as long as the two differ: an agent that catches all in the easy game may catch one
    in ten in the one that is evaluated. Checks that compare such figures leave them out, or are
    silent.

    Nothing is wrong. Compare training with evaluation once both play the same values; `game/PARAM`
    in metrics.jsonl shows when.
    """
    values = log.game_values()
    if not values:
        return
    told = [
        f"{v.name} {v.first:.3g} at first, {v.now:.3g} now"
        + (f" ({v.evaluated:.3g} in evaluations)" if v.differs else "")
        for v in values
    ]
    differ = any(v.differs for v in values)
    last = max(v.since for v in values)
    yield Finding(
        check="game_values_change",
        severity="info",
        cause=(
            "training plays another game than evaluation: "
            if differ
            else "the game changed while training, as planned: "
        )
        + f"{'; '.join(told[:3])}{' …' if len(told) > 3 else ''}",
        evidence=f"last change at step {int(last):,}; figures of training from before are of "
        "another game"
        if last >= 0
        else "no change so far",
        confidence=1.0,
        fix="nothing; compare training with evaluation once both play the same values",
        first_step=0,
        last_step=log.steps,
    )
