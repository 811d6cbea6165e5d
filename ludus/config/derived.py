"""Values that follow from others: where a setting is None, what it comes to."""

from __future__ import annotations

import copy

from ludus.config.experiment import Config


def resolve(config: Config) -> Config:
    """A copy with derived values filled in."""
    config = copy.deepcopy(config)
    config.learner.resolve(config)
    config.policy.network_settings.resolve()
    if config.train.dtype is None:
        config.train.dtype = "bfloat16" if config.device == "cuda" else "float32"
    budget = config.train.total_agent_steps
    if config.league.snapshot_every is None:
        config.league.snapshot_every = max(1, (budget or 100_000_000) // 50)
    if config.eval.every_agent_steps is None and config.eval.every_seconds is None:
        if budget is not None:
            config.eval.every_agent_steps = max(1, budget // 10)
        elif config.train.total_seconds is not None:
            config.eval.every_seconds = config.train.total_seconds / 10
    return config
