"""Who won: a draw is neither won nor lost, in evaluations, in the statistics of training and in the
league's books."""

from __future__ import annotations

from typing import Any

import numpy as np

from ludus.examine.selftest.core import close, holds, part, same
from ludus.examine.selftest.games import DUEL
from ludus.examine.selftest.scene import Session
from ludus.examine.selftest.using import EVALUATE, diary_policy, fresh_batch
from ludus.league.payoff import cell
from ludus.league.ratings import rate, win_rates
from ludus.league.tally import Matches, Tally
from ludus.play.evaluate import measure
from ludus.sim.episode import STILL

EPISODE, TALLY, RATINGS, PAYOFF = (
    f"ludus/{name}.py"
    for name in ("sim/episode", "league/tally", "league/ratings", "league/payoff")
)
DUELS = 6
"""Of the first agent in envs 0, 1 … 5: drawn, won, lost, drawn, won, lost. In odd envs the episode
is cut off."""


@part("evaluation", EVALUATE)
def a_draw_is_neither_won_nor_lost(s: Session) -> None:
    """Evaluation tells of every episode whether it was won, drawn or lost, by the side that is
    measured; the first half of the envs measures the first side, the other half the second."""
    layout = fresh_batch(s, DUEL, 1).layout
    mine, rival = ({"player": diary_policy(s, layout, hidden=(8,))} for _ in range(2))
    found = measure(lambda _: fresh_batch(s, DUEL, DUELS), mine, "pool", DUELS, 5, rivals=rival)
    for outcome_rate, expected in (
        ("win", [0, 0, 1, 0, 0, 1]),
        ("draw", [1, 1, 0, 0, 0, 0]),
        ("loss", [0, 0, 0, 1, 1, 0]),
    ):
        same(
            f"{outcome_rate}_rate of the duels in envs 0, 3, 1, 4, 2, 5",
            found[f"{outcome_rate}_rate"],
            expected,
        )


@part("episode statistics", EPISODE)
def training_counts_draws_apart(s: Session) -> None:
    """An episode counts as won, lost or drawn by the outcome of the learning agent, as truncated
    where it was cut off undecided."""
    batch = fresh_batch(s, DUEL, DUELS)
    batch.set_lineups(np.array([[0, STILL]]), np.array([1.0]))
    batch.arrays["finished"][...] = True
    batch.step()  # the reset row in which the bot sits down
    batch.read_statistics()
    # one episode of every env: the longest has 7 steps, the shortest two would have 11
    for _ in range(9):
        batch.step()
    found = batch.read_statistics()["player"]
    same("episodes", found["episodes"], DUELS)
    for name, count in (("won", 2), ("lost", 2), ("drawn", 1), ("truncated", 1)):
        close(f"the share of episodes {name}", found[name], count / DUELS)
    same(
        "episodes, won, drawn, lost of a lineup",
        batch.read_lineup_results([slice(None)])[0][0],
        [DUELS, 2, 2, 2],
    )


@part("win rates", TALLY)
def the_league_counts_draws_apart(s: Session) -> None:
    """Of ten episodes four are won, three drawn and three lost: a win rate of 0.4, in the tally and
    over a whole log."""
    result, tally, matches = np.array([10.0, 4.0, 3.0, 3.0]), Tally(), Matches()
    tally.add("them", result)
    close("the tally's win rate", tally.win_rate("them"), 0.4)
    low, high = tally.interval("them")
    holds(
        f"the interval of 4 won in 10 is {low:.3f} to {high:.3f}",
        abs(low - 0.168) < 1e-3 and abs(high - 0.687) < 1e-3,
    )
    matches.add("team 0", "bot:them", result)
    told = win_rates(matches.take(100, 0), ["player"])[""]["bot:them"]
    for name, expected in (
        ("win_rate", 0.4),
        ("draw_rate", 0.3),
        ("loss_rate", 0.3),
        ("episodes", 10),
    ):
        close(f"{name} of the log", told[name], expected)


@part("ratings", RATINGS)
def a_draw_between_equals_changes_no_rating(s: Session) -> None:
    """Equals that only draw are rated alike, who wins is rated higher than who draws or loses."""

    def gap(won: int, drawn: int, lost: int) -> float:
        line: dict[str, Any] = {"learner": "snapshot:0", "side": "team 0", "opponent": "bot:them"}
        found = rate([{**line, "won": won, "drawn": drawn, "lost": lost}], ["player"])
        return found["snapshot:0"].mean - found["bot:them"].mean

    close("the difference of two that drew eight times", gap(0, 8, 0), 0.0)
    holds("who won more than it lost is not rated higher", gap(8, 0, 0) > gap(4, 4, 0) > 0)
    holds("who lost is not rated lower", gap(0, 4, 4) < 0)


@part("payoffs", PAYOFF)
def a_payoff_tells_draws_apart(s: Session) -> None:
    """Of four episodes one was won, two were drawn and one was lost."""
    told = cell(np.array([1.0, 0, 0, 0]), np.array([0.0, 1, 1, 0]), np.array([0.0, 0, 0, 1]))
    close(
        "win, draw and loss rates",
        [told[f"{n}_rate"] for n in ("win", "draw", "loss")],
        [0.25, 0.5, 0.25],
    )
    close("Wilson's interval of 1 in 4", [told["low"], told["high"]], [0.0456, 0.6994], 1e-3)


CHECKS = (
    a_draw_is_neither_won_nor_lost,
    training_counts_draws_apart,
    the_league_counts_draws_apart,
    a_draw_between_equals_changes_no_rating,
    a_payoff_tells_draws_apart,
)
