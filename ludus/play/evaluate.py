"""Playing to measure: a policy against itself, bots or other policies, on seeds that were not
trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import torch

from ludus.batches import of_game
from ludus.external.foreign import ForeignBatch
from ludus.external.recorder import ForeignRecorder
from ludus.intervals import interval
from ludus.play.lineups import Lineup, make_lineups, sides
from ludus.play.player import Player
from ludus.play.replay import WATCHED, Recorder
from ludus.protocols import ActingPolicy, Batch, GameFacts, Layout
from ludus.sim.episode import FROZEN
from ludus.who import BOT, POOL, SELF, bot_names, named, read

MOST_ENVS = 256

Keep = Callable[[Recorder | ForeignRecorder, str], None]
"""Stores what was recorded while this role was measured."""
OUTCOMES = ("win_rate", "draw_rate", "loss_rate")


class Abandoned(Exception):
    """Someone asked to stop while episodes were played: what is not finished is not counted."""


@dataclass(frozen=True)
class Seating:
    """One measurement: the role it is about ("": all of them), and the lineups that blocks of envs
    play."""

    measured: str
    lineups: tuple[Lineup, ...]


def seatings(layout: Layout, bots: Mapping[str, Mapping[str, int]], against: str) -> list[Seating]:
    """Who sits where. 'self': all policies, every role measured. A bot or 'pool' (other policies):
    each role is measured with the opponent in the others; in a game of teams each team in turn, so
    that no side is favoured. Empty: nobody to play."""
    who = read(against, (SELF, BOT, POOL), bot_names(bots), "eval.against")
    if who.kind == SELF:
        return [Seating("", (Lineup(SELF, "", (0,) * layout.num_agents, 1.0),))]
    if not sides(layout):  # a bot in everybody's place is a yardstick
        if not all(who.name in bots[seats.role] for seats in layout.seats):
            return []
        places = tuple(
            bots[seats.role][who.name]
            for seats in layout.seats
            for _ in range(seats.start, seats.stop)
        )
        return [Seating("", (Lineup(against, "", places, 1.0),))]
    lineups = make_lineups(layout, bots, {against: 1.0})
    if lineups and lineups[0].side.startswith("team"):
        return [Seating(layout.seats[0].role, tuple(lineups))]
    return [Seating(lineup.side, (lineup,)) for lineup in lineups]


def intervals(
    measured: Mapping[str, np.ndarray], goals: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """`goals` are the goal metrics of the game: which of them are shares, whose intervals stay
    between 0 and 1."""
    return {
        name: interval(values, share=_is_share(name, goals)) for name, values in measured.items()
    }


def _is_share(name: str, goals: Mapping[str, Any]) -> bool | None:
    """None: not said, so that values of 0 and 1 are taken for one."""
    last = name.rpartition("/")[2]
    if last == "length":
        return False
    return True if last in OUTCOMES or (last in goals and goals[last].share) else None


def measure(
    make: Callable[[int], Batch],
    policies: Mapping[str, ActingPolicy],
    against: str,
    episodes: int,
    seed: int,
    greedy: bool = False,
    keep: Keep | None = None,
    rivals: Mapping[str, ActingPolicy] | None = None,
    on_step: Callable[[int], None] = lambda done: None,
) -> dict[str, np.ndarray]:
    """Metrics, a value per episode. `make(num_envs)` gives a batch on held-out seeds. Actions are
    sampled, or greedy.

    `rivals` are the policies that play on the other side; without them `against` is 'self' or a
    bot. `on_step` is told before every step how many episodes are finished, and may raise to end
    the evaluation. `keep(recorder, role)` is handed what was recorded, to store replays.
    """
    batch = make(min(episodes, MOST_ENVS))
    metrics: dict[str, np.ndarray] = {}
    for policy in (*policies.values(), *(rivals or {}).values()):
        policy.eval()
    for seating in seatings(batch.layout, batch.controllers, POOL if rivals else against):
        blocks = deal(batch.num_envs, len(seating.lineups))
        players = [
            p
            for lineup, envs in zip(seating.lineups, blocks, strict=False)
            for p in seat(batch, lineup, envs, policies, rivals or {}, greedy)
        ]
        batch.arrays["finished"][...] = True
        batch.step()
        batch.read_statistics()
        # only where the first side is measured: a replay is labelled best or worst by what that
        # side earned
        recorder = (
            record(batch, min(WATCHED, blocks[0].stop), players) if keep is not None else None
        )
        order = in_turn(blocks)
        result = play(batch, players, episodes, seed, recorder, order, on_step)
        if keep is not None and recorder is not None:
            keep(recorder, seating.measured)
        shown = np.zeros((batch.num_envs, batch.layout.num_agents), bool)
        for lineup, envs in zip(seating.lineups, blocks, strict=False):
            shown[envs] = np.array(lineup.controllers) == 0 if lineup.side else True
        metrics |= _summary(batch, shown[np.resize(order, episodes)], result)
    return metrics


def record(batch: Batch, most: int, players: Sequence[Player]) -> Recorder | ForeignRecorder:
    """What watches a batch: games are played again from what it keeps, envs of other libraries are
    recorded as they look."""
    if isinstance(batch, ForeignBatch):
        return ForeignRecorder(batch, most, players)
    return Recorder(of_game(batch), most)


def deal(num_envs: int, parts: int) -> list[slice]:
    """Envs in blocks of (nearly) equal size; fewer blocks where there are too few envs."""
    ends = [-(-num_envs * i // parts) for i in range(parts + 1)]
    return [slice(a, b) for a, b in pairwise(ends) if b > a]


def in_turn(blocks: Sequence[slice]) -> np.ndarray:
    """The first env of every block, then the second of every block …"""
    envs = [
        (place, block, env)
        for block, s in enumerate(blocks)
        for place, env in enumerate(range(s.start, s.stop))
    ]
    return np.array([env for _, _, env in sorted(envs)])


def seat(
    batch: Batch,
    lineup: Lineup,
    envs: slice,
    policies: Mapping[str, ActingPolicy],
    rivals: Mapping[str, ActingPolicy],
    greedy: bool,
) -> Iterator[Player]:
    """Hands bots their agents in these envs, and makes players for those of policies and rivals."""
    for seats in batch.layout.seats:
        for team in range(seats.teams):
            bot = lineup.controllers[seats.start + team * seats.count] > 0
            player = named(lineup.opponent).name if bot else "policy"
            batch.set_controller(seats.role, player, envs, team)
        first = seats.start
        for controller, group in groupby(lineup.controllers[seats.start : seats.stop]):
            agents = slice(first, first + len(list(group)))
            first = agents.stop
            if controller in (0, FROZEN):
                policy = (rivals if controller == FROZEN else policies)[seats.role]
                yield Player(policy, batch, agents, greedy=greedy, envs=envs)


def play(
    batch: Batch,
    players: list[Player],
    episodes: int,
    seed: int,
    recorder: Any = None,
    order: np.ndarray | None = None,
    on_step: Callable[[int], None] = lambda done: None,
) -> dict[str, np.ndarray]:
    """Exactly `episodes` episodes, the same number from every env (short ones must not count more
    often).

    Returns per episode and agent: return, length, outcome, and every goal metric, as [episodes,
    agents]: one of every env, in `order`, then the next one of every env.
    """
    rounds = -(-episodes // batch.num_envs)
    played = np.zeros(batch.num_envs, int)
    names = ["return", "length", "outcome", *batch.layout.goals]
    results = {name: np.zeros((rounds, batch.num_envs, batch.layout.num_agents)) for name in names}
    torch.manual_seed(seed)
    while (played < rounds).any():
        on_step(min(int(played.sum()), episodes))
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
    envs = np.arange(batch.num_envs) if order is None else order
    # round after round: which episodes count does not depend on how long they took
    return {
        name: values[:, envs].reshape(-1, batch.layout.num_agents)[:episodes]
        for name, values in results.items()
    }


def metric_names(
    layout: Layout, game: GameFacts | None, bots: Mapping[str, Mapping[str, int]], against: str
) -> list[str]:
    """What an evaluation against this opponent measures, by the names that `measure` uses."""
    results = ["return", "length", "outcome", *layout.goals]
    out: list[str] = []
    for seating in seatings(layout, bots, against):
        roles = [s.role for s in layout.seats if not seating.measured or _measures(seating, s)]
        out += [
            name
            for role in roles
            for result in results
            for name in _names(layout, game, role, result)
        ]
    return list(dict.fromkeys(out))


def _measures(seating: Seating, seats: Any) -> bool:
    """Do agents of this role play for the side that is measured?"""
    return any(0 in lineup.controllers[seats.start : seats.stop] for lineup in seating.lineups)


def _names(layout: Layout, game: GameFacts | None, role: str, result: str) -> list[str]:
    """The metrics that a result of one role becomes. What only one role has goes under its own
    name, the rest under role/name."""
    goal = game.goal_metrics.get(result) if game is not None else None
    if goal is not None and not goal.concerns(role):
        return []
    its_own = goal is not None and goal.roles is not None and len(goal.roles) == 1
    prefix = "" if len(layout.seats) == 1 or its_own else f"{role}/"
    if result == "outcome":
        return [prefix + rate for rate in OUTCOMES] if game and has_outcomes(game) else []
    return [prefix + result]


def _summary(
    batch: Batch, shown: np.ndarray, result: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Per episode the mean over those of a role's agents that are shown [episodes, agents]. Draws
    count apart: win_rate, draw_rate and loss_rate add up to 1."""
    out = {}
    for seats in batch.layout.seats:
        mine = shown[:, seats.agents]
        if not mine.any():
            continue
        for name, values in result.items():
            ours = values[:, seats.agents]
            parts = (ours > 0, ours == 0, ours < 0) if name == "outcome" else (ours,)
            for metric, part in zip(
                _names(batch.layout, batch.game, seats.role, name), parts, strict=False
            ):
                out[metric] = _mean(part, mine)
    return out


def better_than(
    game: GameFacts, values: Mapping[str, np.ndarray], bots: Sequence[str]
) -> dict[str, np.ndarray]:
    """In which episodes policies did better than a bot that played the same worlds in their
    place."""
    out = {}
    for bot in bots:
        for goal, meant in game.goal_metrics.items():
            ours, theirs = values.get(f"self/{goal}"), values.get(f"{bot}/{goal}")
            if ours is not None and theirs is not None:
                sign = 1 if meant.higher_is_better else -1
                out[f"self/{goal}_better_than/{bot}"] = (sign * ours > sign * theirs).astype(float)
    return out


def _mean(values: np.ndarray, shown: np.ndarray) -> np.ndarray:
    return (values * shown).sum(1) / shown.sum(1)


def has_outcomes(game: GameFacts) -> bool:
    """Do its rules say who wins? Envs from elsewhere do not."""
    return any("outcome" in phase.writes for phase in game.step)
