"""Game values that change while a run trains are told everywhere; figures of too few episodes are
told nowhere."""

import json

import pytest

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.batches import make_batch
from ludus.config import (
    Config,
    CurriculumConfig,
    EvalConfig,
    LogConfig,
    PolicyConfig,
    Stage,
    TrainConfig,
)
from ludus.doctor.log import read_log
from ludus.doctor.watch import examine
from ludus.runs.run import Run
from ludus.training.dashboard import Dashboard
from ludus.training.episodes import episodes_line
from ludus.training.game_values import evaluated_values, game_line, game_metrics
from ludus.training.report import write_report


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Pursuit whose chaser slows down over the first half, as its recipe has it."""
    config = Config(
        game="pursuit",
        game_values={"max_steps": 20, "chaser_speed": "0:0.5, 0.5:0.25"},
        envs=8,
        policy=PolicyConfig(hidden=(8,)),
        learner=PPOConfig(rollout=16, epochs=1, minibatches=1),
        train=TrainConfig(total_agent_steps=4000, threads=1),
        eval=EvalConfig(episodes=4, against=("self",)),
        log=LogConfig(tensorboard=False),
    )
    return ludus.train(config, run=tmp_path_factory.mktemp("runs") / "slower", quiet=True)


def test_a_scheduled_value_is_logged_every_iteration_beside_the_one_that_is_evaluated(run):
    lines = run.metrics()
    speeds = [line["game/chaser_speed"] for line in lines]
    assert speeds[0] == 0.5 and speeds[-1] == 0.25 and speeds == sorted(speeds, reverse=True)
    assert {line["game/chaser_speed_evaluated"] for line in lines} == {0.25}
    # which stays as it is
    assert not [name for name in lines[0] if name.startswith("game/max_steps")]


def test_what_is_logged_is_what_envs_play_not_what_they_were_told():
    """A new value takes effect in each env's next episode. Values that stages set are told, too,
    and reward weights."""
    stages = (
        Stage(mix="chaser/bot:random 1", game={"speed": 0.1, "reward.near": 0.5}),
        Stage(mix="self 1"),
    )
    config = Config(game="pursuit", envs=4, curriculum=CurriculumConfig(stages=stages))
    evaluated, batch = evaluated_values(config), make_batch(config, 4, 0)
    assert evaluated == pytest.approx({"speed": 0.2, "reward.near": 0.01})
    batch.set_params(stages[0].game)
    batch.step()
    assert game_metrics(batch, evaluated)["game/speed"] == 0.2
    batch.reset()
    assert game_metrics(batch, evaluated) == {
        "game/speed": 0.1,
        "game/speed_evaluated": 0.2,
        "game/reward.near": 0.5,
        "game/reward.near_evaluated": 0.01,
    }


def test_people_are_told_as_long_as_training_plays_another_game():
    line = {
        "game/chaser_speed": 0.41,
        "game/chaser_speed_evaluated": 0.25,
        "goal/chaser/catch_rate": 1.0,
    }
    assert game_line(line) == "chaser_speed 0.41 (evaluations play 0.25)"
    assert game_line({**line, "game/chaser_speed": 0.25}) == "chaser_speed 0.25"
    assert game_line({"goal/chaser/catch_rate": 1.0}) == ""


def test_the_report_draws_it(run):
    assert 'alt="Game values that change"' in (run.path / "report.html").read_text()


def test_first_episodes_are_no_result():
    """Those that end first are the short ones: at first every chaser that is done has caught
    everybody."""
    line = {"progress/episodes": 2, "episode/chaser/return": 30.8, "goal/chaser/catch_rate": 1.0}
    assert episodes_line(line, "chaser", 128) == ("", ["too few episodes (2 of 128)"])
    assert episodes_line({"progress/episodes": 0}, "chaser", 128) == (
        "",
        ["too few episodes (0 of 128)"],
    )
    assert episodes_line({**line, "progress/episodes": 128}, "chaser", 128) == (
        "30.80",
        ["catch_rate 1.00"],
    )


class Shown:
    """What a dashboard asks a trainer for."""

    share, league, elapsed = 0.1, None, 1.0

    def __init__(self, run):
        self.run, self.config = run, run.config()
        self.progress = type(
            "Progress",
            (),
            {"agent_steps": 1000, "seconds": 1.0, "iteration": 4, "episodes": 2, "best": {}},
        )
        self.algorithm = type("Algorithm", (), {"policies": {"chaser": None, "runner": None}})
        self.doctor = type(
            "Doctor", (), {"findings": [], "watcher": type("Watcher", (), {"track": None})}
        )


def test_the_dashboard_says_both(run, capsys):
    line = {**run.metrics()[-1], "progress/episodes": 2, "game/chaser_speed": 0.5}
    Dashboard(run.config()).iteration(Shown(run), line)
    text = capsys.readouterr().err
    assert (
        "too few episodes (2 of 8)" in text
        and "nan" not in text
        and "catch_rate" not in text.split("game")[0]
    )
    assert "chaser_speed 0.5 (evaluations play 0.25)" in text


def test_the_report_leaves_first_episodes_out(run, tmp_path):
    for name in ("config.json", "game.json"):
        (tmp_path / name).write_bytes((run.path / name).read_bytes())
    copy = Run(tmp_path)
    few = [{**line, "progress/episodes": 3} for line in run.metrics()]
    (copy.path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in few))
    write_report(copy)
    page = (copy.path / "report.html").read_text()
    assert (
        "Return: too few episodes (3 have finished in 8 envs)" in page
        and 'alt="Return"' not in page
    )
    assert 'alt="Entropy share"' in page


def test_the_doctor_reads_it_from_the_run(run):
    (found,) = [f for f in examine(read_log(run.path)) if f.check == "game_values_change"]
    assert found.severity == "info" and "chaser_speed 0.5 at first, 0.25 now" in found.cause
