"""Everybody against everybody: a run's snapshots over time, its newest policy and the bots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.batches import make_batch
from ludus.config import Config
from ludus.errors import LudusError
from ludus.intervals import interval
from ludus.play.evaluate import has_outcomes, measure
from ludus.play.lineups import sides
from ludus.play.opponents import Rivals
from ludus.protocols import ActingPolicy, Batch
from ludus.runs.load import load_policies
from ludus.runs.run import Run, split_reference
from ludus.runs.snapshots import evenly
from ludus.who import BOT, bot_names

NOW = "now"  # the policy of the checkpoint that is looked at
Cell = dict[str, float]  # win_rate with low and high, draw_rate, loss_rate
Rates = tuple[np.ndarray, np.ndarray, np.ndarray]  # per episode: won, drawn, lost
Table = dict[str, dict[str, Cell]]  # row → column: how the row fares against the column


def payoff(reference: str, snapshots: int, episodes: int) -> dict[str, Any]:
    """Plays the matrix. In a game of roles there is one for each: its policies against those and
    the bots of the others."""
    if snapshots < 1 or episodes < 1:
        raise LudusError(
            f"a payoff matrix of {snapshots} snapshots and {episodes} episodes is empty: use at "
            "least 1 of each"
        )
    run = Run(split_reference(reference)[0])
    config = run.config()
    config.device = "cpu"
    batch = make_batch(config, 1, 0)
    check_playable(config, batch)
    rivals = Rivals(run)
    policies = {
        f"snapshot:{step}": rivals.snapshot(str(step)) for step in evenly(rivals.steps(), snapshots)
    }
    newest, layout = load_policies(reference)
    game = Match(config, episodes)
    bots = [f"{BOT}:{name}" for name in bot_names(batch.controllers)]
    symmetric = next(iter(sides(batch.layout))).startswith("team")
    tables = (
        _symmetric(game, {**policies, NOW: newest}, bots)
        if symmetric
        else _roles(game, {**policies, NOW: newest}, bots)
    )
    forgetting = {
        role: {name: cell for name, cell in table[NOW].items() if name in policies}
        for role, table in tables.items()
    }
    return {
        "step": layout["step"],
        "episodes": episodes,
        "tables": tables,
        "forgetting": forgetting,
    }


def columns(table: Table) -> list[str]:
    """Everybody that somebody met, in the order of the rows."""
    met = [name for row in table.values() for name in row]
    return [name for name in dict.fromkeys((*table, *met)) if name in met]


def check_playable(config: Config, batch: Batch) -> None:
    """Refuses games in which nobody can win against anybody."""
    if not sides(batch.layout):
        raise LudusError(
            f"{config.game} has no other side to play: there is nothing to compare in pairs"
        )
    if not has_outcomes(batch.game):
        raise LudusError(
            f"the rules of {config.game} do not say who wins: let a phase write 'outcome'"
        )


class Match:
    """Episodes between two players on held-out seeds."""

    def __init__(self, config: Config, episodes: int) -> None:
        self.config, self.episodes, self.seed = config, episodes, config.eval.seed + 1

    def __call__(
        self,
        policies: Mapping[str, ActingPolicy],
        against: str,
        rivals: Mapping[str, ActingPolicy] | None,
    ) -> dict[str, Rates]:
        """Role → how often `policies` won, drew and lost in it."""
        found = measure(self.make, policies, against, self.episodes, self.seed, rivals=rivals)
        out = {}
        for role in policies:
            prefix = f"{role}/" if len(policies) > 1 else ""
            if f"{prefix}win_rate" in found:  # a bot of one role only is met by the others only
                won, drawn, lost = (
                    found[f"{prefix}{name}_rate"] for name in ("win", "draw", "loss")
                )
                out[role] = (won, drawn, lost)
        return out

    def make(self, num_envs: int) -> Any:
        return make_batch(self.config, num_envs, self.seed, held_out=True)


def cell(won: np.ndarray, drawn: np.ndarray, lost: np.ndarray) -> Cell:
    rate = interval(won, share=True)
    shares = {"draw_rate": float(drawn.mean()), "loss_rate": float(lost.mean())}
    return {"win_rate": rate["mean"], "low": rate["low"], "high": rate["high"], **shares}


def _symmetric(
    game: Match, policies: Mapping[str, Mapping[str, ActingPolicy]], bots: list[str]
) -> dict[str, Table]:
    """Each pair once: what one wins the other loses."""
    role = next(iter(policies[NOW]))
    table: Table = {name: {} for name in (*policies, *bots)}
    names = list(policies)
    pairs = [(row, column) for i, row in enumerate(names) for column in (*names[i + 1 :], *bots)]
    for row, column in pairs:
        won, drawn, lost = game(policies[row], column, policies.get(column))[role]
        table[row][column], table[column][row] = cell(won, drawn, lost), cell(lost, drawn, won)
    return {role: table}


def _roles(
    game: Match, policies: Mapping[str, Mapping[str, ActingPolicy]], bots: list[str]
) -> dict[str, Table]:
    """Every policy in each role against every policy and bot in the others."""
    tables: dict[str, Table] = {role: {name: {} for name in policies} for role in policies[NOW]}
    for row in policies:
        for column in (*policies, *bots):
            for role, rates in game(policies[row], column, policies.get(column)).items():
                tables[role][row][column] = cell(*rates)
    return tables
