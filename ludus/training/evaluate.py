"""Playing to measure: a policy against itself, bots or other policies, on seeds that were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from ludus.errors import LudusError, nearest
from ludus.intervals import interval
from ludus.policies.player import Player
from ludus.policies.policy import Policy
from ludus.sim import Batch
from ludus.training.replay import Recorder

MOST_ENVS = 256


def play(batch: Any, players: list[Player], episodes: int, seed: int, recorder: Recorder | None = None) -> dict[str, np.ndarray]:
    """Exactly `episodes` episodes, the same number from every env (short ones must not count more often).

    Returns per episode and agent: return, length, outcome, and every goal metric, as [episodes, agents].
    """
    rounds = -(-episodes // batch.num_envs)
    played = np.zeros(batch.num_envs, int)
    names = ["return", "length", "outcome", *batch.layout.goals]
    results = {name: np.zeros((rounds, batch.num_envs, batch.layout.num_agents)) for name in names}
    torch.manual_seed(seed)
    while (played < rounds).any():
        for player in players:
            player.act()
        if recorder is not None:
            recorder.before()
        batch.step()
        if recorder is not None:
            recorder.after()
        done = np.flatnonzero(batch.numpy("counted") & (played < rounds))
        if len(done):
            values = {"return": "episode_return", "length": "episode_length", "outcome": "outcome"}
            for name, source in values.items():
                results[name][played[done], done] = batch.numpy(source)[done]
            for i, name in enumerate(batch.layout.goals):
                results[name][played[done], done] = batch.numpy("goals")[done][..., i]
            played[done] += 1
    # round after round in the order of envs: which episodes count does not depend on how long they took
    return {name: values.reshape(-1, batch.layout.num_agents)[:episodes] for name, values in results.items()}


def opponents(batch_game: Any, controllers: Mapping[str, Mapping[str, int]], against: str) -> list[tuple[str, dict[str, str]]]:
    """Who plays whom: (role that is measured, role → bot for the others). 'self': all policies, every role measured."""
    roles = [role.name for role in batch_game.roles] if batch_game is not None else ["agent"]
    if against == "self":
        return [("", {})]
    bot = against.removeprefix("bot:")
    known = sorted({name for bots in controllers.values() for name in bots})
    if not against.startswith("bot:") or bot not in known:
        raise LudusError(f"unknown opponent '{against}': {nearest(against, ['self', *(f'bot:{n}' for n in known)])}")
    if len(roles) == 1:
        if batch_game is None or getattr(batch_game.roles[0], "teams", 1) < 2:
            return [] if bot != "random" else [("", {roles[0]: bot})]
        return [(roles[0], {roles[0]: bot})]
    return [
        (role, {o: bot for o in roles if o != role}) for role in roles if all(bot in controllers[o] for o in roles if o != role)
    ]


def against_list(controllers: Mapping[str, Mapping[str, int]], wanted: tuple[str, ...], single: bool) -> list[str]:
    """'bots' spelled out."""
    out: list[str] = []
    for name in wanted:
        if name == "bots":
            bots = dict.fromkeys(n for table in controllers.values() for n in table)
            out += [] if single else [f"bot:{n}" for n in bots]
        else:
            out.append(name)
    return list(dict.fromkeys(out))


def evaluate(
    make: Callable[[int], Any],
    policies: Mapping[str, Policy],
    against: str,
    episodes: int,
    seed: int,
    greedy: bool = False,
    keep: Callable[[Recorder, str], None] | None = None,
) -> dict[str, dict[str, float]]:
    """Metrics with intervals. `make(num_envs)` gives a fresh batch on held-out seeds. Actions are sampled, or greedy.

    `keep(recorder, role)` is handed what was recorded, to store replays.
    """
    batch = make(min(episodes, MOST_ENVS))
    metrics: dict[str, dict[str, float]] = {}
    for policy in policies.values():
        policy.eval()
    for measured, bots in opponents(batch.game, batch.controllers, against):
        players, shown = _seat(batch, policies, measured, bots, greedy)
        batch.arrays["finished"][...] = True
        batch.step()
        batch.read_statistics()
        recorder = Recorder(batch) if keep is not None and isinstance(batch, Batch) else None
        result = play(batch, players, episodes, seed, recorder)
        if keep is not None and recorder is not None:
            keep(recorder, measured)
        for role, agents in shown:
            metrics |= _summary(batch, role, agents, result, several=len(batch.layout.seats) > 1)
    return metrics


def _seat(
    batch: Any, policies: Mapping[str, Policy], measured: str, bots: Mapping[str, str], greedy: bool
) -> tuple[list[Player], list]:
    """Players for the agents that policies act for, and the (role, agents) to report."""
    players, shown = [], []
    for seats in batch.layout.seats:
        agents, role = seats.agents, seats.role
        batch.set_controller(role, "policy")
        if role in bots and role == measured and seats.teams > 1:  # a symmetric game: the bot takes every other team
            for team in range(1, seats.teams):
                batch.set_controller(role, bots[role], team=team)
            agents = slice(seats.start, seats.start + seats.count)
        elif role in bots:
            batch.set_controller(role, bots[role])
            if measured:
                continue
            shown.append((role, agents))
            continue
        players.append(Player(policies[role], batch, agents, greedy=greedy))
        if not measured or role == measured:
            shown.append((role, agents))
    return players, shown


def _summary(
    batch: Any, role: str, agents: slice, result: Mapping[str, np.ndarray], several: bool
) -> dict[str, dict[str, float]]:
    """Per episode the mean over the role's agents; what only one role has under its own name, the rest under role/name."""
    out = {}
    for name, values in result.items():
        goal = batch.game.goal_metrics.get(name)
        alone = not several
        if goal is not None:
            meant = [goal.roles] if isinstance(goal.roles, str) else goal.roles
            if meant is not None and role not in meant:
                continue
            alone = alone or (meant is not None and len(meant) == 1)
        per_episode = values[:, agents].mean(1)
        if name == "outcome":
            name, per_episode = "win_rate", (values[:, agents] > 0).mean(1)
        out[name if alone else f"{role}/{name}"] = interval(per_episode)
    return out
