"""Who may sit where: a mix of opponents becomes a table of lineups that every env draws from in its
reset rows.

A *side* is what learns together: a team where the game has teams, else a role.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ludus.errors import LudusError
from ludus.protocols import Layout
from ludus.sim.episode import FROZEN
from ludus.who import BOT, POOL, SELF, Who, bot_names, read, read_mix


@dataclass(frozen=True)
class Lineup:
    """`side` learns against `opponent`; `controllers` has a value of the engine's `controller` for
    every agent."""

    opponent: str  # self, pool or bot:NAME
    side: str  # "" where everybody learns
    controllers: tuple[int, ...]
    weight: float

    @property
    def key(self) -> str:
        """What its results are counted under: teams together, roles apart."""
        return self.opponent if self.side.startswith("team") else f"{self.side}/{self.opponent}"


def pool_share(mix: str) -> float:
    """How much of the games are against the pool."""
    weights = read_mix(mix)
    return weights.get(POOL, 0.0) / (sum(weights.values()) or 1.0)


def alone(layout: Layout) -> bool:
    """Is there only one role, without teams, so that nobody is on the other side?"""
    return len(layout.seats) == 1 and layout.seats[0].teams == 1


def sides(layout: Layout) -> dict[str, dict[str, slice]]:
    """Side → role → its agents. Empty where there is nobody on the other side."""
    seats = layout.seats
    teams = max(s.teams for s in seats)
    if teams > 1:
        return {
            f"team{t}": {
                s.role: slice(s.start + t * s.count, s.start + (t + 1) * s.count) for s in seats
            }
            for t in range(teams)
        }
    return {s.role: {s.role: s.agents} for s in seats} if len(seats) > 1 else {}


def make_lineups(
    layout: Layout, bots: Mapping[str, Mapping[str, int]], mix: Mapping[str, float]
) -> list[Lineup]:
    """The table for a mix. An opponent's weight is shared evenly by the sides that can meet it."""
    out: list[Lineup] = []
    everyone = sides(layout)
    for opponent, weight in mix.items():
        who = read(opponent, (SELF, POOL, BOT), bot_names(bots), "league.mix")
        if who.kind == SELF:
            out.append(Lineup(SELF, "", (0,) * layout.num_agents, weight))
            continue
        if not everyone:
            raise LudusError(
                f"league.mix has '{opponent}', but this game has no other side to play: leave "
                "league.mix empty"
            )
        tables = {side: _against(layout, everyone, bots, side, who) for side in everyone}
        met = {side: table for side, table in tables.items() if table is not None}
        out += [Lineup(opponent, side, table, weight / len(met)) for side, table in met.items()]
    return out


def _against(
    layout: Layout,
    everyone: Mapping[str, Mapping[str, slice]],
    bots: Mapping[str, Mapping[str, int]],
    side: str,
    opponent: Who,
) -> tuple[int, ...] | None:
    """Controllers with `side` learning and the opponent everywhere else; None where it cannot play
    all of that."""
    table = np.zeros(layout.num_agents, int)
    for other, roles in everyone.items():
        if other == side:
            continue
        for role, agents in roles.items():
            if opponent.kind == POOL:
                table[agents] = FROZEN
            elif opponent.name in bots[role]:
                table[agents] = bots[role][opponent.name]
            else:
                return None
    return tuple(int(n) for n in table)
