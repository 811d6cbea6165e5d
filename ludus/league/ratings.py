"""Ratings by openskill, computed anew from matches.jsonl every time: the same file gives the same
ratings.

The roles of an asymmetric game are rated as players of their own ("chaser snapshot:0"): each meets
only the other roles. A player is frozen, so nothing is added to its uncertainty between games (tau
0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openskill.models import BradleyTerryFull

from ludus.files import read_lines
from ludus.intervals import Z, wilson
from ludus.runs.run import Run
from ludus.who import SNAPSHOT, named

MOST_GAMES = 32  # of a line of the log: what happened lately must not drown in one long line
# learner, opponent: the lower is the better
RANKS = {"won": [0.0, 1.0], "drawn": [0.0, 0.0], "lost": [1.0, 0.0]}

Player = tuple[str, str]  # role, and snapshot:STEP, bot:NAME or a run


@dataclass(frozen=True)
class Rating:
    """Strength on openskill's scale (a newcomer has 25 ± 16), with a 95% interval, and the games it
    was computed from."""

    role: str  # "" in games of teams
    mean: float
    low: float
    high: float
    games: int


class Ratings:
    """Grows line by line of matches.jsonl. `roles` are those of the game."""

    def __init__(self, roles: Sequence[str]) -> None:
        self.roles = roles
        self.model = BradleyTerryFull(tau=0.0)
        self.found: dict[Player, Any] = {}
        self.games: dict[Player, int] = {}
        self.learners: dict[str, Player] = {}  # role → whom the learner was counted as last

    def add(self, line: Mapping[str, Any]) -> None:
        pair = players(line, self.roles)
        if pair[0] == pair[1]:  # against the snapshot that it is itself counted as
            return
        for outcome in spread(line):
            before = [[self.found.get(player) or self.model.rating()] for player in pair]
            for player, (after,) in zip(
                pair, self.model.rate(before, ranks=RANKS[outcome]), strict=True
            ):
                self.found[player] = after
                self.games[player] = self.games.get(player, 0) + 1
            self.learners[pair[0][0]] = pair[0]

    def table(self) -> dict[str, Rating]:
        """Everybody, the best first."""
        out = {}
        for player, found in sorted(self.found.items(), key=lambda item: -item[1].mu):
            half = Z * found.sigma
            out[" ".join(player).strip()] = Rating(
                player[0], found.mu, found.mu - half, found.mu + half, self.games[player]
            )
        return out

    def metrics(self) -> dict[str, float]:
        """Of each role (one in games of teams) the learner's rating, and the mean of the snapshots
        it has met, which stay as they were: a rating that only rises with theirs is inflation."""
        out = {}
        for role, learner in self.learners.items():
            others = [
                rating
                for player, rating in self.found.items()
                if player != learner
                and named(player[1]).kind == SNAPSHOT
                and (player[0] != role or not role)
            ]
            prefix = f"league/{role}/" if role else "league/"
            out[f"{prefix}rating"] = float(self.found[learner].mu)
            if others:
                out[f"{prefix}pool_rating"] = sum(float(r.mu) for r in others) / len(others)
        return out


def rate(lines: Iterable[Mapping[str, Any]], roles: Sequence[str]) -> dict[str, Rating]:
    """Ratings of everybody in the log, the best first. `roles` are those of the game."""
    ratings = Ratings(roles)
    for line in lines:
        ratings.add(line)
    return ratings.table()


def players(line: Mapping[str, Any], roles: Sequence[str]) -> tuple[Player, Player]:
    """Learner and opponent in a line of the log."""
    side = line["side"]
    if side not in roles:  # a team: both are the same kind of player
        return ("", line["learner"]), ("", line["opponent"])
    others = " and ".join(role for role in roles if role != side)
    return (side, line["learner"]), (others, line["opponent"])


def spread(line: Mapping[str, Any]) -> Iterator[str]:
    """The outcomes of at most MOST_GAMES games in the proportions of a line, well mixed: the order
    must not favour a side."""
    counts = {outcome: float(line[outcome]) for outcome in RANKS}
    total = sum(counts.values())
    number = min(MOST_GAMES, round(total))
    whole = (
        {outcome: int(number * count / total) for outcome, count in counts.items()}
        if number
        else {}
    )
    by_remainder = sorted(
        whole, key=lambda outcome: -(number * counts[outcome] / total - whole[outcome])
    )
    for outcome in by_remainder[: number - sum(whole.values())]:
        whole[outcome] += 1
    places = [
        ((i + 0.5) / count, outcome) for outcome, count in whole.items() for i in range(count)
    ]
    return (outcome for _, outcome in sorted(places))


def of_run(run: Run) -> dict[str, Rating]:
    """Ratings of everybody that played in a run."""
    lines = read_lines(run.path / "matches.jsonl")
    return rate(lines, list(run.read_json("game.json")["layout"]["roles"])) if lines else {}


def win_rates(
    lines: Iterable[Mapping[str, Any]], roles: Sequence[str]
) -> dict[str, dict[str, dict[str, float]]]:
    """Side → opponent → the learner's results over the whole log, with the interval of its win
    rate. Teams count together."""
    counts: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        side = line["side"] if line["side"] in roles else ""
        total = counts.setdefault((side, line["opponent"]), [0.0] * 4)
        for i, name in enumerate(("episodes", "won", "drawn", "lost")):
            total[i] += line[name]
    out: dict[str, dict[str, dict[str, float]]] = {}
    for (side, opponent), (episodes, won, drawn, lost) in sorted(counts.items(), key=_by_step):
        if episodes > 0:
            low, high = wilson(won, episodes)
            shares = {"win_rate": won / episodes, "low": low, "high": high}
            rest = {
                "draw_rate": drawn / episodes,
                "loss_rate": lost / episodes,
                "episodes": episodes,
            }
            out.setdefault(side, {})[opponent] = shares | rest
    return out


def _by_step(item: tuple[tuple[str, str], Any]) -> tuple[str, str, int, str]:
    """Side by side; bots, then snapshots by their step."""
    (side, opponent), _ = item
    who = named(opponent)
    return side, who.kind, int(who.name) if who.kind == SNAPSHOT else 0, opponent
