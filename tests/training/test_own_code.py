"""An algorithm and a network of the user's own, outside of the package, by the ordinary commands:
trained, killed, resumed, evaluated, diagnosed, exported, and refused where they cannot work."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import ludus
from ludus import LudusError, cli
from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.rainbow import RainbowConfig
from ludus.config import Config, PolicyConfig, TrainConfig, flatten
from ludus.networks.strategy_config import StrategyConfig
from ludus.registry import Registry
from ludus.runs import checkpoint
from ludus.runs.run import Run
from ludus.training.start import create, prepare
from tests.docs.pages import ROOT
from tests.docs.test_pages import write_files
from tests.training import test_resume
from tests.training.test_runs import config

BRIEF = [
    "--envs",
    "8",
    "--game.max-steps",
    "20",
    "--train.total-agent-steps",
    "4000",
    "--train.threads",
    "1",
    "--eval.episodes",
    "2",
    "--eval.every-agent-steps",
    "2000",
    "--eval.greedy",
    "False",
    "--checkpoint.every-agent-steps",
    "700",
    "--checkpoint.every-seconds",
    "None",
    "--log.tensorboard",
    "False",
    "--log.diagnostics-every",
    "2",
    "--quiet",
]
OWN = [
    "--algorithm",
    "reinforce:Reinforce",
    "--policy.network",
    "own_network:Gated",
    "--policy.gated.units",
    "8",
]
BAD = """
import torch, ludus
from torch import nn

class Unrelated: ...
class NoUpdate(ludus.OnPolicy): ...
class OddSettings(ludus.OnPolicy):
    settings = int
class Ppo(ludus.OnPolicy):
    def learn_role(self, role, progress): ...
class Train(Ppo): ...
class Plain(nn.Module):
    def forward(self, numbers, seen): ...
class NoForward(ludus.Network): ...
class NoOutputs(ludus.Network):
    def __init__(self, observation, config):
        super().__init__()
        self.layer = nn.Linear(observation.size, 8)
    def forward(self, numbers, seen):
        return self.layer(numbers)
class OtherShape(NoOutputs):
    outputs = 16
class Fails(NoOutputs):
    outputs = 8
    def forward(self, numbers, seen):
        return self.layer(numbers[..., :3])
class LooksBack(NoOutputs):
    outputs = 8
    @classmethod
    def history(cls, names, config):
        from ludus.networks.history import History
        return History.of(names, "", 3)
class Brings(Fails):
    def forward(self, numbers, seen):
        return self.layer(numbers)
    def auxiliary(self, policy):
        return Extra()
class Extra(ludus.Auxiliary):
    name, weight = "extra", 1.0
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
    def forward(self, output, rows, weight, rollout):
        return (output.value.square() * weight).sum()
class Value(Extra):
    name = "value"
class WritesOverPPO(Brings):
    def auxiliary(self, policy):
        return Value()
class RecordsValues(Brings):
    def auxiliary(self, policy):
        extra = Extra()
        extra.record = lambda batch, agents: {"value": batch.tensor("reward")[:, agents].flatten(0, 1)}
        return extra
class Doubles(NoOutputs):
    outputs = 8
    def forward(self, numbers, seen):
        return self.layer(numbers).double()
class NotFinite(Doubles):
    def forward(self, numbers, seen):
        return self.layer(numbers) / 0
class Lazy(NoOutputs):
    outputs = 8
    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.layer = nn.LazyLinear(8)
class Centred(NoOutputs):
    outputs = 8
    def forward(self, numbers, seen):
        out = self.layer(numbers)
        return out - out.mean(-1, keepdim=True)
class SaysNothing(ludus.OnPolicy):
    def learn_role(self, role, progress): ...
class SaysText(ludus.OnPolicy):
    def learn_role(self, role, progress):
        return {"note": "hello"}
class Check(NoOutputs):
    outputs = 8
class Learn(Ppo): ...
from dataclasses import dataclass
@dataclass(kw_only=True)
class Shadowing(ludus.AlgorithmConfig):
    updates: int = 4
class Shadows(Ppo):
    settings = Shadowing
@dataclass(kw_only=True)
class Rate(ludus.AlgorithmConfig):
    learning_rate: float = 1e-3
class Rates(Ppo):
    settings = Rate
class One(NoOutputs):
    outputs = 8
class Other(One):
    def forward(self, numbers, seen):
        return -torch.tanh(self.layer(numbers))
from ludus.networks.policy import Policy
class Marked(Policy): ...
from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO
class OwnPolicy(PPO):
    settings = PPOConfig
    @staticmethod
    def make_policy(layout, config, role):
        policy = PPO.make_policy(layout, config, role)
        policy.__class__ = Marked
        return policy
"""


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    """Drawing it takes longer than these trainings."""
    monkeypatch.setattr("ludus.training.finish.write_report", lambda run: None)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a user works, with the algorithm of examples/ and the networks of the how-to page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copy(ROOT / "examples" / "reinforce.py", tmp_path)
    write_files(tmp_path, [ROOT / "docs" / "write-your-own-network.md"])
    (tmp_path / "bad.py").write_text(BAD)
    yield tmp_path
    for name in ("reinforce", "own_network", "own_loss", "bad", "sees", "mine"):
        sys.modules.pop(name, None)


def command(*arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    return ended.value.code or 0


def test_killed_and_resumed_it_ends_as_if_undisturbed(folder, capsys):
    arguments = ["train", "pursuit", *OWN, *BRIEF]
    assert command(*arguments, "--run", "whole") == 0
    kill = (
        "import os, signal\n"
        "from ludus.training.loop import Trainer\n"
        "inner = Trainer.finish_iteration\n"
        "def killed(self, record):\n"
        "    inner(self, record)\n"
        "    self.progress.iteration == 4 and os.kill(os.getpid(), signal.SIGKILL)\n"
        "Trainer.finish_iteration = killed\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", kill + test_resume.CLI, *arguments, "--run", "killed"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == -signal.SIGKILL and checkpoint.steps(Run("killed"))
    assert command("resume", "killed", "--quiet") == 0
    test_resume.assert_same(Path("killed"), Path("whole"))

    run = Run("killed")
    assert run.config().learner.entropy == 0.003 and run.config().policy.network_settings.units == 8
    assert {"learner/chaser/policy_loss", "learner/runner/lr"} <= run.metrics()[-1].keys()
    capsys.readouterr()
    assert command("eval", "killed@best", "--episodes", "4", "--json") == 0
    assert "catch_rate" in json.loads(capsys.readouterr().out)["metrics"]
    assert command("doctor", "run", "killed", "--json") in (0, 1)
    named = [f["check"] for f in json.loads(capsys.readouterr().out)["findings"]]
    assert "not_finite" not in named and "policy_frozen" not in named
    action, _ = ludus.load("killed", role="chaser").act(
        torch.zeros(len(run.read_json("game.json")["layout"]["observation"])).numpy()
    )
    assert action["continuous"].shape == (1,)
    assert command("fork", "killed", "--reinforce.entropy", "0.1", *BRIEF, "--run", "forked") == 0


def test_it_needs_its_code_and_says_so(folder, capsys):
    assert command("train", "pursuit", *OWN, *BRIEF, "--run", "run") == 0
    for name in ("reinforce", "own_network"):
        del sys.modules[name]
    os.remove("own_network.py")
    capsys.readouterr()
    assert command("resume", "run", "--train.total-agent-steps", "9000") == 2
    assert "own_network" in capsys.readouterr().err.splitlines()[-1]
    assert Run("run").settings().policy.network == "own_network:Gated"  # as data it is still read


def test_a_network_with_a_loss_of_its_own_learns_and_is_exported(folder):
    pytest.importorskip("onnx")
    run = ludus.train(
        config(
            policy=PolicyConfig(network="own_loss:Reconstructing", memory="lstm", memory_size=8),
            train=TrainConfig(total_agent_steps=3000, threads=1),
        ),
        run=folder / "run",
        quiet=True,
    )
    lines = run.metrics()
    told = [line["learner/chaser/reconstruction_loss"] for line in lines]
    assert min(told) > 0 and len(set(told)) > 1
    first, last = (
        checkpoint.find_checkpoint(f"{run.path}{at}").tensors("policy") for at in ("@0", "")
    )
    decoder = "chaser/reconstruction/decoder.weight"
    assert not torch.equal(first[decoder], last[decoder])
    before = {n: t.clone() for n, t in last.items()}
    middle = checkpoint.steps(run)[1]
    ludus.resume(f"{run.path}@{middle}", quiet=True)
    after = checkpoint.find_checkpoint(str(run.path)).tensors("policy")
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    from ludus.export.onnx import export_run

    assert all(path.exists() for path in export_run(str(run.path)))


def test_a_network_of_ones_own_sees_pictures_and_learns_by_rainbow(folder):
    (folder / "sees.py").write_text(
        "import ludus\n"
        "from torch import nn\n"
        "class Sees(ludus.Network):\n"
        "    outputs = 8\n"
        "    def __init__(self, observation, config):\n"
        "        super().__init__()\n"
        "        picture = observation.seen['picture']\n"
        "        self.numbers = nn.Linear(observation.size, 8)\n"
        "        self.pixels = nn.Linear(picture.frames * picture.height * picture.width, 8)\n"
        "    def forward(self, numbers, seen):\n"
        "        return self.numbers(numbers) + self.pixels(seen['picture'].flatten(2) / 255)\n"
    )
    made = config(game="tests.algorithms.test_seen:GAME", game_values={})
    made.eval.against = ("self",)
    made.choose_algorithm("rainbow")
    made.learner = RainbowConfig(rollout=16, batch=16, replay=400, warm_up=64, n_step=2)
    made.policy = PolicyConfig(network="sees:Sees")
    made.train.total_agent_steps = 400
    run = ludus.train(made, run=folder / "run", quiet=True)
    assert any("learner/agent/value_loss" in line for line in run.metrics())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["--algorithm", "nowhere:X"], "no module 'nowhere'"),
        (["--algorithm", "bad:Missing"], "has no 'Missing'"),
        (["--algorithm", "bad:Unrelated"], "does not inherit ludus.OnPolicy"),
        (["--algorithm", "bad:NoUpdate"], "no method 'learn_role'"),
        (["--algorithm", "bad:OddSettings"], "has to be a dataclass"),
        (["--algorithm", "bad:Ppo"], "section 'ppo', which is that of the algorithm ppo"),
        (["--algorithm", "bad:Train"], "section 'train', which is the config's own"),
        (["--algorithm", "bad:Learn"], "section 'learn', which is the config's own"),
        (
            ["--algorithm", "bad:Shadows"],
            "the setting 'updates' of the algorithm 'bad:Shadows' has",
        ),
        (["--algorithm", "bad:Rates", "--rates.learning-rate", "-1"], "rates.learning_rate=-1"),
        (["--algorithm", "bad.Rates"], "(your own: package.module:Class)"),
        (["--algorithm", ":Rates"], "is not an import path"),
        (["--algorithm", "__main__:Rates"], "put it into a module of its own"),
        (["--policy.network", "bad:Doubles"], "gives float64"),
        (["--policy.network", "bad:NotFinite"], "not finite"),
        (["--policy.network", "bad:Lazy"], "has a lazy layer (layer.weight)"),
        (["--policy.network", "bad:Check"], "section 'check', which is the policy's own"),
        (["--policy.network", "bad:WritesOverPPO"], "'value' is the name of two things"),
        (["--policy.network", "bad:RecordsValues"], "'value' is the name of two things"),
        (
            ["--algorithm", "reinforce:Reinforce", "--policy.network", "bad:Brings"],
            "brings a loss of its own",
        ),
        (
            [
                "--policy.network",
                "bad:One",
                "--policy.sets",
                "other",
                "--policy.normalise-observation",
                "False",
            ],
            "policy.sets is read by",
        ),
        (["--policy.network", "bad:Plain"], "does not inherit ludus.Network"),
        (["--policy.network", "bad:NoForward"], "no method 'forward'"),
        (["--policy.network", "bad:NoOutputs"], "set self.outputs"),
        (["--policy.network", "bad:OtherShape"], "gives [2, 3, 8] for 2 steps of 3 rows"),
        (["--policy.network", "bad:Fails"], "(bad.py, line "),
        (["--algorithm", "reinforce:Reinforce", "--ppo.clip", "0.1"], "is a setting of ppo"),
        (["--rainbow.batch", "8"], "--rainbow.batch is a setting of rainbow"),
        (["--learn.gamma", "0.9"], "--learn.gamma is called --ppo.gamma now"),
        (["--policy.strategy.size", "full"], "is a setting of the network strategy"),
    ],
)
def test_what_cannot_work_is_one_sentence_before_the_first_step(folder, capsys, settings, words):
    assert command("train", "pursuit", *settings, *BRIEF, "--run", "run") == 2
    error = capsys.readouterr().err
    assert words in error and "Traceback" not in error and not Path("run").exists()


@pytest.mark.parametrize(
    ("network", "words"),
    [("bad:LooksBack", "looks back at a history"), ("bad:Brings", "brings a loss of its own")],
)
def test_rainbow_refuses_networks_that_it_cannot_learn(folder, network, words):
    with pytest.raises(LudusError, match=words):
        prepare(
            Config(
                game="gym:CartPole-v1",
                algorithm="rainbow",
                policy=PolicyConfig(network=network),
                train=TrainConfig(total_agent_steps=200_000, threads=1),
            )
        )


def test_weights_of_one_network_are_not_loaded_into_another(folder):
    """Their names and shapes are the same, and what they compute is not."""
    one, other = (
        config(
            policy=PolicyConfig(network=f"bad:{name}"),
            train=TrainConfig(total_agent_steps=600, threads=1),
        )
        for name in ("One", "Other")
    )
    run = ludus.train(one, run=folder / "one", quiet=True)
    with pytest.raises(LudusError, match=r"trained with policy\.network bad:One, and this run has"):
        ludus.train(other, run=folder / "other", quiet=True, init_from=run.path)
    ludus.train(one, run=folder / "again", quiet=True, init_from=run.path)


def test_its_own_policy_plays_in_training_and_when_it_is_loaded(folder):
    made = config(train=TrainConfig(total_agent_steps=600, threads=1))
    made.choose_algorithm("bad:OwnPolicy")
    trainer = create(folder / "run", prepare(made)[0], {})
    kinds = {type(policy).__name__ for policy in trainer.algorithm.policies.values()}
    trainer.run.close()
    assert kinds == {"Marked"} == {type(ludus.load(folder / "run").policy).__name__}


def test_what_graphs_put_back_holds_the_buffers_of_a_loss(folder):
    made = config(policy=PolicyConfig(network="bad:Brings"))
    trainer = create(folder / "run", prepare(made)[0], {})
    (role, *_) = trainer.algorithm.roles.values()
    trainer.run.close()
    assert any(t is role.auxiliaries[0].seen for t in role.tensors())


def test_another_algorithm_logs_what_the_strategy_network_says_of_itself(folder):
    made = config(train=TrainConfig(total_agent_steps=1500, threads=1))
    made.choose_algorithm("reinforce:Reinforce")
    made.policy = PolicyConfig(
        network="strategy",
        network_settings=StrategyConfig(
            size="small",
            entries="other0",
            history=4,
            stride=1,
            layers=1,
            heads=1,
            width=8,
            vector=6,
        ),
    )
    line = ludus.train(made, run=folder / "run", quiet=True).metrics()[-1]
    assert line["strategy/chaser/vector_std"] > 0 and line["strategy/chaser/drift"] > 0


@pytest.mark.parametrize(
    ("name", "words"),
    [("SaysNothing", "returned a NoneType"), ("SaysText", "returned 'note': 'hello'")],
)
def test_what_learn_role_returns_is_checked(folder, name, words):
    made = config(train=TrainConfig(total_agent_steps=1500, threads=1))
    made.choose_algorithm(f"bad:{name}")
    with pytest.raises(LudusError, match=words):
        ludus.train(made, run=folder / "run", quiet=True)


def test_roles_can_have_values_of_their_own(folder):
    (folder / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from ludus.config import RoleConfig\n"
        "import reinforce\n"
        "@dataclass(kw_only=True)\n"
        "class A2CConfig(RoleConfig, reinforce.ReinforceConfig): ...\n"
        "class A2C(reinforce.Reinforce):\n    settings = A2CConfig\n"
    )
    arguments = ["--algorithm", "mine:A2C", "--a2c.roles.chaser.entropy", "0.1", *BRIEF]
    assert command("train", "pursuit", *arguments, "--run", "run") == 0
    read = Run("run").config().learner
    assert read.for_role("chaser").entropy == 0.1 and read.for_role("runner").entropy == 0.003
    assert command("resume", "run", "--train.total-agent-steps", "6000", "--quiet") == 0
    updates = [line["progress/updates"] for line in Run("run").metrics()]
    assert updates[0] == 2 and updates == sorted(updates)  # one for each role


def test_names_inside_a_network_do_not_clash_with_those_of_a_file(folder):
    onnx = pytest.importorskip("onnx")
    from ludus.export.onnx import export_run

    made = config(
        policy=PolicyConfig(network="bad:Centred"),
        train=TrainConfig(total_agent_steps=600, threads=1),
    )
    files = export_run(str(ludus.train(made, run=folder / "run", quiet=True).path))
    names = [value.name for value in onnx.load(files[0]).graph.output]
    assert names == ["continuous", "mean", "log_std", "pressed", "value"]


def test_classes_can_be_given_in_python(folder):
    import own_network
    import reinforce

    run = ludus.train(
        config(train=TrainConfig(total_agent_steps=1500, threads=1)),
        run=folder / "run",
        quiet=True,
        algorithm=reinforce.Reinforce,
        network=own_network.Gated,
    )
    read = run.settings()
    assert (read.algorithm, read.policy.network) == ("reinforce:Reinforce", "own_network:Gated")


def test_two_of_one_name_are_refused():
    registry = Registry("algorithm")
    registry.register("mine", "a:B", "a:C")
    with pytest.raises(LudusError, match="two algorithms with the name 'mine'"):
        registry.register("mine", "a:B", "a:D")


def test_an_algorithm_with_the_settings_of_another_takes_over_the_recipes_values(folder):
    (folder / "mine.py").write_text(
        "from ludus.algorithms.ppo import PPOConfig\n"
        "from ludus.algorithms.ppo.ppo import PPO\n"
        "class MyPPO(PPO):\n    settings = PPOConfig\n"
    )
    made = Config(game="pursuit", learner=PPOConfig(entropy=0.07))
    made.choose_algorithm("mine:MyPPO")
    assert flatten(made)["my_ppo.entropy"] == 0.07
    made.choose_algorithm("rainbow")
    assert flatten(made)["rainbow.gamma"] == 0.99 and "my_ppo.entropy" not in flatten(made)


def test_a_network_that_gives_nan_is_not_blamed_on_the_observation(folder):
    """What it did made the next observation NaN, too."""
    (folder / "mine.py").write_text(
        "import torch, bad\n"
        "class Late(bad.One):\n"
        "    calls = 0\n"
        "    def forward(self, numbers, seen):\n"
        "        Late.calls += 1\n"
        "        nan = float('nan') if Late.calls > 200 else 0.0\n"
        "        return super().forward(numbers, seen) + nan\n"
    )
    made = config(policy=PolicyConfig(network="mine:Late"))
    with pytest.raises(LudusError, match="not finite while the observations are") as error:
        ludus.train(made, run=folder / "run", quiet=True)
    assert "see what the network computes" in str(error.value)


def test_reinforce_goes_on_where_all_targets_are_alike(folder, monkeypatch):
    """What values explain of no variance is not a number, and not a reason to stop."""
    import reinforce

    nan = torch.tensor(float("nan"))
    monkeypatch.setattr(reinforce, "explained_variance", lambda *_: nan)
    made = config(train=TrainConfig(total_agent_steps=1500, threads=1))
    made.choose_algorithm("reinforce:Reinforce")
    line = ludus.train(made, run=folder / "run", quiet=True).metrics()[-1]
    assert "learner/chaser/value_loss" in line and "learner/chaser/explained_variance" not in line
