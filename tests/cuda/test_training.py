"""Training on CUDA: graphs change nothing, the same seed gives the same weights, resume is
exact."""

import shutil
import sys

import pytest
import torch

import ludus
from ludus import LudusError, api
from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO
from ludus.batches import make_batch
from ludus.config import CheckpointConfig, Config, EvalConfig, PolicyConfig, TrainConfig, resolve
from ludus.runs import checkpoint
from tests.conftest import has_gpu
from tests.docs.pages import ROOT
from tests.docs.test_pages import write_files

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not has_gpu(), reason="no CUDA GPU")]


def config(memory="none", **changes):
    base = Config(
        game="pursuit",
        game_values={"max_steps": 30},
        envs=64,
        device="cuda",
        policy=PolicyConfig(hidden=(32,), memory=memory, memory_size=16),
        learner=PPOConfig(rollout=16, bptt=8 if memory == "lstm" else 1, epochs=2, minibatches=2),
        train=TrainConfig(total_agent_steps=40_000, threads=1),
        eval=EvalConfig(episodes=8, against=("self",), greedy=False),
        checkpoint=CheckpointConfig(every_agent_steps=10_000, every_seconds=None),
    )
    for name, value in changes.items():
        setattr(base, name, value)
    return base


def weights(run, step=None):
    step = checkpoint.steps(run)[-1] if step is None else step
    saved = checkpoint.Checkpoint(run, step)
    return {**saved.tensors("policy"), **saved.tensors("optimizer")}


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_the_same_seed_gives_the_same_weights_and_resume_is_exact(tmp_path, memory):
    a = ludus.train(config(memory), run=tmp_path / "a", quiet=True)
    b = ludus.train(config(memory), run=tmp_path / "b", quiet=True)
    assert all(torch.equal(x, weights(b)[n]) for n, x in weights(a).items())
    half = ludus.train(
        config(memory, train=TrainConfig(total_agent_steps=20_000, threads=1)),
        run=tmp_path / "half",
        quiet=True,
    )
    del half
    # a schedule depends on the budget, so the interrupted run must have had the whole one: stop it
    # early instead
    middle = checkpoint.steps(a)[len(checkpoint.steps(a)) // 2]
    before = weights(a)
    api.resume(f"{a.path}@{middle}", quiet=True)
    assert all(torch.equal(x, weights(a)[n]) for n, x in before.items())


@pytest.mark.parametrize(
    ("algorithm", "network"),
    [
        ("ppo", "own_network:Gated"),
        ("ppo", "own_loss:Reconstructing"),
        ("reinforce:Reinforce", "standard"),
    ],
)
def test_code_of_ones_own_trains_in_graphs_and_resume_is_exact(
    tmp_path, monkeypatch, algorithm, network
):
    write_files(tmp_path, [ROOT / "docs" / "write-your-own-network.md"])
    shutil.copy(ROOT / "examples" / "reinforce.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = config(policy=PolicyConfig(network=network))
    made.choose_algorithm(algorithm)
    run = ludus.train(made, run=tmp_path / "run", quiet=True)
    before, middle = weights(run), checkpoint.steps(run)[len(checkpoint.steps(run)) // 2]
    api.resume(f"{run.path}@{middle}", quiet=True)
    assert all(torch.equal(x, weights(run)[n]) for n, x in before.items())
    for name in ("own_network", "own_loss", "reinforce"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_compiled_kernels_compute_the_same(memory):
    """One iteration in float32 from the same numbers: fused kernels may round otherwise, nothing
    more."""
    from contextlib import nullcontext

    after = []
    for fused in (False, True):
        train = TrainConfig(total_agent_steps=40_000, threads=1, dtype="float32", compile=fused)
        c = resolve(config(memory, train=train))
        torch.manual_seed(0)
        ppo = PPO(make_batch(c, c.envs, 0), c)
        torch.manual_seed(1)
        ppo.collect(lambda phase: nullcontext())
        ppo.learn(0.0)
        after.append([p.detach().clone() for role in ppo.roles.values() for p in role.parameters])
    assert all(torch.allclose(a, b, atol=2e-3) for a, b in zip(*after, strict=True))


def test_graphs_change_nothing(monkeypatch):
    """The first iterations with graphs and without are the same, bit for bit."""
    from contextlib import nullcontext

    from ludus.algorithms import graphs

    def train(captured):
        c = resolve(config("lstm"))
        torch.manual_seed(0)
        ppo = PPO(make_batch(c, c.envs, 0), c)
        if not captured:
            monkeypatch.setattr(graphs.Graphs, "graph", lambda self, name, function: function)
        for i in range(3):
            torch.manual_seed(100 + i)
            ppo.collect(lambda phase: nullcontext())
            ppo.learn(0.0)
        monkeypatch.undo()
        return {n: p.clone() for n, p in ppo.roles["chaser"].policy.state_dict().items()}

    eager, graphed = train(False), train(True)
    for name, value in eager.items():
        assert torch.allclose(value, graphed[name], atol=1e-6), name


def test_hide_and_seek_as_shipped_trains(tmp_path):
    """Without observation statistics, with diagnostics, in both precisions."""
    from ludus.recipes import load_recipe

    for dtype in ("bfloat16", "float32"):
        c = load_recipe("hide_and_seek")
        c.device, c.envs, c.train, c.eval.episodes = (
            "cuda",
            64,
            TrainConfig(total_agent_steps=30_000, dtype=dtype),
            4,
        )
        run = ludus.train(c, run=tmp_path / dtype, quiet=True)
        assert run.metrics()[-1]["progress/agent_steps"] >= 30_000


def test_too_many_envs_name_what_fits():
    with pytest.raises(LudusError, match=r"envs .* need .* GB .* set --envs to at most [\d,]+"):
        make_batch(config(envs=2_000_000_000), 2_000_000_000, 0)
