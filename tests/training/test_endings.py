"""How a run ended, and what Ctrl-C does at each moment."""

import shutil
import signal

import pytest

import ludus
from ludus import LudusError, api
from ludus.config import CheckpointConfig, EvalConfig, LogConfig, TrainConfig
from ludus.learn.ppo import PPO
from ludus.training import checkpoint
from ludus.training.display import Silent
from ludus.training.loop import Trainer
from ludus.training.run import Run
from ludus.training.start import create, prepare
from tests.training.test_runs import config

SHORT = dict(train=TrainConfig(total_agent_steps=1500, threads=1), log=LogConfig(tensorboard=False, diagnostics_every=0))


@pytest.fixture
def no_report(monkeypatch):
    """Drawing it takes longer than these trainings."""
    monkeypatch.setattr("ludus.training.report.write_report", lambda run: None)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ludus.train(config(**SHORT), run=tmp_path_factory.mktemp("endings") / "run", quiet=True)


def test_a_run_that_spent_its_budget_is_finished(run):
    assert run.state() == ("finished", "")


def test_a_run_whose_process_was_killed_has_crashed_unless_it_is_being_trained(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "copy")
    killed = Run(tmp_path / "copy")
    (killed.path / "ended.json").unlink()
    assert killed.state()[0] == "crashed"
    holder = Run(killed.path)
    holder.lock()
    assert killed.state() == ("training", "")
    holder.close()
    assert killed.state()[0] == "crashed"
    (killed.path / "ended.json").write_text("[]")
    with pytest.raises(LudusError, match="does not say how the run ended"):
        killed.state()


def test_a_run_that_fails_says_so_and_why_and_forgets_it_when_it_goes_on(tmp_path, monkeypatch):
    learn, count = PPO.learn, 0

    def fail(self, share):
        nonlocal count
        count += 1
        if count == 3:
            raise RuntimeError("no memory left")
        return learn(self, share)

    monkeypatch.setattr(PPO, "learn", fail)
    with pytest.raises(RuntimeError):
        ludus.train(config(**SHORT), run=tmp_path / "run", quiet=True)
    crashed = Run(tmp_path / "run")
    assert (
        crashed.state() == ("crashed", "no memory left")
        and "crashed (no memory left)" in (crashed.path / "report.html").read_text()
    )
    monkeypatch.setattr("ludus.training.report.write_report", lambda run: None)
    assert api.resume(crashed.path, quiet=True).state() == ("finished", "")


def test_ctrl_c_in_an_evaluation_abandons_it_and_saves(tmp_path, monkeypatch, no_report):
    """What the evaluation had found is left out, and it is due again when the run goes on."""
    told, after = [], Trainer.after_evaluation_step

    def press(self, against, done):
        told.append(against)
        if len(told) == 3:
            signal.raise_signal(signal.SIGINT)
        after(self, against, done)

    monkeypatch.setattr(Trainer, "after_evaluation_step", press)
    made = config(**SHORT, eval=EvalConfig(episodes=4, every_agent_steps=600))
    stopped = ludus.train(made, run=tmp_path / "run", quiet=True)
    lines = stopped.metrics()
    assert len(told) == 3 and stopped.state() == ("stopped", "on request")
    assert lines[-1]["progress/agent_steps"] >= 600 and not any(n.startswith("eval/") for line in lines for n in line)
    assert checkpoint.steps(stopped)[-1] == lines[-1]["progress/agent_steps"]
    after_resume = api.resume(stopped.path, quiet=True).metrics()[len(lines) :]
    assert "eval/bot:flee/catch_rate" in after_resume[0] and "eval/bot:flee/catch_rate" in after_resume[-1]


def test_a_second_ctrl_c_stops_at_once(tmp_path, monkeypatch):
    learn = PPO.learn

    def press(self, share):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return learn(self, share)

    monkeypatch.setattr(PPO, "learn", press)
    with pytest.raises(KeyboardInterrupt):
        ludus.train(config(**SHORT), run=tmp_path / "run", quiet=True)
    stopped = Run(tmp_path / "run")
    assert stopped.state()[0] == "stopped" and "interrupted" in stopped.state()[1]
    assert not stopped.metrics() and not (stopped.path / "report.html").exists()


def test_an_evaluation_does_not_bring_the_next_one_nearer(tmp_path, monkeypatch):
    """Seconds between evaluations are counted from the end of one to the next, however long they take."""
    made = config(**SHORT, eval=EvalConfig(episodes=2, every_seconds=20.0, against=("self",), greedy=False))
    trainer = create(tmp_path / "run", *prepare(made), display=Silent())

    def slow(trainer, against, done):
        trainer._counted_at -= 1.0  # as if a second had gone by

    monkeypatch.setattr(Trainer, "after_evaluation_step", slow)
    before = trainer.elapsed
    trainer.evaluate()
    assert trainer.elapsed > before + 20
    trainer.progress.seconds = trainer.elapsed  # as the next iteration counts it
    assert not trainer.evaluation_due()
    trainer.progress.seconds += 20.0
    assert trainer.evaluation_due()
    trainer.run.close()


def test_nothing_is_left_where_preparing_fails(tmp_path, monkeypatch):
    def fail(self, schedules_at):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "begin", fail)
    with pytest.raises(KeyboardInterrupt):
        ludus.train(config(**SHORT, checkpoint=CheckpointConfig()), run=tmp_path / "runs" / "new" / "run", quiet=True)
    assert not list(tmp_path.iterdir())
