"""Callbacks of the user's own: what they are told, that they change no numbers, stop, resume, and
fail in one sentence."""

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import ludus
from ludus import LudusError, cli
from ludus.algorithms.ppo import PPOConfig
from ludus.commands.doctor_bisect import _settings
from ludus.config import CheckpointConfig, EvalConfig, LogConfig, TrainConfig
from ludus.doctor.finding import Finding
from ludus.doctor.live import Record
from ludus.examine import exploit
from ludus.runs import checkpoint
from ludus.runs.run import Run
from ludus.runs.trust import believe
from ludus.training import start
from ludus.training.callbacks import METHODS, Callbacks, Training, make_callbacks, named
from ludus.training.watching import read_findings
from tests.training import test_resume, test_runs

QUICK = {
    "learner": PPOConfig(rollout=4, epochs=1, minibatches=1),
    "train": TrainConfig(total_agent_steps=1500, threads=1),
    "eval": EvalConfig(episodes=2, against=("self",), greedy=False, every_agent_steps=500),
    "checkpoint": CheckpointConfig(every_agent_steps=300, every_seconds=None),
    "log": LogConfig(tensorboard=False, diagnostics_every=0, replay_every=0),
}
IN_WORDS = shlex.split("""--envs 8 --game.max-steps 30 --policy.hidden 16 --ppo.rollout 4 --ppo.epochs 1
 --ppo.minibatches 1 --train.total-agent-steps 1500 --train.threads 1 --eval.episodes 2
 --eval.against self --eval.greedy False --eval.every-agent-steps 500 --log.tensorboard False
 --log.diagnostics-every 0 --log.replay-every 0 --checkpoint.every-agent-steps 300
 --checkpoint.every-seconds None --quiet""")

COUNTING = """
import json, os, random, signal

class Counting:
    '''Writes down every call; kills its process once at KILL_AT.'''

    def __init__(self):
        self.seen = 0

    def note(self, training, what):
        with open("calls.txt", "a") as file:
            print(json.dumps([what, training.iteration, self.seen, random.random()]), file=file)

    def iteration(self, training, metrics):
        self.seen += 1
        self.note(training, "iteration")
        if training.iteration == int(os.environ.get("KILL_AT", 0)):
            os.kill(os.getpid(), signal.SIGKILL)

    def evaluation(self, training, metrics):
        self.seen += 100
        self.note(training, "evaluation")

    def checkpoint(self, training, step, folder):
        self.seen += 10_000
        self.note(training, "checkpoint")

    def state(self):
        return {"seen": self.seen}

    def load_state(self, state):
        self.seen = state["seen"]
"""


def config(**changes):
    return test_runs.config(**{**QUICK, **changes})


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    """Drawing it takes longer than these trainings."""
    monkeypatch.setattr("ludus.training.finish.write_report", lambda run: None)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a user works: modules here can be imported."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [n for n, m in sys.modules.items() if _is_from(m, tmp_path)]:
        del sys.modules[name]


def _is_from(module, folder):
    return str(getattr(module, "__file__", None) or "").startswith(str(folder))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A run without callbacks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ludus.training.finish.write_report", lambda run: None)
        return ludus.train(config(), run=tmp_path_factory.mktemp("plain") / "run", quiet=True)


def train(run, *callbacks, **changes):
    return ludus.train(config(**changes), run=run, quiet=True, callbacks=list(callbacks))


def command(capsys, *arguments):
    """Status, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(a) for a in arguments])
    return ended.value.code, *capsys.readouterr()


class Recorder(ludus.Callback):
    def __init__(self, calls=None, name=""):
        self.calls, self.name = [] if calls is None else calls, name

    def __getattribute__(self, name):
        if name not in METHODS:
            return super().__getattribute__(name)
        note = self.name, name
        return lambda training, *given: self.calls.append((note, training.iteration, *given))


class StopAt(ludus.Callback):
    def __init__(self, iteration):
        self.at = iteration

    def iteration(self, training, metrics):
        if training.iteration == self.at:
            training.stop("that is\nenough")


# -- what they are told ----------------------------------------------------------------------------


def test_every_method_is_called_in_the_order_given(tmp_path, plain):
    calls = []
    run = train(tmp_path / "run", Recorder(calls, "a"), Recorder(calls, "b"))
    assert [name for (name, _), *_ in calls] == ["a", "b"] * (len(calls) // 2)
    own = [(method, *rest) for (name, method), *rest in calls if name == "a"]
    assert own[0] == ("start", 0) and own[-1][:1] + own[-1][2:] == ("end", "finished", "")
    lines = run.metrics()
    told = [metrics for method, _, *given in own if method == "iteration" for metrics in given]
    assert json.loads(json.dumps(told)) == lines
    evaluations = {at: given[0] for method, at, *given in own if method == "evaluation"}
    assert evaluations == {
        line["progress/iteration"]: {n: v for n, v in line.items() if n.startswith("eval/")}
        for line in lines
        if any(n.startswith("eval/") for n in line)
    }
    saved = [given for method, _, *given in own if method == "checkpoint"]
    assert saved[0][0] == 0 and saved[-1][0] == lines[-1]["progress/agent_steps"]
    assert all(path == checkpoint.folder(run, step) for step, path in saved)
    told = {given[0]["check"] for method, _, *given in own if method == "finding"}
    assert told == {record.finding.check for record in read_findings(run)}
    assert run.stored()["values"]["callbacks"] == ["Recorder", "Recorder-2"]


def test_what_the_handle_says(tmp_path):
    seen = []

    class Look:
        def iteration(self, training, metrics):
            assert training.agent_steps == metrics["progress/agent_steps"]
            assert training.seconds == metrics["progress/seconds"]
            seen.append((training.run, training.config["ppo.rollout"], training.iteration))

    run = train(tmp_path / "run", Look)  # a class that only this program has
    assert seen == [(run.path, 4, i + 1) for i in range(len(run.metrics()))]
    assert run.stored()["values"]["callbacks"] == ["Look"]


def test_a_finding_is_told_once_and_again_when_it_is_worse():
    def finding(severity):
        return Finding(check="x", severity=severity, cause="c", evidence="", fix="", confidence=1.0)

    recorder = Recorder()
    record, older = Record(finding("info"), 1), Record(finding("critical"), 0)
    doctor = SimpleNamespace(watcher=SimpleNamespace(records=[older]))
    progress = SimpleNamespace(agent_steps=5, iteration=1, seconds=0.0)
    callbacks = make_callbacks(["own"], {"own": recorder})
    run = SimpleNamespace(path=Path("run"))
    trainer = SimpleNamespace(doctor=doctor, progress=progress, config=config(), run=run)
    callbacks.start(trainer)
    doctor.watcher.records.append(record)
    for severity, gone in (("info", None), ("info", 7), ("info", None), ("warning", None)):
        record.finding, record.gone = finding(severity), gone
        callbacks.after_iteration({}, {})
    told = [
        given[0]["severity"] for (_, method), _, *given in recorder.calls if method == "finding"
    ]
    assert told == ["info", "warning"] and callbacks.failure is None


# -- numbers ---------------------------------------------------------------------------------------


class Meddler(ludus.Callback):
    """Draws and changes whatever it gets hold of."""

    def __init__(self):
        self.drawn = []

    def iteration(self, training, metrics):
        self.drawn.append((random.random(), np.random.rand(), torch.rand(1).item()))
        metrics.clear()
        training.config.clear()
        training.agent_steps = -1

    evaluation = checkpoint = end = lambda self, training, *given: torch.manual_seed(1)

    def start(self, training):
        torch.rand(100)


def test_callbacks_change_no_numbers(tmp_path, plain):
    random.seed(3)
    np.random.seed(3)
    meddler = Meddler()
    run = train(tmp_path / "run", meddler, Recorder())
    test_resume.assert_same(run.path, plain.path)
    for drawn in zip(*meddler.drawn, strict=True):
        assert len(set(drawn)) == len(run.metrics())
    after = random.random(), np.random.rand()
    random.seed(3)
    np.random.seed(3)
    assert after == (random.random(), np.random.rand())


# -- stopping and going on -------------------------------------------------------------------------


def test_a_callback_stops_the_run_and_a_resume_goes_on(folder, plain, capsys):
    run = train("run", StopAt(3))
    reason = "by the callback StopAt: that is enough"
    assert run.state() == ("stopped", reason) and len(run.metrics()) == 3
    assert checkpoint.steps(run)[-1] == run.metrics()[-1]["progress/agent_steps"]
    status, _, err = command(capsys, "resume", "run", "--quiet")
    assert status == 0 and err.count("\n") == 1
    assert "run goes on without the callback StopAt" in err
    test_resume.assert_same(run.path, plain.path)


def test_a_stop_has_a_status_of_its_own(folder, capsys):
    (folder / "mine.py").write_text(
        "class Stop:\n    def start(self, training):\n        training.stop('not today')\n"
    )
    arguments = ["train", "pursuit", "--run", "run", *IN_WORDS, "--json"]
    status, out, _ = command(capsys, *arguments, "--callbacks", "mine:Stop")
    result = json.loads(out)
    assert status == 3 and result["reason"] == "by the callback mine:Stop: not today"
    assert result["agent_steps"] == 0 and checkpoint.steps(Run("run")) == [0]


def test_a_stop_in_the_last_iteration_is_the_end_of_the_budget(tmp_path, plain):
    run = train(tmp_path / "run", StopAt(len(plain.metrics())))
    assert run.state() == ("finished", "")


def test_killed_and_resumed_it_calls_what_an_undisturbed_run_calls(folder, capsys):
    for name in ("whole", "killed"):
        (folder / name).mkdir()
        (folder / name / "counting.py").write_text(COUNTING)
    arguments = ["train", "pursuit", "--run", "run", *IN_WORDS, "--callbacks", "counting:Counting"]
    os.chdir(folder / "whole")
    assert command(capsys, *arguments)[0] == 0
    os.chdir(folder / "killed")
    del sys.modules["counting"]
    killed = subprocess.run(
        [sys.executable, "-c", test_resume.CLI, *arguments], env={**os.environ, "KILL_AT": "9"}
    )
    assert killed.returncode == -signal.SIGKILL
    before = read_calls(folder / "killed")
    at = checkpoint.read_manifest(Run("run"), checkpoint.steps(Run("run"))[-1])["progress"]
    (folder / "killed" / "calls.txt").unlink()
    assert command(capsys, "resume", "run", "--quiet")[0] == 0
    test_resume.assert_same(folder / "killed" / "run", folder / "whole" / "run")
    undisturbed, resumed = read_calls(folder / "whole"), read_calls(folder / "killed")
    first = undisturbed.index(
        next(c for c in undisturbed if c[:2] == ["checkpoint", at["iteration"]])
    )
    assert 0 < at["iteration"] < 9 and before == undisturbed[: len(before)]
    assert resumed == undisturbed[first:]


def read_calls(folder):
    return [json.loads(line) for line in (folder / "calls.txt").read_text().splitlines()]


class Tally(ludus.Callback):
    def __init__(self, stop_at=0):
        self.count, self.stop_at = 0, stop_at

    def iteration(self, training, metrics):
        self.count += 1
        if self.count == self.stop_at:
            training.stop("for now")

    def state(self):
        return {"count": self.count, "best": float("-inf")}

    def load_state(self, state):
        self.count = state["count"]


def test_an_object_is_handed_over_again(tmp_path, plain, capsys):
    run = train(tmp_path / "run", Tally(2), Tally())
    assert run.stored()["values"]["callbacks"] == ["Tally", "Tally-2"]
    assert ludus.resume(run.path, quiet=True, callbacks=[Tally(4)]).state()[0] == "stopped"
    assert "without the callback Tally-2" in capsys.readouterr().err
    # without its object the state of a callback is kept as it was
    manifest = checkpoint.read_manifest(run, checkpoint.steps(run)[-1])
    assert [s["count"] for s in manifest["callbacks"].values()] == [4, 2]
    with pytest.raises(LudusError, match=r"without the callback StopAt: .*ludus\.fork"):
        ludus.resume(run.path, quiet=True, callbacks=[StopAt(1)])
    last = Tally()
    ludus.resume(run.path, quiet=True, callbacks=[last, Tally()])
    assert last.count == len(plain.metrics())


def test_a_fork_keeps_what_can_be_imported(folder, capsys):
    (folder / "mine.py").write_text(COUNTING.replace("class Counting", "class Mine"))
    run = train("run", Tally(2), "mine:Mine")
    assert run.stored()["values"]["callbacks"] == ["Tally", "mine:Mine"]
    fork = ludus.fork(run.path, run="fork", quiet=True, total_agent_steps=300)
    assert fork.stored()["values"]["callbacks"] == ["mine:Mine"]
    assert "the fork goes on without the callback Tally" in capsys.readouterr().err
    again = Tally(1)
    other = ludus.fork(run.path, run="other", quiet=True, callbacks=[again])
    assert other.stored()["values"]["callbacks"] == ["Tally"]
    assert other.state()[0] == "stopped" and again.count == 1
    # experiments on a run are not stopped by what belongs to it
    assert _settings(run.path, None)["callbacks"] == []
    assert exploit.settings(start.forkable(run.path), "frozen", 1.0).callbacks == ()


def test_a_rollback_takes_objects_along(tmp_path, plain, monkeypatch):
    given, tally = {}, Tally()
    acts_on = Finding(check="x", severity="critical", cause="", evidence="", fix="", confidence=1.0)
    trainer = SimpleNamespace(
        run=plain,
        config=config(),
        doctor=SimpleNamespace(acts_on=acts_on, on_critical="rollback"),
        callbacks=Callbacks({}, {"Tally": tally}),
    )
    chosen = SimpleNamespace(step=0, changes={}, path=tmp_path / "back", schedule_share=0.0)
    monkeypatch.setattr(start.rollback, "plan", lambda *a: chosen)
    monkeypatch.setattr(start.rollback, "apply", lambda *a: None)
    monkeypatch.setattr(start, "fork", lambda *a, **k: given.update(k))
    start.after_doctor(trainer, quiet=True)
    assert given["callbacks"] == {"Tally": tally}


def test_reading_a_run_imports_nothing(folder, plain):
    shutil.copytree(plain.path, "run")
    data = json.loads((folder / "run/config.json").read_text())
    data["values"]["callbacks"] = ["never:Imported"]
    (folder / "run/config.json").write_text(json.dumps(data))
    (folder / "never.py").write_text("raise SystemExit('imported')")
    run = Run("run")
    assert run.settings().callbacks == ("never:Imported",)
    with pytest.raises(LudusError, match="uses the callback 'never:Imported'"):
        start.forkable("run")
    believe("run")
    assert start.forkable("run").callbacks == ("never:Imported",) and "never" not in sys.modules


# -- errors ----------------------------------------------------------------------------------------

MINE = """
import sys
import ludus

class Empty:
    def on_iteration(self, training): ...

class Inherits(ludus.Callback):
    def on_iteration(self, training): ...

class HalfState:
    def start(self, training): ...
    def state(self): return {}

class Constructor:
    def __init__(self): 1 / 0
    def start(self, training): ...

class Needs:
    def __init__(self, metric): ...
    def start(self, training): ...

class Start:
    def start(self, training): 1 / 0

class Exits:
    def start(self, training): sys.exit()

class NoJson(ludus.Callback):
    def start(self, training): ...
    def state(self): return {"seen": {1, 2}}
    def load_state(self, state): ...

number = 3
"""
REFUSED = {
    "mine:Nope": "the module mine has no 'Nope'",
    "nowhere:Nope": "the callback 'nowhere:Nope' cannot be loaded: there is no module 'nowhere'",
    "Nope": "the callback 'Nope' is not an import path: write package.module:Class",
    "mine:number": "the callback 'mine:number' is a int, not a class",
    "mine:Empty": "the callback mine:Empty has none of the methods start, iteration, evaluation",
    "mine:Inherits": "the callback mine:Inherits has none of the methods start, iteration",
    "mine:HalfState": "has the method state and not load_state",
    "mine:Constructor": "mine:Constructor cannot be made (ZeroDivisionError: division by zero (mine.py, line 16))",
    "mine:Needs": "mine:Needs cannot be made (TypeError: Needs.__init__() missing 1 required",
    "mine:Start": "mine:Start failed in start (ZeroDivisionError: division by zero (mine.py, line 24))",
    "mine:Exits": "mine:Exits failed in start (SystemExit (mine.py, line 27))",
    "mine:NoJson": "mine:NoJson has a state that JSON cannot hold (Object of type set",
}


@pytest.mark.parametrize("path", REFUSED)
def test_what_cannot_work_is_refused_and_leaves_nothing(folder, capsys, path, monkeypatch):
    monkeypatch.setattr("ludus.training.validate.try_rules", None)
    (folder / "mine.py").write_text(MINE)
    arguments = ["train", "pursuit", "--run", "runs/run", *IN_WORDS, "--callbacks", path]
    status, out, err = command(capsys, *arguments)
    assert status == 2 and REFUSED[path] in err and err.count("\n") == 1 and not out
    assert {p.name for p in folder.iterdir()} <= {"mine.py", "__pycache__"}


def test_what_a_program_gives_is_refused_too(tmp_path):
    class Useless:
        pass

    for given, words in {
        (Useless,): "the callback Useless has none of the methods",
        (3,): "the callback int has none of the methods",
        ("a.b:C", "a.b:C"): "the callback a.b:C is given twice",
    }.items():
        with pytest.raises(LudusError, match=words):
            train(tmp_path / "run", *given)
    with pytest.raises(LudusError, match="use a list"):
        ludus.train(config(), run=tmp_path / "run", callbacks=StopAt(1))
    assert not list(tmp_path.iterdir())
    assert named([StopAt, "a:B"]) == {f"{__name__}:StopAt": StopAt, "a:B": "a:B"}


def test_those_that_started_are_told_where_another_cannot(tmp_path):
    recorder = Recorder()

    class Broken:
        def start(self, training):
            raise ValueError("no licence")

    with pytest.raises(LudusError, match=r"Broken failed in start.*no licence"):
        train(tmp_path / "run", recorder, Broken())
    assert [method for (_, method), *_ in recorder.calls] == ["start", "end"]
    assert not list(tmp_path.iterdir())


class Fails(ludus.Callback):
    """In one method, the second time."""

    def __init__(self, method, error):
        self.count = 0
        original = getattr(self, method)

        def fail(*given):
            self.count += 1
            if self.count == 2:
                raise error
            return original(*given)

        setattr(self, method, fail)
        if method == "state":
            self.load_state = lambda state: None

    def iteration(self, training, metrics):
        pass


@pytest.mark.parametrize("method", ["iteration", "evaluation", "checkpoint", "state"])
def test_an_error_while_training_ends_with_a_checkpoint(tmp_path, plain, method):
    error = SystemExit(0) if method == "iteration" else OSError(28, "No space left on device")
    recorder = Recorder()
    with pytest.raises(LudusError) as raised:
        train(tmp_path / "run", Fails(method, error), recorder)
    run = Run(tmp_path / "run")
    said = str(raised.value)
    assert said.startswith(f"the callback Fails failed in {method} ({type(error).__name__}: ")
    assert f'ludus.resume("{run.path}", callbacks=[…]) goes on' in said
    assert " (test_callbacks.py, line " in said and raised.value.__cause__ is error
    assert run.state() == ("crashed", said)
    assert recorder.calls[-1][2:] == ("crashed", said)
    steps = run.metrics()[-1]["progress/agent_steps"]
    assert checkpoint.steps(run)[-1] == steps < 1500
    resumed = ludus.resume(run.path, quiet=True)
    assert resumed.state() == ("finished", "")
    test_resume.assert_same(run.path, plain.path)


@pytest.mark.parametrize("method", ["load_state", "start"])
def test_an_error_before_a_run_goes_on_leaves_it_as_it_was(tmp_path, method):
    run = train(tmp_path / "run", Tally(2))
    config_before, broken = (run.path / "config.json").read_bytes(), Tally()

    def fail(*given):
        raise ValueError("not now")

    setattr(broken, method, fail)
    with pytest.raises(LudusError, match=rf"Tally failed in {method} .*not now \(test_callbacks"):
        ludus.resume(run.path, quiet=True, callbacks=[broken], total_agent_steps=2000)
    assert run.state() == ("stopped", "by the callback Tally: for now")
    assert (run.path / "config.json").read_bytes() == config_before
    again = Tally()
    assert ludus.resume(run.path, quiet=True, callbacks=[again]).state() == ("finished", "")
    assert again.count == len(run.metrics())


def test_an_error_at_the_end_does_not_change_how_the_run_ended(tmp_path):
    class Late:
        def end(self, training, state, reason):
            raise ValueError("too late")

    with pytest.raises(LudusError, match=r"Late failed in end .*too late \(test_callbacks"):
        train(tmp_path / "run", Late(), train=TrainConfig(total_agent_steps=300, threads=1))
    assert Run(tmp_path / "run").state() == ("finished", "")


def test_an_error_of_training_reaches_the_callbacks(tmp_path, monkeypatch, capsys):
    recorder = Recorder()

    class Late:
        def end(self, training, state, reason):
            raise ValueError("too late")

    def fail(self, line, share):
        raise RuntimeError("no memory left")

    monkeypatch.setattr("ludus.training.watching.RunDoctor.after_iteration", fail)
    with pytest.raises(RuntimeError):
        train(tmp_path / "run", Late(), recorder)
    assert recorder.calls[-1][2:] == ("crashed", "no memory left")
    assert "the callback Late failed in end" in capsys.readouterr().err


def test_an_interruption_passes_through(tmp_path):
    recorder = Recorder()

    class Interrupt:
        def iteration(self, training, metrics):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", Interrupt(), recorder)
    assert Run(tmp_path / "run").state()[0] == "stopped"
    (_, method), _, state, reason = recorder.calls[-1]
    assert (method, state) == ("end", "stopped") and "interrupted" in reason


def test_the_first_reason_to_stop_counts():
    training = Training(None, {})
    training.stop("one")
    training.stop("two")
    assert training.stop_reason == "one"
