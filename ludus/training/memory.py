"""What a run needs of memory, counted before anything is allocated."""

from __future__ import annotations

import torch

from ludus.algorithms.replay_buffer import Replay
from ludus.algorithms.rollout import RoleRollout
from ludus.batches import GameInfo
from ludus.config import Config, uses_pool
from ludus.errors import LudusError
from ludus.machine import free_memory
from ludus.networks.heads import action_space
from ludus.networks.policy import Policy

# of a GPU: networks, activations of a minibatch, captured graphs and other programs share the rest
SPARE = 0.8


def bytes_per_env(config: Config, info: GameInfo) -> int:
    return sum(parts_per_env(config, info).values())


def parts_per_env(config: Config, info: GameInfo) -> dict[str, int]:
    """Bytes of `state` (state and arrays of the simulator) and, with PPO, of every role's `rollout`
    and of the `memory` that policies carry from step to step: those that learn, and past opponents
    where the league has any."""
    layout, parts = info.layout, {"state": info.state_bytes}
    if config.algorithm != "ppo":
        return parts
    learn = config.learn
    players = 2 if uses_pool(config) else 1  # an env meets the snapshot of one slot
    parts |= {"rollout": 0, "memory": 0}
    for seats in layout.seats:
        space = action_space(layout.actions_of(seats.role), config.policy.state_dependent_std)
        policy = Policy(layout.observation, space, config.policy, layout.seen)
        masked = layout.sizes["num_masked"] if space.masked else 0
        rows = seats.count * seats.teams
        # the CPU stores some of it in other types
        where = "meta" if config.device == "cuda" else "cpu"
        rollout = RoleRollout(learn.rollout, learn.bptt or 1, rows, policy, masked, where)
        parts["rollout"] += rollout.nbytes
        parts["memory"] += players * policy.initial_state(rows).nbytes
    return parts


def replay_bytes(config: Config, info: GameInfo) -> int:
    """What Rainbow's replay keeps, for all roles."""
    layout = info.layout
    c, total = config.rainbow, 0
    for seats in layout.seats:
        masked = layout.sizes["num_masked"]
        rows = seats.count * seats.teams * config.envs
        total += Replay(
            c.replay,
            rows,
            len(layout.observation),
            masked,
            layout.seen,
            n_step=c.n_step,
            device="meta",
        ).nbytes
    return total


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
    envs, room = bytes_per_env(config, info) * config.envs, int(free * share)
    if envs > room:
        raise LudusError(
            f"{config.envs:,} envs of {config.game} need {envs / 1e9:.1f} GB with what is kept of "
            "their steps, and "
            f"{free / 1e9:.1f} GB {whose} are free: set --envs to at most "
            f"{room * config.envs // envs:,}"
        )
    if (
        config.algorithm == "rainbow"
        and fills_replay(config, info)
        and (replay := replay_bytes(config, info)) > room - envs
    ):
        whole = config.rainbow.replay // config.envs  # transitions are kept for all envs at once
        most = (room - envs) * whole // replay * config.envs
        raise LudusError(
            f"a replay of {config.rainbow.replay:,} transitions needs {replay / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB {whose} are "
            f"free: set rainbow.replay to at most {most:,}"
        )


def fills_replay(config: Config, info: GameInfo) -> bool:
    """A GPU's memory is taken at once; on the CPU a replay takes it as it fills, and a short run
    may never fill it."""
    return config.device == "cuda" or (
        config.train.total_agent_steps or 0
    ) >= config.rainbow.replay * len(info.layout.seats)
