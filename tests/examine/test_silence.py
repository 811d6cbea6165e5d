"""What messages are worth: `ludus eval --silence` with a policy that does what it hears, and
intervals of differences."""

import json

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

import ludus
from ludus import cli
from ludus.batches import game_info
from ludus.config import resolve
from ludus.examine.interventions import messages_of
from ludus.intervals import difference
from ludus.play import measure_run
from ludus.recipes import load_recipe

pytestmark = pytest.mark.usefixtures("envs_in_this_process")
SMALL = {
    "envs": 4,
    "train.threads": 1,
    "train.total_agent_steps": 64,
    "ppo.rollout": 16,
    "ppo.minibatches": 1,
    "ppo.epochs": 1,
    "policy.hidden": (),
    "policy.separate_value": False,
    "policy.normalise_observation": False,
    "eval.episodes": 2,
    "log.tensorboard": False,
    "log.diagnostics_every": 0,
}


class Whisper(gymnasium.Env):
    """One step: a message of -1 or 1 says which of two actions is paid 1."""

    observation_space = spaces.Dict(
        {
            "message": spaces.Box(-1, 1, (1,), np.float32),
            "other": spaces.Box(-1, 1, (1,), np.float32),
        }
    )
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.right = int(self.np_random.integers(2))
        return self.look(), {}

    def step(self, action):
        return self.look(), float(action == self.right), True, False, {}

    def look(self):
        return {
            "message": np.array([2 * self.right - 1], np.float32),
            "other": np.ones(1, np.float32),
        }


def main(arguments):
    with pytest.raises(SystemExit) as done:
        cli.main(arguments)
    return done.value.code


def entry(layout, word):
    return next(i for i, name in enumerate(layout["observation"]) if word in name)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("silence") / "run"
    # as envs_in_this_process, which serves single tests
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ludus.external.foreign.choose_workers", lambda seconds, num_envs: 0)
        return ludus.train(
            "env:tests.examine.test_silence:Whisper", run=folder, quiet=True, **SMALL
        ).path


@pytest.fixture
def obedient(monkeypatch):
    """Policies as loaded, with weights that do what the message says, and the second action where
    it says nothing."""
    usual = measure_run.load_policies

    def obeying(reference):
        policies, layout = usual(reference)
        head = policies["agent"].action_head
        with torch.no_grad():
            head.weight.zero_()
            head.weight[1, entry(layout, "message")] = 50.0
            head.bias.copy_(torch.eye(len(head.bias))[1])
        return policies, layout

    monkeypatch.setattr(measure_run, "load_policies", obeying)


def test_who_does_what_it_hears_is_lost_in_silence(run, obedient, capsys):
    command = ["eval", str(run), "--silence", "--greedy", "--episodes", "24"]
    assert main([*command, "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    heard, silenced, worth = (
        metrics[f"{prefix}return"] for prefix in ("", "silenced/", "heard_minus_silenced/")
    )
    assert heard["mean"] == 1.0
    # always the second action, which is right in half of the worlds
    assert 0.3 < silenced["mean"] < 0.7
    assert (
        worth["mean"] == pytest.approx(1 - silenced["mean"])
        and 0.1 < worth["low"] < worth["mean"] < worth["high"] < 0.9
    )
    assert main(command) == 0
    out = capsys.readouterr().out
    assert (
        f"1.000     {silenced['mean']:.3f}      {worth['mean']:+.3f}   [{worth['low']:.3f}, "
        f"{worth['high']:.3f}]" in out
    )


def test_who_does_not_listen_loses_nothing(run, obedient, monkeypatch):
    monkeypatch.setattr(
        "ludus.play.silence.messages_of", lambda layout, config: [entry(layout, "other")]
    )
    metrics = ludus.evaluate(run, episodes=20, greedy=True, silence=True)["metrics"]
    assert metrics["silenced/return"] == metrics["return"]
    worth = metrics["heard_minus_silenced/return"]
    # 20 equal episodes prove no exact equality
    assert worth["mean"] == 0.0 and worth["low"] == -worth["high"] < 0.0


def test_what_cannot_be_silenced_is_refused(run, obedient, monkeypatch, capsys):
    monkeypatch.setattr("ludus.play.silence.messages_of", lambda layout, config: [])
    assert main(["eval", str(run), "--silence"]) == 2
    assert "send no messages that could be silenced: leave --silence out" in capsys.readouterr().err
    assert main(["eval", str(run), "--silence", "--analyse"]) == 2
    assert "leave --silence out" in capsys.readouterr().err


@pytest.mark.parametrize(("size", "heard"), [(8, 72), (1, 72), (0, 0)])
def test_messages_of_mechs(size, heard):
    """Nine mates, eight numbers each; where nothing can be said there is no channel, whatever the
    observation has room for."""
    config = load_recipe("mechs_2v2")
    config.game_values["message"] = size
    layout = game_info(resolve(config)).layout.describe()
    found = messages_of(layout, config)
    assert len(found) == heard and all("message" in layout["observation"][i] for i in found)


def test_differences_of_shares_are_newcombes_and_of_numbers_paired():
    first, second = np.repeat([1.0, 0.0], (56, 14)), np.repeat([1.0, 0.0], (42, 28))
    found = difference(first, second)
    assert found["mean"] == pytest.approx(0.2) and 0.0 < found["low"] < 0.2 < found["high"] < 0.4
    shifted = np.array([1.0, 5.0, 9.0, 13.0])
    # the same difference in every world, however different the worlds
    exact = difference(shifted + 2.0, shifted)
    assert exact == {"mean": 2.0, "low": 2.0, "high": 2.0}
    # differences of 1 and 3: deviation √2, so 1.96 · √2 / √2
    one = difference(np.array([2.0, 4.0]), np.array([1.0, 1.0]))
    assert (
        one["mean"] == 2.0
        and one["low"] == pytest.approx(0.04)
        and one["high"] == pytest.approx(3.96)
    )
    assert difference(np.array([2.0]), np.array([1.0]))["high"] == float("inf")
