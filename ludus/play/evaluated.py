"""The names of the metrics that a config's evaluations write, before any was played."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ludus.batches import GameInfo
from ludus.config import Config
from ludus.errors import LudusError
from ludus.intervals import GREEDY
from ludus.play.evaluate import metric_names
from ludus.play.opponents import spelled_out
from ludus.who import POOL, SNAPSHOTS


def evaluated(config: Config, info: GameInfo) -> list[str]:
    """The names of the metrics that this config's evaluations write, without those of their
    intervals."""
    names = []
    for who in spelled_out(config.eval.against, info.layout, info.bots):
        seated = POOL if who.kind == SNAPSHOTS else str(who)
        names += [
            f"eval/{who}/{name}" for name in metric_names(info.layout, info.game, info.bots, seated)
        ]
    return names


def refuse_unevaluated(setting: str, chosen: str, names: Sequence[str], greedy: bool) -> None:
    """A metric that something waits for must be one of those that evaluations write."""
    if chosen in names or (greedy and chosen.removesuffix(GREEDY) in names):
        return
    close = difflib.get_close_matches(chosen, names, 3, 0.5)
    opponents, metrics = (dict.fromkeys(name.split("/", 2)[k] for name in names) for k in (1, 2))
    first = f"use {' or '.join(close)}; there is" if close else "there is"
    raise LudusError(
        f"{setting}={chosen} will not be evaluated: {first} eval/AGAINST/METRIC with AGAINST one "
        f"of {', '.join(opponents) or 'nobody'} "
        f"and METRIC one of {', '.join(metrics) or 'nothing'}"
        + (", each also with _greedy" if greedy else "")
    )
