"""Opponents that a config names but nobody could meet."""

from __future__ import annotations

from ludus.batches import GameInfo
from ludus.config import Config, mixes, uses_pool
from ludus.errors import LudusError
from ludus.league.matchmaking import check_sampler
from ludus.play.lineups import make_lineups
from ludus.play.opponents import spelled_out
from ludus.who import SNAPSHOTS, read_mix


def check_opponents(config: Config, info: GameInfo) -> None:
    """Refuses opponents of training and of evaluations that do not exist: not an error for later,
    when a tenth is trained."""
    spelled_out(config.eval.against, info.layout, info.bots)
    taken = uses_pool(config) and config.league.snapshot_every
    if SNAPSHOTS in config.eval.against and not taken:
        raise LudusError(
            "eval.against has snapshots, but none are taken: add pool to league.mix, and set "
            "league.snapshot_every"
        )
    check_sampler(config.league.sampler)
    for mix in mixes(config):
        if mix and info.game is None:
            raise LudusError(f"league.mix '{mix}': {config.game} has no opponents; leave it empty")
        lineups = make_lineups(info.layout, info.bots, read_mix(mix))
        for opponent in read_mix(mix).keys() - {lineup.opponent for lineup in lineups}:
            raise LudusError(
                f"league.mix has '{opponent}', but it does not play all roles of any other side: "
                "name a bot that does"
            )
