"""Samplers of the user's own, of tasks and of the league's snapshots: functions that return
weights."""

import random
from collections import Counter

import numpy as np
import pytest

import ludus
from ludus import cli
from ludus.config import TasksConfig
from ludus.curriculum.buckets import Bucket
from ludus.curriculum.learning_progress import TaskPool
from ludus.errors import LudusError
from ludus.league.matchmaking import draw
from ludus.runs import checkpoint
from tests.curriculum.test_tasks import config

HERE = "tests.curriculum.test_own_samplers"


def high_levels(tasks):
    """What was played counts by its value, what was not by 1."""
    return np.where(tasks.episodes > 0, tasks.values["level"], 1.0)


def by_score(told):
    scores = getattr(told, "fast", told)
    return 1.0 + np.abs(scores)


def last(told):
    weights = 0 * by_score(told)
    weights[-1] = 2
    return weights


def too_many(told):
    return np.ones(99)


def not_a_number(told):
    return by_score(told) * np.nan


def negative(told):
    return -by_score(told)


def nothing(told):
    return 0 * by_score(told)


def in_words(told):
    return ["often"] * len(by_score(told))


def broken(told):
    return 1 / 0


class Klass: ...


number = 3
WRONG = [
    ("too_many", "returned an array of the shape (99,) for "),
    ("not_a_number", "returned the weight nan: return finite numbers"),
    ("negative", "returned the weight -"),
    ("nothing", "returned weights that add up to 0: give at least one more than 0"),
    ("in_words", "failed: ValueError"),
    ("broken", "failed: ZeroDivisionError: division by zero (test_own_samplers.py, line"),
    ("Klass", "is a class: name a function"),
    ("number", "is of the type int: name a function"),
    ("nobody", "has no 'nobody'"),
]


def make(sampler, count=4, **settings):
    buckets = [Bucket("level", tuple(map(float, range(count))))]
    settings = TasksConfig(pool=count, sampler=f"{HERE}:{sampler}", **settings)
    return TaskPool(settings, buckets, 0.0, random.Random(0))


def test_tasks_are_drawn_by_the_weights_of_a_function():
    pool = make("high_levels")
    source = random.Random(1)
    drawn = Counter(pool.draw(source) for _ in range(4000))
    assert all(abs(drawn[place] / 4000 - 0.25) < 0.03 for place in range(4))
    for place in range(4):
        pool.complete(pool.number[place], 0.5)
    drawn = Counter(pool.draw(source) for _ in range(4000))
    assert drawn[0] == 0 and all(abs(drawn[p] / 4000 - p / 6) < 0.04 for p in (1, 2, 3))
    assert 0 < pool.entropy() < 1


def test_tasks_of_least_weight_make_room():
    buckets = [Bucket("level", tuple(range(100)))]
    settings = TasksConfig(pool=10, sampler=f"{HERE}:high_levels", evict_share=0.3, evict_after=1)
    pool = TaskPool(settings, buckets, 0.0, random.Random(0))
    for place in range(10):
        pool.complete(pool.number[place], 0.0)
    levels = [task[0] for task in pool.tasks]
    assert sorted(levels[place] for place in pool.least()) == sorted(levels)[:3]


def test_snapshots_are_drawn_by_the_weights_of_a_function():
    source = np.random.default_rng(0)
    assert draw(f"{HERE}:last", [5, 6, 7], {}, source) == 7


@pytest.mark.parametrize(("name", "told"), WRONG)
@pytest.mark.parametrize(
    "words",
    [
        ["--league.sampler"],
        ["--curriculum.tasks.vary.speed", "0.1 to 0.3", "--curriculum.tasks.sampler"],
    ],
    ids=["league", "tasks"],
)
def test_wrong_samplers_are_refused_before_anything_is_written(
    name, told, words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "pursuit", "--run", "no", "--quiet", *words, f"{HERE}:{name}"])
    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2 and told in said and "\n" not in said, said
    assert name == "nobody" or f"{words[-1].removeprefix('--')}={HERE}:{name} " in said
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("setting", ["league.sampler", "curriculum.tasks.sampler"])
def test_an_unknown_name_is_refused(setting):
    values = {"curriculum.tasks.vary.speed": "0.1 to 0.3", setting: "unifrom"}
    with pytest.raises(LudusError, match=f"{setting}=unifrom is unknown: did you mean 'uniform'"):
        ludus.train("pursuit", run="no", quiet=True, **values)


def test_a_resumed_run_draws_as_one_that_never_stopped(tmp_path, monkeypatch):
    monkeypatch.setenv("LUDUS_JIT", "0")
    settings = config(sampler=f"{HERE}:by_score", baseline=0.0)
    whole = ludus.train(settings, run=tmp_path / "whole", quiet=True)
    part = ludus.train(
        config(steps=300, sampler=f"{HERE}:by_score", baseline=0.0),
        run=tmp_path / "part",
        quiet=True,
    )
    ludus.resume(part.path, quiet=True, total_agent_steps=600)
    step = checkpoint.steps(whole)[-1]
    assert step == checkpoint.steps(part)[-1]
    a, b = (checkpoint.read_manifest(run, step)["tasks"] for run in (whole, part))
    assert a == b and a["completed"] > 20
