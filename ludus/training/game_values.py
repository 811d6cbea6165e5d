"""Game values that change while a run trains, by a schedule or from stage to stage: as metrics, and
as a line for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.batches import find_game, is_foreign, values_evaluated
from ludus.config import Config
from ludus.config.schedules import parse
from ludus.protocols import Batch
from ludus.sim import Batch as GameBatch

EVALUATED = "_evaluated"


def changing(config: Config) -> list[str]:
    """Their names: sizes, parameters, and reward.TERM weights."""
    scheduled = [
        name
        for name, value in config.game_values.items()
        if len(parse(value, f"game.{name}").points) > 1
    ]
    return list(
        dict.fromkeys(
            [*scheduled, *(name for stage in config.curriculum.stages for name in stage.game)]
        )
    )


def evaluated_values(config: Config) -> dict[str, float]:
    """Of those that change: what evaluations play, the same from the first to the last."""
    names = changing(config)
    if not names or is_foreign(config.game):
        return {}
    game, preset = find_game(config.game)
    settings = game.resolve(values_evaluated(config, game, validation=True), preset)
    weights = {f"reward.{term}": weight for term, weight in settings.weights.items()}
    values = {**settings.sizes, **settings.params, **weights}
    return {name: float(values[name]) for name in names}


def game_metrics(batch: Batch, evaluated: Mapping[str, float]) -> dict[str, float]:
    """What the envs play now, in the mean: a new value takes effect in each env's next episode.
    Beside it what evaluations play."""
    out = {}
    for name, value in evaluated.items():
        assert isinstance(batch, GameBatch)  # other envs have no values that could change
        sizes = batch.settings.sizes
        held = sizes[name] if name in sizes else np.mean(batch.held(name), dtype=np.float64)
        out[f"game/{name}"] = float(f"{held:.6g}")
        out[f"game/{name}{EVALUATED}"] = float(f"{value:.6g}")
    return out


def game_line(line: Mapping[str, Any]) -> str:
    """One line about the values that change, such as "chaser_speed 0.41 (evaluations play 0.25)";
    "" where none does."""
    parts = []
    for key, value in line.items():
        if key.startswith("game/") and not key.endswith(EVALUATED):
            evaluated = line.get(f"{key}{EVALUATED}", value)
            other = f" (evaluations play {evaluated:.3g})" if evaluated != value else ""
            parts.append(f"{key.removeprefix('game/')} {value:.3g}{other}")
    return ", ".join(parts)
