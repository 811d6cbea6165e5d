"""Schedules follow the share of the budget, and never go backwards when the budget changes on the
way."""

import pytest

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.config import Config, EvalConfig, LogConfig, PolicyConfig, TrainConfig
from ludus.runs.budget import Anchor, schedule_share, spent


def test_shares_by_hand():
    steps, both = (
        TrainConfig(total_agent_steps=100),
        TrainConfig(total_agent_steps=100, total_seconds=10),
    )
    assert (
        spent(steps, 25, 99.0) == 0.25
        and spent(both, 25, 5.0) == 0.5
        and spent(both, 25, 20.0) == 1.0
    )
    assert schedule_share(steps, 25, 0.0, Anchor()) == 0.25
    # stopped at half of 100, then 250 in all: the other half is spread over the 200 that are left
    more = TrainConfig(total_agent_steps=250)
    at = [schedule_share(more, n, 0.0, Anchor(0.5, 50, 0.0)) for n in (50, 150, 250)]
    assert at == [0.5, 0.75, 1.0]
    assert schedule_share(TrainConfig(total_agent_steps=50), 50, 0.0, Anchor(0.5, 50, 0.0)) == 1.0


def config(steps, rate):
    return Config(
        game="pursuit",
        envs=16,
        game_values={"max_steps": 20.0},
        policy=PolicyConfig(hidden=(8,)),
        learner=PPOConfig(rollout=16, minibatches=2, epochs=1, learning_rate=rate),
        train=TrainConfig(total_agent_steps=steps, threads=1),
        eval=EvalConfig(episodes=2, every_agent_steps=10**9, greedy=False),
        log=LogConfig(tensorboard=False, replay_every=0, diagnostics_every=0),
    )


def rates(run):
    return [line["learner/chaser/lr"] for line in run.metrics()]


def test_a_resume_with_a_larger_budget_goes_on_from_where_schedules_stood(tmp_path, capsys):
    run = ludus.train(config(4_000, "1e-3 -> 1e-4"), run=tmp_path / "run", quiet=True)
    before = rates(run)
    ludus.resume(run.path, quiet=True, total_agent_steps=8_000)
    after = rates(run)
    assert len(after) > len(before) and after[: len(before)] == before
    assert after == sorted(after, reverse=True) and after[-1] == pytest.approx(1e-4)
    assert "learns nothing more" not in capsys.readouterr().err


def test_a_finished_run_whose_learning_rate_ended_at_zero_says_so(tmp_path, capsys):
    run = ludus.train(config(2_000, "1e-3 -> 0"), run=tmp_path / "run", quiet=True)
    before = len(run.metrics())
    ludus.resume(run.path, quiet=True, total_agent_steps=3_000)
    assert set(rates(run)[before:]) == {0.0}
    told = capsys.readouterr().err
    assert (
        "ppo.learning_rate=1e-3 -> 0" in told
        and f"ludus fork {run.path} --ppo.learning-rate" in told
    )
