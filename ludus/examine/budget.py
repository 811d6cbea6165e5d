"""What a config comes to on this machine: updates, episodes, memory, exploration, checkpoints."""

from __future__ import annotations

from ludus.batches import game_info
from ludus.config import Config
from ludus.doctor.before.budget import Budget
from ludus.machine import cores, free_memory

LOOKED_AT = (0.1, 0.5, 0.9)
HOUR = 3600.0
"""A shorter run may well do with the checkpoint at its end."""


def examine_budget(
    config: Config, *, small: Config, small_bytes: int, episode_length: float, max_steps: int | None
) -> Budget:
    """`small`: a small version of the config that was tried out, with the bytes of its buffers."""
    settings = config.learner
    rows = sum(game_info(config).rows(config.envs).values())
    small_rows = sum(game_info(small).rows(small.envs).values())
    rollout = rows * settings.rollout
    total = config.train.total_agent_steps
    checkpoint = config.checkpoint
    between = (
        checkpoint.every_agent_steps / rollout if checkpoint.every_agent_steps is not None else None
    )
    return Budget(
        section=config.section,
        iterations=total / rollout if total is not None else None,
        updates=settings.updates(total, rows) if total is not None else None,
        episodes_per_env=total / rows / max_steps if total is not None and max_steps else None,
        buffer_bytes=small_bytes * settings.kept_rows(rows) / small.learner.kept_rows(small_rows),
        free_bytes=free_memory(),
        threads=config.train.threads,
        cores=cores(),
        epsilon=_random_actions(config, total, episode_length) if total is not None else {},
        noisy=settings.explores_by_noise,
        warm_up_share=settings.before_first_update / total if total else None,
        checkpoints=_checkpoints(config, total),
        iterations_per_checkpoint=between,
    )


def _random_actions(config: Config, total: int, episode_length: float) -> dict[float, float]:
    """Their share at some places of the budget, where the algorithm acts at random at all."""
    shares = {
        s: config.learner.random_actions(int(s * total), int(s * total / max(1.0, episode_length)))
        for s in LOOKED_AT
    }
    return {s: share for s, share in shares.items() if share is not None}


def _checkpoints(config: Config, total: int | None) -> float | None:
    """In the whole run, where both the run and the interval are counted in the same unit."""
    c, seconds = config.checkpoint, config.train.total_seconds
    if c.every_seconds is None and c.every_agent_steps is None:
        return 0.0
    if c.every_seconds is not None:
        return (
            seconds / c.every_seconds
            if seconds is not None and c.every_agent_steps is None and seconds > HOUR
            else None
        )
    return (
        total / c.every_agent_steps
        if total is not None and c.every_agent_steps is not None
        else None
    )
