"""What episodes of random play and of doing nothing say about an env whose reward nobody declared.
Pure: numbers in, findings out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ludus.doctor.finding import Finding, worst_first

ENOUGH = 10  # episodes of random play to judge by
RARE = 0.05
LONG = 5.0  # horizons of the discount


@dataclass(frozen=True)
class Trial:
    """One role: returns and lengths of whole episodes, and what was seen on the way."""

    role: str
    returns: np.ndarray
    lengths: np.ndarray
    still_returns: np.ndarray
    """Of episodes in which it did nothing."""
    paid_share: float
    """Of steps: how many paid anything."""
    longest_open: int
    """Steps of the longest episode that had not ended when the trial did."""
    constant_entries: tuple[str, ...]
    """Observation entries that never changed."""
    steps_per_s: float
    least_reward: float = 0.0
    most_reward: float = 0.0
    """Of a step."""
    cut_share: float = 0.0
    """Of episodes: how many a time limit cut (truncated), instead of an end of their own."""
    shows_time: bool = True
    """Some observation entry tells how many steps were made."""
    unlimited_entries: tuple[str, ...] = ()
    """Observation entries whose space declares no limits."""
    normalised: bool = True


def judge(trial: Trial, gamma: float, gamma_option: str = "gamma") -> list[Finding]:
    """`gamma_option`: the full name of what sets gamma."""
    if len(trial.returns) < ENOUGH and trial.longest_open > 10 * max(
        1, int(trial.lengths.max(initial=0))
    ):
        return [_of(trial.role, _no_end(trial))]
    checks = (
        _signal(trial),
        _doing_nothing(trial),
        _credit(trial, gamma, gamma_option),
        _hidden_limit(trial),
        _constant(trial),
        _unlimited(trial),
    )
    found = [_summary(trial, gamma), *(finding for check in checks for finding in check)]
    return worst_first([_of(trial.role, finding) for finding in found])


def _of(role: str, finding: Finding) -> Finding:
    """Says whose it is: roles may have the same troubles, each with its own numbers."""
    return replace(finding, cause=f"{role}: {finding.cause}")


def _summary(trial: Trial, gamma: float) -> Finding:
    returns, lengths = trial.returns, trial.lengths
    ends = (
        f"{trial.cut_share:.0%} of them cut by a time limit"
        if trial.cut_share
        else "none cut by a time limit"
    )
    ahead = f"{1 / (1 - gamma):.0f} steps" if gamma < 1 else "without end"
    earned = (
        f"{returns.mean():.4g} (from {returns.min():.4g} to {returns.max():.4g})"
        if len(returns)
        else "nothing yet"
    )
    nothing = (
        f"; doing nothing {trial.still_returns.mean():.4g}" if len(trial.still_returns) else ""
    )
    return Finding(
        check="random_play",
        severity="info",
        cause="what training starts from: the reward is not declared, so it was tried out",
        evidence=f"{len(returns)} random episodes of "
        f"{np.median(lengths) if len(lengths) else 0:.0f} steps ({ends}) earn "
        f"{earned}{nothing}; {trial.paid_share:.0%} of the steps pay, from "
        f"{trial.least_reward:.4g} to {trial.most_reward:.4g}; "
        f"gamma {gamma:g} looks {ahead} ahead; {trial.steps_per_s:,.0f} steps a second",
        fix="a trained policy must be clearly better than both; describe the reward in a file for "
        "the full audit (--rewards FILE)",
        confidence=1.0,
    )


def _no_end(trial: Trial) -> Finding:
    return Finding(
        check="no_end",
        severity="warning",
        cause="episodes do not end by themselves",
        evidence=f"an episode had not ended after {trial.longest_open:,} steps of random play",
        fix="set a time limit (gymnasium.wrappers.TimeLimit, or max_episode_steps where the env is "
        "registered)",
        confidence=0.8,
    )


def _signal(trial: Trial) -> Iterator[Finding]:
    if len(trial.returns) < ENOUGH:
        return
    values, counts = np.unique(np.round(trial.returns, 6), return_counts=True)
    usual = float(values[counts.argmax()])
    other = 1.0 - counts.max() / len(trial.returns)
    if other > RARE:
        return
    yield Finding(
        check="no_signal" if other == 0 else "goal_too_rare",
        severity="warning",
        cause="random play earns the same in every episode: there is nothing to learn from at the "
        "start"
        if other == 0
        else "random play meets the goal so rarely that learning may not start",
        evidence=f"{counts.max()} of {len(trial.returns)} episodes earn exactly {usual:.4g}",
        fix="add a potential-based progress reward, start episodes near the goal, or explore more",
        confidence=0.8 if other == 0 else 0.6,
    )


def _doing_nothing(trial: Trial) -> Iterator[Finding]:
    if len(trial.returns) < ENOUGH or len(trial.still_returns) < 3:
        return
    gap = float(trial.still_returns.mean() - trial.returns.mean())
    noise = float(
        np.sqrt(
            trial.returns.var() / len(trial.returns)
            + trial.still_returns.var() / len(trial.still_returns)
        )
    )
    if gap <= 3 * noise or gap <= 0.05 * abs(float(trial.returns.mean())):
        return
    # many a random episode does better: there is a way up from standing still
    if gap <= float(trial.returns.std()):
        return
    yield Finding(
        check="doing_nothing_pays",
        severity="warning",
        cause="doing nothing earns more than trying: a policy may learn to stand still before it "
        "finds the goal",
        evidence=f"doing nothing earns {trial.still_returns.mean():.4g}, random actions "
        f"{trial.returns.mean():.4g}",
        fix="lower the cost of acting at first (a schedule), or pay for progress",
        confidence=0.6,
    )


def _credit(trial: Trial, gamma: float, gamma_option: str) -> Iterator[Finding]:
    if len(trial.returns) < ENOUGH or gamma >= 1:
        return
    length, horizon = float(np.median(trial.lengths)), 1.0 / (1.0 - gamma)
    if length < LONG * horizon or trial.paid_share * length > 2:
        return
    yield Finding(
        check="credit_too_late_for_the_discount",
        severity="warning",
        cause="the reward comes at the end, and the discount cannot see that far",
        evidence=f"episodes of {length:.0f} steps pay {trial.paid_share * length:.1f} times; gamma "
        f"{gamma:g} looks "
        f"{horizon:.0f} steps ahead, so an early step is worth {gamma**length:.1e} of it",
        fix=f"raise {gamma_option} to {1 - 1 / length:.4g}, or pay for progress",
        confidence=0.6,
    )


def _hidden_limit(trial: Trial) -> Iterator[Finding]:
    """Ends that come by the clock, and nobody shows the clock: the value of a state cannot be told
    from the state."""
    lengths = trial.lengths
    if (
        len(lengths) < ENOUGH
        or trial.cut_share
        or trial.shows_time
        or lengths.min() != lengths.max()
        or lengths.max() <= 1
    ):
        return
    yield Finding(
        check="time_limit_not_observed",
        severity="warning",
        cause="episodes end by the clock, call it their own end, and do not show the clock: states "
        "before the end look worth nothing",
        evidence=f"all {len(lengths)} random episodes terminated after exactly {lengths.max():.0f} "
        "steps, and no "
        f"observation entry counts them",
        fix="report a time limit as truncated (gymnasium.wrappers.TimeLimit), or show the time "
        "that is left "
        "(gymnasium.wrappers.TimeAwareObservation)",
        confidence=0.7,
    )


def _constant(trial: Trial) -> Iterator[Finding]:
    if not trial.constant_entries:
        return
    shown = ", ".join(trial.constant_entries[:8]) + (
        " …" if len(trial.constant_entries) > 8 else ""
    )
    yield Finding(
        check="constant_entries",
        severity="info",
        cause="some observation entries never change",
        evidence=f"{len(trial.constant_entries)} entries stayed the same in all random play: "
        f"{shown}",
        fix="leave them out if they can never change: each costs a column of weights",
        confidence=0.5,
    )


def _unlimited(trial: Trial) -> Iterator[Finding]:
    if not trial.unlimited_entries:
        return
    shown = ", ".join(trial.unlimited_entries[:8]) + (
        " …" if len(trial.unlimited_entries) > 8 else ""
    )
    on = "nothing to do: observations are normalised by what was seen of them"
    yield Finding(
        check="unlimited_entries",
        severity="info",
        cause="some observation entries have no declared limits",
        evidence=shown,
        fix=on
        if trial.normalised
        else "turn policy.normalise_observation on, or divide them by their largest likely value",
        confidence=0.5,
    )
