"""Ratings come from the log alone, and say what the counts in it say."""

import math

import pytest

from ludus.league.ratings import MOST_GAMES, Ratings, rate, spread, win_rates

BETA = 25 / 6  # openskill's spread of performance around strength


def line(learner, opponent, won, drawn, lost, side="team0"):
    return {
        "learner": learner,
        "side": side,
        "opponent": opponent,
        "episodes": won + drawn + lost,
        "won": won,
        "drawn": drawn,
        "lost": lost,
    }


def test_a_line_becomes_at_most_so_many_games_in_its_proportions():
    games = list(spread(line("a", "b", 500, 250, 250)))
    assert len(games) == MOST_GAMES and [games.count(x) for x in ("won", "drawn", "lost")] == [
        16,
        8,
        8,
    ]
    assert [games[:16].count(x) for x in ("won", "drawn", "lost")] == [8, 4, 4], (
        "outcomes are mixed, not one after the other"
    )
    assert list(spread(line("a", "b", 2, 0, 1))) == ["won", "lost", "won"]
    assert sorted(spread(line("a", "b", 1.7, 0, 1.3))) == ["lost", "won", "won"], (
        "shares of a role's agents are rounded"
    )
    assert list(spread(line("a", "b", 0, 0, 0))) == []


def test_the_difference_of_ratings_is_the_one_that_explains_the_score():
    """In the Bradley-Terry model a score s between two players means a difference of c·log(s / (1 −
    s)), c² = 2β² + σ²."""
    found = rate([line("a", "b", 75, 10, 15)] * 60, roles=("player",))
    score = (24 + 0.5 * 3) / 32  # 75 : 10 : 15 in 32 games is 24 : 3 : 5
    sigma = (found["a"].high - found["a"].mean) / 1.96
    expected = math.sqrt(2 * BETA**2 + 2 * sigma**2) * math.log(score / (1 - score))
    assert found["a"].mean - found["b"].mean == pytest.approx(expected, rel=0.1)
    assert list(found) == ["a", "b"] and found["a"].games == 60 * MOST_GAMES
    assert found["a"].mean + found["b"].mean == pytest.approx(50)


def test_even_players_stay_even_and_a_chain_is_ordered():
    even = rate([line("a", "b", 10, 0, 10)] * 20, roles=())
    assert abs(even["a"].mean - even["b"].mean) < 1
    chain = rate(
        [line("snapshot:2", "snapshot:1", 24, 0, 8), line("snapshot:1", "snapshot:0", 24, 0, 8)]
        * 20,
        roles=(),
    )
    assert list(chain) == ["snapshot:2", "snapshot:1", "snapshot:0"]


def test_more_games_are_more_certain():
    few, many = (rate([line("a", "b", 3, 0, 1)] * n, roles=()) for n in (1, 50))
    assert many["a"].high - many["a"].low < few["a"].high - few["a"].low


def test_roles_are_players_of_their_own():
    lines = [
        line("snapshot:5", "snapshot:5", 9, 0, 1, side="seeker"),
        line("snapshot:5", "bot:still", 1, 0, 9, side="hider"),
    ]
    found = rate(lines, roles=("seeker", "hider"))
    assert set(found) == {"seeker snapshot:5", "hider snapshot:5", "seeker bot:still"}
    assert found["seeker snapshot:5"].mean > found["hider snapshot:5"].mean


def test_a_team_against_the_snapshot_it_is_counted_as_says_nothing():
    assert rate([line("snapshot:5", "snapshot:5", 9, 0, 1)], roles=("player",)) == {}


def test_win_rates_count_teams_together_and_draws_apart():
    lines = [
        line("x", "bot:a", 6, 2, 2),
        line("y", "bot:a", 4, 4, 2, side="team1"),
        line("y", "bot:b", 0, 0, 5),
    ]
    found = win_rates(lines, roles=("player",))[""]
    assert (
        found["bot:a"]["win_rate"] == 0.5
        and found["bot:a"]["draw_rate"] == 0.3
        and found["bot:a"]["episodes"] == 20
    )
    assert found["bot:a"]["low"] == pytest.approx(0.2993, abs=1e-3), "Wilson's interval of 10 in 20"
    assert found["bot:b"]["win_rate"] == 0 and found["bot:b"]["loss_rate"] == 1


def test_metrics_are_the_learners_rating_and_that_of_the_frozen_pool():
    """The learner is whom it was counted as last; bots and its own former selves in its role are no
    part of the pool."""
    ratings = Ratings(("player",))
    assert ratings.metrics() == {}
    for match in (
        line("snapshot:9", "bot:still", 9, 0, 1),
        line("snapshot:9", "snapshot:0", 9, 0, 1),
        line("snapshot:9", "snapshot:5", 8, 0, 2),
    ):
        ratings.add(match)
    table = ratings.table()
    pool = (table["snapshot:0"].mean + table["snapshot:5"].mean) / 2
    assert ratings.metrics() == {
        "league/rating": table["snapshot:9"].mean,
        "league/pool_rating": pytest.approx(pool),
    }
    assert table["snapshot:9"].mean > pool
    roles = Ratings(("seeker", "hider"))
    roles.add(line("snapshot:0", "snapshot:0", 9, 0, 1, side="seeker"))
    roles.add(line("snapshot:5", "snapshot:0", 9, 0, 1, side="seeker"))
    assert roles.metrics() == {
        "league/seeker/rating": roles.table()["seeker snapshot:5"].mean,
        "league/seeker/pool_rating": roles.table()["hider snapshot:0"].mean,
    }
