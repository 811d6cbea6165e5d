"""How many threads: measured once, remembered where nothing else had the cores."""

import json
import os
import subprocess
import sys

import pytest

from ludus.algorithms.ppo import PPOConfig
from ludus.config import Config
from ludus.training import threads

SECONDS = {1: 2.0, 4: 1.0}


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Four idle cores on which four threads are twice as fast; the thread counts that were
    timed."""
    timed = []
    monkeypatch.setattr(threads, "cores", lambda: 4)
    monkeypatch.setattr(threads, "_memory_path", lambda: tmp_path / "cache" / "threads.json")
    monkeypatch.setattr(threads, "_time", lambda config, n: timed.append(n) or SECONDS[n])
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 0.0, 0.0))
    return timed


def test_the_choice_is_measured_once(measured):
    assert [threads.choose_threads(Config(game="pursuit")) for _ in range(2)] == [4, 4]
    assert sorted(measured) == [1, 4]
    assert threads.choose_threads(Config(game="pursuit", envs=7)) == 4  # another kind of run
    assert len(measured) == 4


@pytest.mark.parametrize(
    "damage",
    [b"\xff\xfe", b"[]", b"{", b"null", b'{"KEY": "many"}', b'{"KEY": [4]}', b'{"KEY": 3}'],
)
def test_what_is_damaged_is_measured_again(measured, tmp_path, damage):
    config = Config(game="pursuit")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "threads.json").write_bytes(
        damage.replace(b"KEY", threads._key(config).encode())
    )
    assert [threads.choose_threads(config) for _ in range(2)] == [4, 4]
    assert sorted(measured) == [1, 4]


def test_a_choice_made_beside_other_programs_is_not_remembered(measured, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "getloadavg", lambda: (3.5, 0.0, 0.0))
    assert threads.choose_threads(Config(game="pursuit")) == 4
    assert not (tmp_path / "cache" / "threads.json").exists()
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 0.0, 0.0))
    threads.choose_threads(Config(game="pursuit"))
    assert list(json.loads((tmp_path / "cache" / "threads.json").read_text()).values()) == [4]
    assert len(measured) == 4


def test_one_thread_where_there_is_no_choice(measured, monkeypatch):
    assert threads.choose_threads(Config(game="pursuit", device="cuda")) == 1
    assert threads.choose_threads(Config(game="gym:CartPole-v1")) == 1
    monkeypatch.setattr(threads, "cores", lambda: 1)
    assert threads.choose_threads(Config(game="pursuit")) == 1
    assert not measured


@pytest.mark.parametrize(
    ("seconds", "found", "tried"), [([5.0], 5.0, 1), ([1.9, 0.5, 0.3, 0.4], 0.3, 4)]
)
def test_an_iteration_that_takes_long_is_timed_once(seconds, found, tried):
    left = list(seconds)
    assert threads._shortest(lambda: left.pop(0)) == found and len(seconds) - len(left) == tried


def test_minibatches_of_a_trial_are_as_large_as_those_of_training(monkeypatch):
    """Rollouts of 64 in 8 minibatches: of 16 steps there are 2; 6 envs would not divide into 4."""
    made = []
    monkeypatch.setattr(threads, "_shortest", lambda iteration: 0.0)
    monkeypatch.setattr(
        "ludus.training.threads.make_algorithm",
        lambda batch, config: made.append(config.learner.minibatches),
    )
    for envs, minibatches in ((8, 8), (6, 16)):
        learn = PPOConfig(rollout=64, bptt=16, minibatches=minibatches)
        threads._time(Config(game="pursuit", envs=envs, learner=learn), 1)
    assert made == [2, 2]


@pytest.mark.parametrize(
    ("given", "found"),
    [({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None")],
)
def test_threads_that_wait_give_up_their_cores_unless_told_otherwise(given, found):
    clean = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    code = "import ludus, os; print(os.environ.get('GOMP_SPINCOUNT'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean | given, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == found


def test_how_to_repeat_a_run_is_said(measured, capsys):
    threads.choose_threads(Config(game="pursuit", seed=3))
    assert "--seed 3 --train.threads 4 repeats this run" in capsys.readouterr().err
