"""Who plays the agents that the caller does not: bots, or the policies of a trained run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ludus.play.player import Player
from ludus.runs.load import check_same_layout, load_policies
from ludus.sim import Batch
from ludus.sim.episode import FROZEN
from ludus.who import BOT, RUN, bot_names, read

if TYPE_CHECKING:
    from ludus.protocols import ActingPolicy

RANDOM_BOT = "bot:random"


class Opponents:
    """Seats everyone who is not `mine` (agent numbers).

    `opponent`: one name for all roles, or a dict role → name; bot:NAME, or a run: RUN,
    RUN@STEP, RUN@best.
    """

    def __init__(self, batch: Batch, opponent: str | Mapping[str, str], mine: np.ndarray) -> None:
        self.players: list[Player] = []
        runs: dict[str, dict[str, ActingPolicy]] = {}
        for seats in batch.layout.seats:
            others = np.setdiff1d(np.arange(seats.start, seats.stop), mine)
            if not len(others):
                continue
            name = opponent if isinstance(opponent, str) else opponent.get(seats.role, RANDOM_BOT)
            who = read(name, (BOT, RUN), bot_names(batch.controllers), "opponent")
            if who.kind == BOT:
                batch["controller_next"][:, others] = batch.controller_number(seats.role, who.name)
                continue
            if who.name not in runs:
                runs[who.name] = _policies(who.name, batch)
            batch["controller_next"][:, others] = FROZEN
            self.players.append(_player(runs[who.name][seats.role], batch, others))
        batch["controller_next"][:, mine] = 0

    def act(self) -> None:
        """Before every step. (Bots act in it.)"""
        for player in self.players:
            player.act()


def _policies(reference: str, batch: Batch) -> dict[str, ActingPolicy]:
    policies, layout = load_policies(reference)
    check_same_layout(
        layout, batch.layout.describe(), f"{reference} and {batch.game.name} as it is here"
    )
    return policies


def _player(policy: ActingPolicy, batch: Batch, agents: np.ndarray) -> Player:
    return Player(policy, batch, slice(int(agents[0]), int(agents[-1]) + 1))
