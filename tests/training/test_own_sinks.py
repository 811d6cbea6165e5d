"""Sinks of the user's own, by import path."""

import json
import sys

import pytest

import ludus
from ludus import cli
from ludus.errors import LudusError

SINKS = """
import json


class Lines:
    def __init__(self, folder, config):
        self.file = open(folder / "mine.jsonl", "a")
        self.file.write(json.dumps({"opened": config.game}) + "\\n")

    def write(self, record, step):
        self.file.write(json.dumps(record) + "\\n")
        record.clear()

    def flush(self):
        self.file.flush()

    def close(self):
        self.file.write(json.dumps({"closed": True}) + "\\n")
        self.file.close()


class Breaks(Lines):
    def write(self, record, step):
        super().write(record, step)
        raise ConnectionError("the server is gone")


class Exits(Lines):
    def flush(self):
        raise SystemExit


class Shut:
    def __init__(self, folder, config):
        raise PermissionError("no key")

    def write(self, record, step): ...
    def flush(self): ...
    def close(self): ...


class Mute:
    def write(self, record, step): ...
    def close(self): ...


def function(folder, config): ...
"""
SMALL = {
    "envs": 4,
    "ppo.rollout": 16,
    "eval.episodes": 2,
    "policy.hidden": (8,),
    "log.tensorboard": False,
    "train.threads": 1,
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, envs_in_this_process):
    (tmp_path / "my_sinks.py").write_text(SINKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_sinks", raising=False)
    return tmp_path


def train(*sinks):
    return ludus.train(
        "gym:CartPole-v1",
        run="run",
        quiet=True,
        total_agent_steps=200,
        **SMALL,
        **{"log.sinks": tuple(f"my_sinks:{name}" for name in sinks)},
    )


def lines(folder):
    return [json.loads(line) for line in (folder / "run" / "mine.jsonl").read_text().splitlines()]


def test_a_sink_gets_every_line_and_is_opened_again_by_a_resume(folder):
    run = train("Lines")
    expected = [{"opened": "gym:CartPole-v1"}, *run.metrics(), {"closed": True}]
    assert lines(folder) == expected
    ludus.resume("run", quiet=True, total_agent_steps=400)
    assert lines(folder)[: len(expected)] == expected
    again = lines(folder)[len(expected) :]
    new = run.metrics()[len(expected) - 2 :]
    assert again == [{"opened": "gym:CartPole-v1"}, *new, {"closed": True}] and new


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "Breaks",
            r"write() failed: ConnectionError: the server is gone (my_sinks.py, line 25); "
            "metrics.jsonl has every line",
        ),
        ("Exits", "flush() failed: SystemExit"),
    ],
)
def test_a_sink_that_raises_is_closed_and_training_goes_on(name, told, folder, capsys):
    run = train(name, "Lines")
    err = capsys.readouterr().err
    assert told in err and err.count(f"the sink 'my_sinks:{name}' is closed, because its") == 1
    assert run.state()[0] == "finished" and run.metrics()[-1]["progress/agent_steps"] >= 200


def test_a_sink_that_cannot_be_opened_refuses_the_run(folder):
    told = r"the sink 'my_sinks:Shut' cannot be opened: PermissionError: no key \(my_sinks.py"
    with pytest.raises(LudusError, match=told):
        train("Lines", "Shut")
    assert lines(folder) == [{"opened": "gym:CartPole-v1"}, {"closed": True}]
    assert not (folder / "run" / "metrics.jsonl").exists()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("my_sinks:Mute", "has no method 'flush', which every sink needs: add it"),
        ("my_sinks:function", "is a function, not a class"),
        ("my_sinks:Line", "did you mean 'Lines'?"),
        ("no_sinks:Lines", "there is no module 'no_sinks'"),
        ("Lines", "the sink 'Lines' is not an import path"),
    ],
)
def test_what_is_not_a_sink_is_refused_before_anything_is_written(path, told, folder, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "pursuit", "--run", "runs/no", "--log.sinks", path, "--quiet"])
    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2 and told in said and "\n" not in said, said
    assert not (folder / "runs").exists()
