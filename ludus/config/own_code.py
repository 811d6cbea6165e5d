"""Which of the user's own code a config names, by import path: package.module:name. Nothing is
imported here: whoever reads somebody's config decides first whether it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ludus.config.league import mixes
from ludus.imports import is_path
from ludus.who import own_bots, read_mix

if TYPE_CHECKING:
    from ludus.config.experiment import Config


def bots_named(config: Config) -> list[str]:
    """The bots of the user's own that play in training or in evaluations, each once."""
    stages = config.curriculum.stages
    return own_bots(
        [
            *(name for mix in mixes(config) for name in read_mix(mix)),
            *(name for stage in stages for name in (stage.opponent, stage.metric)),
            *config.eval.against,
            config.checkpoint.best_metric or "",
        ]
    )


def own_code(config: Config) -> dict[str, str]:
    """All code of the user's own beside the game: its import path → what it is."""
    named = {
        config.algorithm: "algorithm",
        config.policy.network: "network",
        config.league.sampler: "sampler",
        config.curriculum.tasks.sampler: "sampler",
        **dict.fromkeys(bots_named(config), "bot"),
        **dict.fromkeys(config.log.sinks, "sink"),
        **dict.fromkeys(config.doctor.checks, "check"),
        **dict.fromkeys(config.callbacks, "callback"),
    }
    return {name: kind for name, kind in named.items() if is_path(name)}
