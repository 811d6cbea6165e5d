"""How a run ended, and what Ctrl-C does at each moment."""

import errno
import io
import os
import shutil
import signal

import pytest

import ludus
from ludus import LudusError, api, cli
from ludus.algorithms.ppo.ppo import PPO
from ludus.config import CheckpointConfig, EvalConfig, LogConfig, TrainConfig
from ludus.runs import checkpoint
from ludus.runs.run import Run
from ludus.training.display import Silent
from ludus.training.evaluation import Evaluations
from ludus.training.loop import Trainer
from ludus.training.start import create, prepare, remove_abandoned
from tests.training.test_runs import config

SHORT = dict(
    train=TrainConfig(total_agent_steps=1500, threads=1),
    log=LogConfig(tensorboard=False, diagnostics_every=0),
)


@pytest.fixture
def no_report(monkeypatch):
    """Drawing it takes longer than these trainings."""
    monkeypatch.setattr("ludus.training.finish.write_report", lambda run: None)


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
    monkeypatch.setattr("ludus.training.finish.write_report", lambda run: None)
    assert api.resume(crashed.path, quiet=True).state() == ("finished", "")


def test_ctrl_c_in_an_evaluation_abandons_it_and_saves(tmp_path, monkeypatch, no_report):
    """What the evaluation had found is left out, and it is due again when the run goes on."""
    told, after = [], Evaluations.after_step

    def press(self, who, done):
        told.append(who)
        if len(told) == 3:
            signal.raise_signal(signal.SIGINT)
        after(self, who, done)

    monkeypatch.setattr(Evaluations, "after_step", press)
    made = config(**SHORT, eval=EvalConfig(episodes=4, every_agent_steps=600))
    stopped = ludus.train(made, run=tmp_path / "run", quiet=True)
    lines = stopped.metrics()
    assert len(told) == 3 and stopped.state() == ("stopped", "on request")
    assert lines[-1]["progress/agent_steps"] >= 600 and not any(
        n.startswith("eval/") for line in lines for n in line
    )
    assert checkpoint.steps(stopped)[-1] == lines[-1]["progress/agent_steps"]
    after_resume = api.resume(stopped.path, quiet=True).metrics()[len(lines) :]
    assert (
        "eval/bot:flee/catch_rate" in after_resume[0]
        and "eval/bot:flee/catch_rate" in after_resume[-1]
    )


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
    """Seconds between evaluations are counted from the end of one to the next, however long they
    take."""
    made = config(
        **SHORT, eval=EvalConfig(episodes=2, every_seconds=20.0, against=("self",), greedy=False)
    )
    trainer = create(tmp_path / "run", *prepare(made), display=Silent())

    def slow(evaluations, who, done):
        evaluations.trainer._counted_at -= 1.0  # as if a second had gone by

    monkeypatch.setattr(Evaluations, "after_step", slow)
    before = trainer.elapsed
    trainer.evaluations.evaluate()
    assert trainer.elapsed > before + 20
    trainer.progress.seconds = trainer.elapsed  # as the next iteration counts it
    assert not trainer.evaluations.due()
    trainer.progress.seconds += 20.0
    assert trainer.evaluations.due()
    trainer.run.close()


def test_nothing_is_left_where_preparing_fails(tmp_path, monkeypatch):
    def fail(self, schedules_at):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "begin", fail)
    with pytest.raises(KeyboardInterrupt):
        ludus.train(
            config(**SHORT, checkpoint=CheckpointConfig()),
            run=tmp_path / "runs" / "new" / "run",
            quiet=True,
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_ends_the_process_gets_a_checkpoint_first(tmp_path, monkeypatch, no_report, number):
    learn = PPO.learn

    def end(self, share):
        signal.raise_signal(number)
        return learn(self, share)

    monkeypatch.setattr(PPO, "learn", end)
    stopped = ludus.train(config(**SHORT), run=tmp_path / "run", quiet=True)
    assert stopped.state() == ("stopped", "on request") and len(stopped.metrics()) == 1
    assert checkpoint.steps(stopped)[-1] == stopped.metrics()[-1]["progress/agent_steps"]


def test_what_the_user_had_ignored_stays_ignored(tmp_path, monkeypatch, no_report):
    """nohup ludus train …"""
    learn = PPO.learn

    def hang_up(self, share):
        signal.raise_signal(signal.SIGHUP)
        return learn(self, share)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        monkeypatch.setattr(PPO, "learn", hang_up)
        assert ludus.train(config(**SHORT), run=tmp_path / "run", quiet=True).state() == (
            "finished",
            "",
        )
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_run_that_is_ended_while_it_is_made_leaves_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Trainer, "begin", lambda *a: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "pursuit", "--run", "runs/new", "--train.threads", "1", "--quiet"])
    assert ended.value.code == 128 + signal.SIGTERM and list(tmp_path.iterdir()) == []


def test_what_a_killed_process_had_begun_is_removed_by_the_next(run, tmp_path):
    """Not that of a process that is alive: it holds the lock."""
    dead, alive, young = (tmp_path / f".{name}.123.partial" for name in ("dead", "alive", "young"))
    for folder in (dead, alive, young):
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "lock").touch()
    holder = Run(alive)
    holder.lock()
    for folder in (dead, alive):
        os.utime(folder, (0, 0))
    remove_abandoned(tmp_path)
    assert not dead.exists() and alive.exists() and young.exists()
    holder.close()


class FullDisk(io.BytesIO):
    """The file of a log where nothing fits any more."""

    def flush(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self):
        pass


def test_a_full_disk_in_a_log_is_one_sentence(tmp_path, monkeypatch, no_report):
    append = Run.append

    def fill(self, log, text):
        if log == "metrics.jsonl" and log in self._files:
            self._files[log] = FullDisk()
        append(self, log, text)

    monkeypatch.setattr(Run, "append", fill)
    with pytest.raises(
        LudusError, match=r"metrics\.jsonl could not be written or read \(No space left.*resume"
    ):
        ludus.train(config(**SHORT), run=tmp_path / "run", quiet=True)
    monkeypatch.setattr(Run, "append", append)
    assert Run(tmp_path / "run").state()[0] == "crashed"
    assert api.resume(tmp_path / "run", quiet=True).state() == ("finished", "")


def test_a_run_that_was_killed_before_its_report_is_finished_by_resume(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "copy")
    for name in ("ended.json", "report.html"):
        (tmp_path / "copy" / name).unlink()
    done = api.resume(tmp_path / "copy", quiet=True)
    assert done.state() == ("finished", "") and (done.path / "report.html").exists()
    with pytest.raises(LudusError, match="has spent its budget"):
        api.resume(tmp_path / "copy", quiet=True)
