"""Who may sit where: a mix of opponents becomes a table of lineups that every env draws from in its
reset rows.

A *side* is what learns together: a team where the game has teams, else a role.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ludus.errors import LudusError, nearest
from ludus.protocols import Layout
from ludus.sim.episode import FROZEN


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


def parse_mix(text: str) -> dict[str, float]:
    """'self 70, pool 10, bot:based 20' → relative weights."""
    mix: dict[str, float] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, weight = part.rpartition(" ")
        try:
            value = float(weight)
        except ValueError:
            value = -1.0
        if not name or value < 0:
            raise LudusError(
                f"league.mix '{part}' is not an opponent and its weight: write it like 'self 70, "
                "pool 10, bot:random 20'"
            )
        mix[name.strip()] = value
    if mix and sum(mix.values()) <= 0:
        raise LudusError(
            f"league.mix '{text}' sums to 0: give at least one opponent a weight above 0"
        )
    return {name: weight for name, weight in mix.items() if weight > 0}


def pool_share(mix: str) -> float:
    """How much of the games are against the pool."""
    weights = parse_mix(mix)
    return weights.get("pool", 0.0) / (sum(weights.values()) or 1.0)


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
        if opponent == "self":
            out.append(Lineup("self", "", (0,) * layout.num_agents, weight))
            continue
        known = [
            "self",
            "pool",
            *(f"bot:{n}" for n in dict.fromkeys(n for table in bots.values() for n in table)),
        ]
        if opponent not in known:
            raise LudusError(
                f"league.mix has the unknown opponent '{opponent}': {nearest(opponent, known)}"
            )
        if not everyone:
            raise LudusError(
                f"league.mix has '{opponent}', but this game has no other side to play: leave "
                "league.mix empty"
            )
        tables = {side: _against(layout, everyone, bots, side, opponent) for side in everyone}
        met = {side: table for side, table in tables.items() if table is not None}
        out += [Lineup(opponent, side, table, weight / len(met)) for side, table in met.items()]
    return out


def _against(
    layout: Layout,
    everyone: Mapping[str, Mapping[str, slice]],
    bots: Mapping[str, Mapping[str, int]],
    side: str,
    opponent: str,
) -> tuple[int, ...] | None:
    """Controllers with `side` learning and the opponent everywhere else; None where it cannot play
    all of that."""
    table = np.zeros(layout.num_agents, int)
    for other, roles in everyone.items():
        if other == side:
            continue
        for role, agents in roles.items():
            if opponent == "pool":
                table[agents] = FROZEN
            elif opponent.removeprefix("bot:") in bots[role]:
                table[agents] = bots[role][opponent.removeprefix("bot:")]
            else:
                return None
    return tuple(int(n) for n in table)
