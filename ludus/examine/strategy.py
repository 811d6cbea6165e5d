"""Is strategy recognition real? What a strategy encoder's vector tells about the opponent, and
whether the policy uses it.

All opponents play at once: envs are dealt evenly to the two sides, and on each side to the
opponents. One match per env, on held-out seeds. A *window* is a full history of the opponent; a
match is looked at once per history, so its windows share no step.

- probe: a linear map names the opponent from windows of matches it was not fitted on.
- switcher: a bot that changes its style by the clock. The vector should move more across a change
  than within a style.
- shuffled: the same matches with every vector replaced by that of another match, against another
  opponent.
- attention: how much each step of the history counts.

Axes: R rows (one per env, the policy's agent), windows W.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ludus.errors import LudusError
from ludus.examine.linear_probe import accuracy, fit
from ludus.games.brawl.bots import SWITCH_FRAMES
from ludus.intervals import interval, newcombe, wilson
from ludus.networks.history import HISTORY, History
from ludus.networks.policy import Policy
from ludus.networks.strategy import Strategy, strategy_encoder, watched
from ludus.play.player import Player
from ludus.protocols import ActingPolicy
from ludus.sim import Batch
from ludus.who import BOT, read

SWITCHER = "switcher"
LEAST_MATCHES = 4  # against each opponent: two to fit the probe and two to measure, at least


@dataclass(frozen=True)
class Seen:
    """What was recognised at some ages of the matches: [W, …] of windows, and what became of each
    match [R]."""

    vector: np.ndarray
    attention: np.ndarray
    row: np.ndarray
    age: np.ndarray
    opponent: np.ndarray  # [R], index
    outcome: np.ndarray  # [R]: 1 won, 0 drawn, -1 lost


def analyse(
    make: Callable[[int], Any],
    policy: Policy,
    opponents: Sequence[str],
    matches: int,
    seed: int,
) -> tuple[dict[str, Any], Seen]:
    """`make(num_envs)` gives a batch on held-out seeds; `opponents` are names of bots, each met in
    `matches` matches."""
    history = history_of(policy)
    if matches < LEAST_MATCHES:
        raise LudusError(
            f"{matches} matches against each opponent are too few to fit a probe and measure it: "
            f"use {LEAST_MATCHES} or more"
        )
    known = [name for name in opponents if name != SWITCHER]
    if len(known) < 2:
        raise LudusError(
            f"there is nothing to tell apart among {', '.join(known) or 'no opponents'}: name at "
            "least 2 bots"
        )
    halves = -(-matches // 2)
    batch = make(2 * halves * len(opponents))
    opponent = np.tile(np.repeat(np.arange(len(opponents)), halves), 2)
    every = switch_steps(batch) if SWITCHER in opponents else None
    switching = np.array([name == SWITCHER for name in opponents])[opponent]

    def due(age: np.ndarray) -> np.ndarray:
        return worth_a_look(age, history.frames, every, switching)

    true = play(batch, policy, opponents, opponent, seed, due)
    shuffled = play(batch, policy, opponents, opponent, seed)
    report = {
        "opponents": list(opponents),
        "matches": 2 * halves,
        "probe": probe(true, history.frames, opponents),
        "shuffled": compare_wins(true, shuffled, opponents),
        "attention": attention(true, history, opponents),
        "switcher": distances(true, opponents.index(SWITCHER), history.frames, every, seed)
        if every is not None
        else None,
    }
    return report, true


def history_of(policy: ActingPolicy) -> History:
    part = policy.seen.get(HISTORY)
    if not isinstance(part, History):
        raise LudusError(
            "this policy has no strategy encoder to analyse: train one with policy.network strategy"
        )
    return part


def switch_steps(batch: Batch) -> int:
    """Steps between two changes of the switcher's style."""
    frames = batch.held("decision_frames")[0] if "decision_frames" in batch.game.params else 1
    return int(SWITCH_FRAMES // frames)


# -- playing ---------------------------------------------------------------------------------------


def play(
    batch: Batch,
    policy: Policy,
    opponents: Sequence[str],
    opponent: np.ndarray,
    seed: int,
    due: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Seen:
    """One match of every env. `due` says by the ages of the matches which windows are kept; without
    it the policy gets, throughout a match, the vectors of another one."""
    players, halves = seat(batch, policy, opponents, opponent)
    first = batch.layout.seats[0].start
    agent = np.repeat([first, first + 1], len(opponent) // 2)
    others = [
        torch.from_numpy(another_opponent(opponent[half], seed)).to(policy.log_std.device)
        for half in halves
    ]
    kept: dict[str, list[np.ndarray]] = {"vector": [], "attention": [], "row": [], "age": []}
    over = np.zeros(len(opponent), bool)
    outcome = np.zeros(len(opponent), int)
    torch.manual_seed(seed)
    while not over.all():
        age = batch.numpy("step")
        looked_at = due(age) & ~over if due is not None else np.zeros_like(over)
        for player, half, other in zip(players, halves, others, strict=True):
            strategy = act(player, other if due is None else None)
            rows = np.flatnonzero(looked_at[half])
            if len(rows):
                kept["vector"].append(strategy.vector[0].float().cpu().numpy()[rows])
                kept["attention"].append(strategy.attention[0].float().cpu().numpy()[rows])
                kept["row"].append(rows + half.start)
                kept["age"].append(age[half][rows])
        batch.step()
        ended = batch.numpy("counted") & ~over
        outcome[ended] = batch.numpy("outcome")[ended, agent[ended]]
        over |= ended
    nothing = {
        "vector": np.empty((0, 1)),
        "attention": np.empty((0, 1)),
        "row": np.empty(0, int),
        "age": np.empty(0, int),
    }
    parts = {
        name: np.concatenate(values) if values else nothing[name] for name, values in kept.items()
    }
    return Seen(**parts, opponent=opponent, outcome=outcome)


def act(player: Player, other: Tensor | None) -> Strategy:
    """The player acts, with its own vectors or with those of the `other` rows; returns what it
    recognised."""
    recognised: list[Strategy] = []

    def watch(strategy: Strategy) -> Strategy:
        recognised.append(strategy)
        return strategy if other is None else strategy._replace(vector=strategy.vector[:, other])

    encoder = strategy_encoder(player.policy)
    assert encoder is not None
    with watched(encoder, watch):
        player.act()
    return recognised[0]


def seat(
    batch: Batch, policy: Policy, opponents: Sequence[str], opponent: np.ndarray
) -> tuple[list[Player], list[slice]]:
    """The policy on one side in the first half of the envs and on the other in the second; bots
    opposite. The same matches begin again each time."""
    seats = batch.layout.seats
    if len(seats) != 1 or seats[0].teams != 2 or seats[0].count != 1:
        raise LudusError(
            f"{batch.game.name} cannot be analysed: strategies are recognised in games of one "
            "against one"
        )
    role, count = seats[0], len(opponent)
    halves = [slice(0, count // 2), slice(count // 2, count)]
    for team, half in enumerate(halves):
        for i, name in enumerate(opponents):
            envs = half.start + np.flatnonzero(opponent[half] == i)
            block = slice(int(envs[0]), int(envs[-1]) + 1)
            batch.set_controller(role.role, "policy", block, team)
            batch.set_controller(role.role, name, block, 1 - team)
    batch.arrays["episode"][...] = -1
    batch.reset()
    players = [
        Player(policy, batch, slice(role.start + t, role.start + t + 1), envs=half)
        for t, half in enumerate(halves)
    ]
    return players, halves


def worth_a_look(
    age: np.ndarray, frames: int, every: int | None, switching: np.ndarray
) -> np.ndarray:
    """Full histories that share no step; and, against the switcher, those that end a style or begin
    one."""
    due = age % frames == frames - 1
    if every is not None:
        due |= switching & (age >= frames - 1) & np.isin(age % every, marks(frames, every))
    return due


def marks(frames: int, every: int) -> list[int]:
    """Ages within a style at which a history lies wholly inside it: the first, the last, and one
    history before the last."""
    return (
        [frames - 1, every - 1 - frames, every - 1]
        if every >= 2 * frames
        else [frames - 1, every - 1]
    )


def another_opponent(opponent: np.ndarray, seed: int) -> np.ndarray:
    """A permutation of matches that gives each one of another opponent: matches in order of
    opponents (shuffled within), moved on by as many as the largest group has."""
    random = np.random.default_rng(seed)
    order = np.lexsort((random.random(len(opponent)), opponent))
    moved = np.roll(order, np.bincount(opponent).max())
    out = np.empty(len(opponent), int)
    out[order] = moved
    return out


# -- what it means ---------------------------------------------------------------------------------


def probe(seen: Seen, frames: int, opponents: Sequence[str]) -> dict[str, Any]:
    """Every second match fits, the others measure. Without the switcher: it is not one style."""
    names = [name for name in opponents if name != SWITCHER]
    label = np.array([names.index(name) if name in names else -1 for name in opponents])[
        seen.opponent[seen.row]
    ]
    use = (label >= 0) & (seen.age % frames == frames - 1)
    fits = use & (seen.row % 2 == 0)
    measures = use & (seen.row % 2 == 1)
    absent = [
        name
        for i, name in enumerate(names)
        if not ((label == i) & fits).any() or not ((label == i) & measures).any()
    ]
    if absent:
        raise LudusError(
            f"no match against {', '.join(absent)} lasts {frames} steps, a whole history: leave "
            "these opponents out with --against"
        )
    fitted = fit(seen.vector[fits], label[fits], seen.row[fits], len(names))
    found = accuracy(fitted, seen.vector[measures], label[measures], seen.row[measures])
    return {"types": names, "chance": 1 / len(names), **found}


def compare_wins(true: Seen, shuffled: Seen, opponents: Sequence[str]) -> dict[str, Any]:
    """Win rates with true and with shuffled vectors, over all opponents and against each; their
    difference is what the policy gains by the vector."""

    def compared(rows: np.ndarray) -> dict[str, Any]:
        count = int(rows.sum())
        wins = [int((s.outcome[rows] > 0).sum()) for s in (true, shuffled)]
        low, high = newcombe((wins[0], count), (wins[1], count))
        rates = [
            dict(zip(("mean", "low", "high"), (w / count, *wilson(w, count)), strict=True))
            for w in wins
        ]
        return {
            "true": rates[0],
            "shuffled": rates[1],
            "gain": {"mean": (wins[0] - wins[1]) / count, "low": low, "high": high},
        }

    each = {name: compared(true.opponent == i) for i, name in enumerate(opponents)}
    return {"all": compared(np.ones(len(true.opponent), bool)), "against": each}


def attention(seen: Seen, history: History, opponents: Sequence[str]) -> dict[str, Any]:
    """Mean share of each step of full histories."""
    full = seen.age % history.frames == history.frames - 1
    each = {
        name: seen.attention[full & (seen.opponent[seen.row] == i)].mean(0).round(5).tolist()
        for i, name in enumerate(opponents)
        if (full & (seen.opponent[seen.row] == i)).any()
    }
    return {
        "steps_back": list(history.steps_back),
        "all": seen.attention[full].mean(0).round(5).tolist(),
        "against": each,
    }


def distances(
    seen: Seen, switcher: int, frames: int, every: int | None, seed: int
) -> dict[str, Any] | None:
    """How far the vector moves within a style of the switcher and across a change, both over one
    history's time; per match. The interval of their ratio is a bootstrap over matches."""
    if every is None or every < 2 * frames:
        return None
    at = {(int(r), int(a)): v for r, a, v in zip(seen.row, seen.age, seen.vector, strict=True)}
    _, before, last = marks(frames, every)
    pairs: list[tuple[float, float]] = []
    for row in np.flatnonzero(seen.opponent == switcher).tolist():
        within, across = [], []
        for start in range(0, max((a for r, a in at if r == row), default=0) + 1, every):
            ends = at.get((row, start + last))
            if ends is None:
                continue
            if (row, start + before) in at:
                within.append(float(np.linalg.norm(ends - at[row, start + before])))
            if (row, start + every + frames - 1) in at:
                across.append(float(np.linalg.norm(at[row, start + every + frames - 1] - ends)))
        if within and across:
            pairs.append((float(np.mean(within)), float(np.mean(across))))
    if not pairs:
        return None
    values = np.array(pairs)
    drawn = values[
        np.random.default_rng(seed).integers(len(values), size=(2000, len(values)))
    ].mean(1)
    ratios = drawn[:, 1] / np.maximum(drawn[:, 0], 1e-9)
    mean = float(values[:, 1].mean() / max(values[:, 0].mean(), 1e-9))
    return {
        "steps_of_a_style": every,
        "matches": len(pairs),
        "within_a_style": interval(values[:, 0]),
        "across_a_change": interval(values[:, 1]),
        "ratio": {
            "mean": mean,
            "low": float(np.quantile(ratios, 0.025)),
            "high": float(np.quantile(ratios, 0.975)),
        },
    }


def opponents_of(batch: Batch, against: Sequence[str]) -> list[str]:
    """Names of bots: those asked for as bot:NAME, or all (without `still`, which no game tells from
    a bot that stands)."""
    table: Mapping[str, int] = batch.controllers[batch.layout.seats[0].role]
    if tuple(against) in (("self",), ("bots",)):
        return [name for name in table if name != "still"]
    named = (read(name, (BOT,), list(table), "--analyse tells bots apart") for name in against)
    return list(dict.fromkeys(who.name for who in named))
