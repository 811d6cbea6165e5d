"""What a run needs of memory, counted before anything is allocated."""

from __future__ import annotations

import torch

from ludus.algorithms.algorithm import Memory, algorithm_class
from ludus.batches import GameInfo
from ludus.config import Config, uses_pool
from ludus.errors import LudusError
from ludus.machine import free_memory

# of a GPU: networks, activations of a minibatch, captured graphs and other programs share the rest
SPARE = 0.8


def of_algorithm(config: Config, info: GameInfo) -> Memory:
    """What the algorithm needs."""
    players = 2 if uses_pool(config) else 1  # an env meets the snapshot of one slot
    return algorithm_class(config.algorithm).memory(config, info.layout, players)


def parts_per_env(config: Config, info: GameInfo) -> dict[str, int]:
    """Bytes of `state` (state and arrays of the simulator), and what the algorithm needs of every
    env."""
    return {"state": info.state_bytes, **of_algorithm(config, info).per_env}


def check_memory(config: Config, info: GameInfo) -> None:
    """Refuses what does not fit, and names what would. Linux gives out more memory than there is,
    and kills the process that uses it: without this, training on the CPU would end in its first
    iteration, without a word."""
    if config.device == "cuda":
        free, share, whose = torch.cuda.mem_get_info()[0], SPARE, "of the GPU"
    else:
        found = free_memory()
        if found is None or info.game is None:
            return
        free, share, whose = found, 1.0, "of memory"
    envs, room = sum(parts_per_env(config, info).values()) * config.envs, int(free * share)
    if envs > room:
        raise LudusError(
            f"{config.envs:,} envs of {config.game} need {envs / 1e9:.1f} GB with what is kept of "
            "their steps, and "
            f"{free / 1e9:.1f} GB {whose} are free: set --envs to at most "
            f"{room * config.envs // envs:,}"
        )
    needed = of_algorithm(config, info)
    if needed.kept > room - envs and fills(config, info):
        rows = config.learner.kept_rows(sum(info.rows(config.envs).values()))
        setting = algorithm_class(config.algorithm).memory_setting
        whole = rows // config.envs  # transitions are kept for all envs at once
        most = (room - envs) * whole // needed.kept * config.envs
        raise LudusError(
            f"{config.section}.{setting}={rows:,} needs {needed.kept / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB {whose} are free: set it to at most {most:,}"
        )


def fills(config: Config, info: GameInfo) -> bool:
    """Will all that may be kept be there? A GPU's memory is taken at once; on the CPU a replay
    takes it as it fills, and a short run may never fill it."""
    rows = config.learner.kept_rows(sum(info.rows(config.envs).values()))
    budget = config.train.total_agent_steps or 0
    return config.device == "cuda" or budget >= rows * len(info.layout.seats)
