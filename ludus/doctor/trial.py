"""What episodes of random play and of doing nothing say about an env whose reward nobody declared. Pure: numbers in, findings out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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


def judge(trial: Trial, gamma: float) -> list[Finding]:
    if len(trial.returns) < ENOUGH and trial.longest_open > 10 * max(1, int(trial.lengths.max(initial=0))):
        return [_no_end(trial)]
    found = [_summary(trial), *_signal(trial), *_doing_nothing(trial), *_credit(trial, gamma), *_constant(trial)]
    return worst_first(found)


def _summary(trial: Trial) -> Finding:
    returns, lengths = trial.returns, trial.lengths
    earned = f"{returns.mean():.4g} (from {returns.min():.4g} to {returns.max():.4g})" if len(returns) else "nothing yet"
    nothing = f"; doing nothing {trial.still_returns.mean():.4g}" if len(trial.still_returns) else ""
    return Finding(
        check="random_play",
        severity="info",
        cause="what training starts from: the reward is not declared, so it was tried out",
        evidence=f"{trial.role}: {len(returns)} random episodes of {np.median(lengths) if len(lengths) else 0:.0f} steps earn {earned}"
        f"{nothing}; {trial.paid_share:.0%} of the steps pay; {trial.steps_per_s:,.0f} steps a second",
        fix="a trained policy must be clearly better than both; describe the reward in a file for the full audit (--rewards FILE)",
        confidence=1.0,
    )


def _no_end(trial: Trial) -> Finding:
    return Finding(
        check="no_end",
        severity="warning",
        cause="episodes do not end by themselves",
        evidence=f"{trial.role}: an episode had not ended after {trial.longest_open:,} steps of random play",
        fix="set a time limit (gymnasium.wrappers.TimeLimit, or max_episode_steps where the env is registered)",
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
        cause="random play earns the same in every episode: there is nothing to learn from at the start"
        if other == 0
        else "random play meets the goal so rarely that learning may not start",
        evidence=f"{trial.role}: {counts.max()} of {len(trial.returns)} episodes earn exactly {usual:.4g}",
        fix="add a potential-based progress reward, start episodes near the goal, or explore more (learn.entropy)",
        confidence=0.8 if other == 0 else 0.6,
    )


def _doing_nothing(trial: Trial) -> Iterator[Finding]:
    if len(trial.returns) < ENOUGH or len(trial.still_returns) < 3:
        return
    gap = float(trial.still_returns.mean() - trial.returns.mean())
    noise = float(np.sqrt(trial.returns.var() / len(trial.returns) + trial.still_returns.var() / len(trial.still_returns)))
    if gap <= 3 * noise or gap <= 0.05 * abs(float(trial.returns.mean())):
        return
    yield Finding(
        check="doing_nothing_pays",
        severity="warning",
        cause="doing nothing earns more than trying: a policy may learn to stand still before it finds the goal",
        evidence=f"{trial.role}: doing nothing earns {trial.still_returns.mean():.4g}, random actions {trial.returns.mean():.4g}",
        fix="lower the cost of acting at first (a schedule), or pay for progress",
        confidence=0.6,
    )


def _credit(trial: Trial, gamma: float) -> Iterator[Finding]:
    if len(trial.returns) < ENOUGH or gamma >= 1:
        return
    length, horizon = float(np.median(trial.lengths)), 1.0 / (1.0 - gamma)
    if length < LONG * horizon or trial.paid_share * length > 2:
        return
    yield Finding(
        check="credit_too_late_for_the_discount",
        severity="warning",
        cause="the reward comes at the end, and the discount cannot see that far",
        evidence=f"{trial.role}: episodes of {length:.0f} steps pay {trial.paid_share * length:.1f} times; gamma {gamma:g} looks "
        f"{horizon:.0f} steps ahead, so an early step is worth {gamma**length:.1e} of it",
        fix=f"raise learn.gamma to {1 - 1 / length:.4g}, or pay for progress",
        confidence=0.6,
    )


def _constant(trial: Trial) -> Iterator[Finding]:
    if not trial.constant_entries:
        return
    shown = ", ".join(trial.constant_entries[:8]) + (" …" if len(trial.constant_entries) > 8 else "")
    yield Finding(
        check="constant_entries",
        severity="info",
        cause="some observation entries never change",
        evidence=f"{trial.role}: {len(trial.constant_entries)} entries stayed the same in all random play: {shown}",
        fix="leave them out if they can never change: each costs a column of weights",
        confidence=0.5,
    )
