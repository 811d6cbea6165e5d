"""How a trained run plays: what `ludus eval` measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ludus.batches import make_batch, try_bots
from ludus.config import bots_named
from ludus.errors import LudusError
from ludus.intervals import difference
from ludus.machine import one_thread
from ludus.play.evaluate import better_than, intervals
from ludus.play.lineups import sides
from ludus.play.opponents import Rivals, measure_each
from ludus.play.silence import silenced
from ludus.runs.load import check_same_layout, load_policies
from ludus.runs.run import Run, split_reference
from ludus.who import BOTS, own_bots


@one_thread()
def measure_run(
    reference: str | Path,
    against: Sequence[str],
    episodes: int,
    *,
    on: str | None = None,
    seed: int | None = None,
    greedy: bool = False,
    silence: bool = False,
) -> dict[str, Any]:
    """See `ludus.evaluate`."""
    folder, _ = split_reference(str(reference))
    run = Run(folder)
    config = replace(run.config(), device="cpu")
    policies, layout = load_policies(str(reference))
    if episodes < 1:
        raise LudusError(f"{episodes} episodes measure nothing: use at least 1")
    if on is not None:
        config = replace(config, game=on, game_values={})
    # not the seed that chose the best checkpoint
    chosen = config.eval.seed + 1 if seed is None else seed
    # of the run's own bots only those that play
    bots = [*own_bots(against), *(bots_named(config) if BOTS in against else ())]
    bots = list(dict.fromkeys(bots))
    try_bots(config, bots)
    first = make_batch(config, 1, 0, bots=bots)
    if on is not None:
        check_same_layout(layout, first.layout.describe(), f"{folder} and {on}")
    quiet = silenced(policies, layout, config) if silence else {}
    rivals = Rivals(run).find(against, first.layout, first.controllers)
    single = len(rivals) == 1 and not rivals[0].groups

    def measured(playing: Mapping[str, Any]) -> dict[str, np.ndarray]:
        values = measure_each(
            lambda n: make_batch(config, n, chosen, held_out=True, bots=bots),
            playing,
            rivals,
            episodes,
            chosen,
            greedy,
        )
        if single:
            return {name.removeprefix(f"{rivals[0].name}/"): v for name, v in values.items()}
        if not sides(first.layout):
            values |= better_than(
                first.game, values, [rival.name for rival in rivals if rival.name != "self"]
            )
        return values

    values = measured(policies)
    if not values:
        raise LudusError(f"{config.game} has nobody to play {' or '.join(against)} against")
    metrics = intervals(values, first.game.goal_metrics)
    if quiet:
        without = measured(quiet)
        metrics |= {
            f"silenced/{name}": value
            for name, value in intervals(without, first.game.goal_metrics).items()
        }
        metrics |= {
            f"heard_minus_silenced/{name}": difference(v, without[name])
            for name, v in values.items()
        }
    return {
        "run": str(folder),
        "step": layout["step"],
        "against": against[0] if len(against) == 1 else list(against),
        "episodes": episodes,
        "greedy": greedy,
        "metrics": metrics,
        **({} if single else {"opponents": {rival.name: list(rival.groups) for rival in rivals}}),
    }
