"""The pool of tasks, with answers worked by hand: progress, weights, eviction, and what an episode
costs."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from ludus.config import TasksConfig
from ludus.curriculum.buckets import Bucket, make_buckets, parse_bucket
from ludus.curriculum.learning_progress import TaskPool
from ludus.errors import LudusError
from ludus.games import load_game


def make(size=4, baseline=0.0, **settings):
    """A pool of `size` different tasks of a real number, so that others could take their place."""
    config = TasksConfig(pool=size, **settings)
    return TaskPool(config, [Bucket("x", low=0.0, high=1.0)], baseline, random.Random(0))


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


# -- buckets ---------------------------------------------------------------------------------------


def test_values_and_bounds():
    source = random.Random(1)
    listed, real, whole = (
        parse_bucket("a", "1, 3,5", True),
        parse_bucket("b", "0.1 to 0.5", False),
        parse_bucket("c", "-1 to 2", True),
    )
    assert (listed.values, listed.count, real.count, whole.count) == ((1, 3, 5), 3, math.inf, 4)
    drawn = Counter(whole.draw(source) for _ in range(4000))
    assert sorted(drawn) == [-1, 0, 1, 2] and all(
        abs(n - 1000) < 4 * math.sqrt(750) for n in drawn.values()
    )
    numbers = [real.draw(source) for _ in range(1000)]
    assert 0.1 <= min(numbers) < 0.11 and 0.49 < max(numbers) <= 0.5
    assert {listed.draw(source) for _ in range(50)} == {1, 3, 5}
    assert listed.shares(np.array([1, 1, 5, 3])) == {"1": 0.5, "3": 0.25, "5": 0.25}
    assert real.shares(np.array([0.1, 0.15, 0.5, 0.31])) == {
        "0.1-0.2": 0.5,
        "0.2-0.3": 0.0,
        "0.3-0.4": 0.25,
        "0.4-0.5": 0.25,
    }


@pytest.mark.parametrize(
    ("vary", "base", "words"),
    [
        (
            {"altar_bateries": "1, 3"},
            {},
            "no parameter 'altar_bateries': did you mean 'altar_batteries'",
        ),
        ({"reward.battery": "0, 1"}, {}, "did you mean 'reward.batteries'"),
        (
            {"altar_batteries": "3"},
            {},
            "has 1 value, which leaves nothing to choose: give at least 2",
        ),
        ({"altar_batteries": "3, 3"}, {}, "has 1 value"),
        ({"altar_batteries": "3 to 3"}, {}, "has 1 value"),
        ({"altar_batteries": "5 to 1"}, {}, "bounds reversed, 5 is above 1: write '1 to 5'"),
        ({"altar_batteries": "1 to 99"}, {}, "altar_batteries=99 is outside 1 to 50"),
        ({"altar_batteries": "1, 2.5"}, {}, "must be a whole number"),
        ({"altar_batteries": "few"}, {}, "neither values nor bounds: write '1, 3, 5'"),
        (
            {"walls": "0 to 600", "blocks": "0, 20"},
            {},
            "allows the task walls=600, blocks=0, but a room of 25x25 has 625 cells but 6 "
            "agents.*need 626",
        ),
        ({"population": "6, 12"}, {}, "population is a size"),
        (
            {"walls": "0, 10"},
            {"population": 0},
            "population=0 cannot work: population must be at least 1",
        ),
    ],
)
def test_tasks_that_cannot_be_played_are_refused_with_both_numbers(vary, base, words):
    with pytest.raises(LudusError, match=words):
        make_buckets(vary, load_game("arena")[0], base, None)


# -- the pool --------------------------------------------------------------------------------------


def test_progress_of_two_scores_by_hand():
    """Both averages start at the first score, 2. The second, 12: fast 3, slow 2.2. Progress 0.8 + a
    tenth of 3 - 1."""
    pool = make(baseline=1.0)
    pool.complete(0, 2.0)
    assert pool.progress[0] == pytest.approx(0.1)
    pool.complete(0, 12.0)
    assert (pool.fast[0], pool.slow[0]) == pytest.approx((3.0, 2.2)) and pool.progress[
        0
    ] == pytest.approx(1.0)
    pool.complete(1, -50.0)  # a score far below the baseline is not clamped, and pays no bonus
    pool.complete(1, -30.0)
    assert pool.progress[1] == pytest.approx((-50 + 2.0) - (-50 + 0.4))
    assert pool.standard() == pytest.approx((1.3, 0.3)) and pool.completed == 4


def test_several_episodes_at_once_count_as_one_after_the_other():
    one, other = make(), make()
    for score in (1.0, 5.0, 5.0, 5.0):
        one.complete(2, score)
    other.complete(2, 1.0)
    other.complete(2, 5.0, 3)
    assert other.fast[2] == pytest.approx(one.fast[2]) and other.progress[2] == pytest.approx(
        one.progress[2]
    )
    assert other.count == one.count and sorted(other.new) == sorted(one.new) == [0, 1, 3]


def test_tasks_are_drawn_by_the_sigmoid_of_standardised_progress_and_new_ones_more_often():
    """Progress 0, 1, 1 and 2 has mean 1 and deviation √½; the fifth task was never played."""
    pool = make(5)
    for place, progress in enumerate((0.0, 1.0, 1.0, 2.0)):
        pool.progress[place], pool.count[place] = progress, 2
        pool.no_longer_new(place)
    pool.known, pool.sum, pool.sum_of_squares = 4, 4.0, 6.0
    weights = [sigmoid(-math.sqrt(2)), 0.5, 0.5, sigmoid(math.sqrt(2)), 1.5]
    assert pool.weights() == pytest.approx(weights)
    source, draws = random.Random(3), 20_000
    drawn = Counter(pool.draw(source) for _ in range(draws))
    for place, weight in enumerate(weights):
        share = weight / sum(weights)
        assert abs(drawn[place] / draws - share) < 4 * math.sqrt(share * (1 - share) / draws)
    entropy = -sum(w / sum(weights) * math.log(w / sum(weights)) for w in weights) / math.log(5)
    assert pool.entropy() == pytest.approx(entropy)


def test_the_uniform_sampler_ignores_progress():
    pool = make(4, sampler="uniform")
    for _ in range(400):
        pool.complete(0, random.random())
    drawn = Counter(pool.draw(random.Random(i)) for i in range(4000))
    assert all(abs(n - 1000) < 4 * math.sqrt(750) for n in drawn.values())
    pool.review(random.Random(0))
    assert pool.evicted == 0 and pool.entropy() == 1.0


def test_the_two_of_five_with_least_progress_are_evicted_and_nobody_else():
    """Ten tasks, five of them completed five times: 40% are two. Task 9 has no progress but was
    completed only four times."""
    pool = make(10)
    for number, jump in ((0, 5.0), (1, 0.5), (2, 3.0), (3, 0.1), (4, 9.0)):
        pool.complete(number, 0.0)
        pool.complete(number, jump, 4)
    pool.complete(9, 0.0, 4)
    assert sorted(pool.least()) == [1, 3]
    pool.completed = 256  # when the next look is due
    before, kept = list(pool.tasks), pool.progress[4]
    pool.review(random.Random(7))
    assert [place for place in range(10) if pool.tasks[place] != before[place]] == [1, 3]
    assert {pool.number[1], pool.number[3]} == {10, 11}
    assert (
        pool.count[1] == pool.count[3] == 0
        and pool.evicted == 2
        and sorted(pool.new) == [1, 3, 5, 6, 7, 8]
        and pool.known == 4
    )
    pool.complete(1, 100.0)  # a late result of the evicted task belongs to nobody
    assert pool.count[1] == 0 and pool.known == 4 and pool.progress[4] == kept
    mean = sum(pool.progress) / 4
    assert pool.standard() == pytest.approx(
        (mean, math.sqrt(sum(p * p for p in pool.progress) / 4 - mean**2))
    )


def test_where_few_tasks_are_possible_all_are_in_the_pool_for_good():
    buckets = [parse_bucket("a", "1, 2, 3", True), parse_bucket("b", "0 to 1", True)]
    pool = TaskPool(TasksConfig(pool=6), buckets, 0.0, random.Random(0))
    assert sorted(pool.tasks) == [(a, b) for a in (1, 2, 3) for b in (0, 1)]
    for number in range(6):
        pool.complete(number, 0.0, 100)
    pool.review(random.Random(0))
    assert pool.evicted == 0 and pool.reviewed == 600


class Counting(random.Random):
    calls = 0

    def random(self):
        self.calls += 1
        return super().random()


def test_an_episode_costs_the_same_with_10_tasks_and_with_10000():
    """A draw proposes fewer than two tasks on average, whatever the size; the whole pool is looked
    at once in three times as many episodes as it has tasks."""
    proposals = {}
    for size in (10, 10_000):
        pool, source, scores = make(size), Counting(0), random.Random(5)
        for number in range(size):
            pool.complete(number, scores.random(), 2)
        for _ in range(2000):
            pool.complete(pool.number[pool.draw(source)], scores.random())
        proposals[size] = source.calls / 2 / 2000
        reviews, replace = [], pool.least
        pool.least = lambda reviews=reviews, replace=replace: reviews.append(1) or replace()
        pool.reviewed = pool.completed
        for _ in range(6 * size):
            pool.completed += 1
            pool.review(source)
        assert len(reviews) == (2 if size == 10_000 else 0)  # never oftener than every 256 episodes
    assert all(1.2 < count < 2.2 for count in proposals.values())
