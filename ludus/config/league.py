"""Settings of who plays against whom in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ludus.config.limits import AtLeast
from ludus.errors import LudusError
from ludus.who import POOL, read_mix

if TYPE_CHECKING:
    from ludus.config.experiment import Config


@dataclass(kw_only=True)
class LeagueConfig:
    """Opponents in training."""

    mix: str = ""
    """Relative weights of who plays on the other side, such as "self 60, pool 20, bot:random 20"
    (default: everyone learns). self: the policy as it is now; pool: a snapshot of an earlier one;
    bot:NAME, or bot:package.module:NAME of your own."""
    sampler: str = "uniform"
    """Which snapshots: uniform, recent, latest, hard (those that win), even (those of equal
    strength), or package.module:function of your own."""
    snapshot_every: Annotated[int | None, AtLeast(0)] = None
    """Agent-steps between snapshots; 0: none are taken (default: a fiftieth of the budget, or of
    100 million)."""
    opponents: tuple[str, ...] = ()
    """Runs (RUN, RUN@STEP, RUN@best) of the same game and network whose policies are in the pool
    from the start, for good."""
    pool_size: Annotated[int, AtLeast(3)] = 200
    """Most snapshots to keep; thinned so that old ones stay."""
    slots: Annotated[int, AtLeast(1)] = 8
    """Snapshots that are in play at the same time, each in a block of envs."""
    renew_every: Annotated[int, AtLeast(1)] = 10
    """Iterations between replacing the snapshot of one slot by another."""

    def check(self, config: Config) -> None:
        """Refuses opponents that nobody could meet."""
        pool = uses_pool(config)
        if self.opponents and not pool:
            raise LudusError(
                "league.opponents are put in the pool, but nobody plays it: add pool to the mix"
            )
        if pool and config.envs < self.slots:
            raise LudusError(
                f"{config.envs} envs are fewer than the {self.slots} slots, and each needs one: "
                "use fewer slots"
            )


def uses_pool(config: Config) -> bool:
    """Does a snapshot of the pool ever play?"""
    return any(POOL in read_mix(mix) for mix in mixes(config))


def mixes(config: Config) -> Sequence[str]:
    """Those that a run plays, one after the other; empty ones are no opponents."""
    return [stage.mix for stage in config.curriculum.stages] or [config.league.mix]
