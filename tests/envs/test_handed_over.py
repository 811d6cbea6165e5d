"""Envs as objects: a function, a class, a lambda, an env; from a module or from a script."""

import runpy

import gymnasium
import pytest

import ludus
from ludus.config import Config, handed_over
from ludus.errors import LudusError
from ludus.external.foreign import ForeignBatch
from ludus.games import load_game
from tests.envs import odd
from tests.envs.test_in import ODD

QUICK = {
    "envs": 2,
    "total_agent_steps": 20,
    "quiet": True,
    "train.threads": 1,
    "ppo.rollout": 8,
    "ppo.minibatches": 1,
    "ppo.epochs": 1,
    "policy.hidden": (8,),
    "eval.episodes": 1,
    "eval.greedy": False,
    "log.tensorboard": False,
    "log.replay_every": 0,
}

SCRIPT = """
import ludus
from ludus.config import handed_over
from tests.envs.odd import Counter

class Mine(Counter):
    def pay(self):
        return 2.0

run = ludus.train(Mine, run="run", **{quick})
assert run.metrics()[-1]["eval/self/return"] == 20.0
handed_over._known.clear()  # as in another process
assert ludus.load("run").act([0.0])[0] in (0, 1)  # no env is needed
run = ludus.resume("run", env=Mine, quiet=True, total_agent_steps=40)
assert run.metrics()[-1]["progress/agent_steps"] >= 40
"""


def test_from_a_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SCRIPT.format(quick=QUICK))
    runpy.run_path("mine.py", run_name="__main__")
    handed_over._known.clear()
    with pytest.raises(
        LudusError,
        match=r"the env Mine was handed over by a program.*ludus.resume\(RUN, "
        r"env=…\).*module:function",
    ):
        ludus.resume(tmp_path / "run", total_agent_steps=100)
    with pytest.raises(LudusError, match=r"hand it over again"):
        ludus.evaluate(tmp_path / "run")


def test_what_can_be_imported_keeps_its_name():
    assert (
        Config(game=odd.counter).game == ODD + "counter"
        and Config(game=odd.Noisy).game == ODD + "Noisy"
    )


def test_two_of_one_name_are_two():
    """Each Config has the env that it was given, and gives it again."""
    first, second = (lambda: odd.Counter()), (lambda: odd.Noisy())
    one, two = Config(game=first).game, Config(game=second).game
    assert one != two and Config(game=first).game == one
    batch = ForeignBatch(two, 1)
    batch.step()
    assert batch["observation"][0, 0, 0] not in (0, 1)


def test_copies_of_an_env_are_apart():
    source = Config(game=gymnasium.make("CartPole-v1")).game
    assert source.endswith(":CartPoleEnv")
    batch = ForeignBatch(source, 2)
    assert batch["observation"][0, 0, 0] != batch["observation"][1, 0, 0]


class Locked(odd.Counter):
    def __deepcopy__(self, memory):
        raise TypeError("cannot pickle a window")


def test_what_cannot_be_trained_on_is_said():
    with pytest.raises(
        LudusError,
        match=r"this Locked cannot be copied \(TypeError: cannot pickle a window\).*a function "
        r"that makes one",
    ):
        ForeignBatch(Config(game=Locked()).game, 1)
    with pytest.raises(
        LudusError, match=r"a int is nothing to train on: use a recipe's name, a Config, an env"
    ):
        ludus.train(3)
    with pytest.raises(
        LudusError, match=r"the game pursuit is trained on by its name: game='my_module:GAME'"
    ):
        ludus.train(load_game("pursuit")[0])


def test_a_function_that_returns_a_config_is_a_recipe(tmp_path):
    def recipe():
        return Config(game=ODD + "counter")

    run = ludus.train(recipe, run=tmp_path / "run", **QUICK)
    assert run.config().game == ODD + "counter" and run.config().seed == 0
