"""Settings of who plays against whom in training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class LeagueConfig:
    """Opponents in training."""

    mix: str = ""
    """Relative weights of who plays on the other side, such as "self 60, pool 20, bot:random 20"
    (default: everyone learns). self: the policy as it is now; pool: a snapshot of an earlier one;
    bot:NAME."""
    sampler: str = "uniform"
    """Which snapshots: uniform, recent, latest, hard (those that win) or even (those of equal
    strength)."""
    snapshot_every: int | None = None
    """Agent-steps between snapshots; 0: none are taken (default: a fiftieth of the budget, or of
    100 million)."""
    opponents: tuple[str, ...] = ()
    """Runs (RUN, RUN@STEP, RUN@best) of the same game and network whose policies are in the pool
    from the start, for good."""
    pool_size: int = 200
    """Most snapshots to keep; thinned so that old ones stay."""
    slots: int = 8
    """Snapshots that are in play at the same time, each in a block of envs."""
    renew_every: int = 10
    """Iterations between replacing the snapshot of one slot by another."""
