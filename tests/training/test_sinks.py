"""Sinks get what metrics.jsonl gets. Weights & Biases is played by a stand-in: tests have no
account."""

import sys
from types import SimpleNamespace

import pytest

import ludus
from ludus.errors import LudusError


class StandIn:
    """Remembers what it was told."""

    def __init__(self):
        self.started, self.lines, self.axes, self.finished = [], [], [], 0

    def init(self, **settings):
        self.started.append(settings)
        return self

    def define_metric(self, name, step_metric):
        self.axes.append((name, step_metric))

    def log(self, values):
        self.lines.append(values)

    def finish(self):
        self.finished += 1


SMALL = {
    "envs": 4,
    "ppo.rollout": 16,
    "eval.episodes": 2,
    "policy.hidden": (8,),
    "log.tensorboard": False,
    "log.wandb": "games",
}


@pytest.fixture
def wandb(monkeypatch):
    stand_in = StandIn()
    stand_in.__spec__ = SimpleNamespace()  # so that it counts as installed
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    return stand_in


def test_every_line_goes_to_weights_and_biases(tmp_path, wandb):
    run = ludus.train(
        "gym:CartPole-v1", run=tmp_path / "run", quiet=True, total_agent_steps=200, **SMALL
    )
    lines = run.metrics()
    assert [line["progress/agent_steps"] for line in wandb.lines] == [
        line["progress/agent_steps"] for line in lines
    ]
    assert wandb.lines[-1]["learner/agent/entropy"] == lines[-1]["learner/agent/entropy"]
    (start,) = wandb.started
    assert (
        start["project"] == "games"
        and start["name"] == "run"
        and start["config"]["ppo.rollout"] == 16
    )
    assert wandb.axes == [("*", "progress/agent_steps")] and wandb.finished == 1
    ludus.resume(run.path, quiet=True, total_agent_steps=400)
    assert wandb.started[1]["id"] == start["id"] and wandb.started[1]["resume"] == "allow"


def test_what_cannot_be_logged_to_is_refused(tmp_path, wandb, monkeypatch):
    def fail(**settings):
        raise ValueError("api_key not configured")

    wandb.init = fail
    with pytest.raises(
        LudusError, match=r"log.wandb=games cannot be opened: api_key not configured; `wandb login`"
    ):
        ludus.train(
            "gym:CartPole-v1", run=tmp_path / "a", quiet=True, total_agent_steps=200, **SMALL
        )
    monkeypatch.delitem(sys.modules, "wandb")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LudusError, match=r"needs the package wandb: pip install 'ludus\[wandb\]'"):
        ludus.train(
            "gym:CartPole-v1", run=tmp_path / "b", quiet=True, total_agent_steps=200, **SMALL
        )
    assert not (tmp_path / "b").exists()
