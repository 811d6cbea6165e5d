"""Agents of one env that see and do different things: each kind is a role with a policy of its
own."""

from types import SimpleNamespace

import numpy as np
import pytest

from ludus.api import load, resume, train
from ludus.errors import LudusError
from ludus.external.foreign import ForeignBatch
from ludus.external.guests import roles_of
from ludus.external.wire import Fault, read_hello
from tests.envs.test_in import ODD

WORKSHOP = ODD + "Workshop"


def test_each_kind_of_agent_is_a_role():
    """Hand-worked: role after role; arrays as wide as the widest role needs, masks beginning with a
    role's own flags."""
    batch = ForeignBatch(WORKSHOP, 1, workers=0)
    layout = batch.layout
    assert [(s.role, s.start, s.count) for s in layout.seats] == [
        ("cutter", 0, 2),
        ("apprentice_0", 2, 1),
        ("apprentice_1", 3, 1),
        ("painter", 4, 1),
    ]
    assert [
        batch[kind].shape[-1] for kind in ("continuous", "binary", "choices", "action_mask")
    ] == [2, 1, 1, 4]
    assert layout.actions_of("cutter").choices == {} and layout.actions_of("painter").choices == {
        "action_tone": ["0", "1", "2"]
    }
    assert layout.actions_of("apprentice_0").choice_mask_at == [0] and layout.actions_of(
        "painter"
    ).choice_mask_at == [-1]
    assert (
        batch["action_mask"][0].tolist()
        == [[True] * 4] * 2 + [[True, True, True, False]] + [[True] * 4] * 2
    )
    batch["continuous"][0, :2] = [[0.25, 0], [-0.5, 0]]
    # a cutter has no choices: what stands there does not matter
    batch["choices"][0, :, 0] = [9, 9, 2, 0, 2]
    batch["binary"][0, 4] = 1
    batch.step()
    assert batch["reward"][0].tolist() == [0.25, -0.5, 1, 0, 1]


@pytest.mark.parametrize("workers", [0, 1])
def test_random_actions_stay_in_each_space(workers):
    batch = ForeignBatch(WORKSHOP, 2, workers=workers)
    for seats in batch.layout.seats:
        batch.set_controller(seats.role, "random")
    for _ in range(12):
        batch.step()  # the env asserts


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(
        WORKSHOP,
        run=tmp_path_factory.mktemp("workshop") / "run",
        quiet=True,
        envs=8,
        total_agent_steps=6_000,
        **{
            "train.threads": 1,
            "ppo.rollout": 32,
            "eval.episodes": 8,
            "policy.hidden": (8,),
            "policy.initial_mean_of": {"a0": -0.5},
            "ppo.learning_rate": 0.02,
            "log.tensorboard": False,
            "eval.every_agent_steps": 6_000,
            "eval.greedy": False,
            "eval.against": ("self",),
        },
    )


def test_every_role_learns_its_own_task(run):
    """In four steps an agent can earn 4; at random 0, 0.7, 1.3 and 2. apprentice_0 may not choose
    "3"."""
    last = run.metrics()[-1]
    for role in ("cutter", "painter", "apprentice_0", "apprentice_1"):
        assert last[f"eval/self/{role}/return"] > 2.3, role
    assert {name for name in last if name.startswith("action/apprentice_0")} == {
        f"action/apprentice_0/action/{i}" for i in range(4)
    }
    assert last["action/apprentice_0/action/3"] == 0
    assert last["action/apprentice_1/action/1"] > 0.8


def test_a_role_acts_in_its_own_space(run):
    assert load(run.path, "cutter").act(np.zeros(1, np.float32))[0].shape == (2,)
    action, _ = load(run.path, "painter").act(np.zeros(1, np.float32), greedy=True)
    assert action["key"].tolist() == [1] and action["tone"] == 2


def test_such_a_run_goes_on(run):
    before = run.metrics()[-1]["progress/agent_steps"]
    resume(run.path, quiet=True, total_agent_steps=before + 100)
    assert run.metrics()[-1]["progress/agent_steps"] > before


@pytest.mark.parametrize(
    "agent", ["red/1", "red one", "../x", 0, "class_0", "a" * 300, "\ud800", ""]
)
def test_an_agent_that_cannot_name_a_role_is_refused(agent):
    """Options, metrics and files are named after roles."""
    with pytest.raises(LudusError, match="cannot name a role: use at most 64 letters"):
        roles_of(SimpleNamespace(possible_agents=["blue", agent]))


def test_remote_agents_of_one_role_stand_side_by_side():
    import json

    hello = {
        "type": "hello",
        "protocol": 1,
        "envs": 1,
        "agents": ["a_0", "b_0", "a_1"],
        "observation": ["x"],
        "action": {"binary": ["k"]},
    }
    with pytest.raises(Fault, match="a_0, b_0, a_1: those of one role must stand side by side"):
        read_hello(json.dumps(hello))


def test_a_role_is_exported_as_what_it_sees_and_does(run, tmp_path):
    """Of roles that differ, each file has the inputs and outputs of its own actions, and computes
    what the role's policy does."""
    onnxruntime = pytest.importorskip(
        "onnxruntime", reason="ONNX (pip install 'ludus[onnx]') is not installed"
    )
    pytest.importorskip("onnxscript")
    from ludus.export.onnx import export_policy
    from ludus.runs.load import load_policies

    policies, layout = load_policies(str(run.path))
    outputs = {}
    for role in ("cutter", "apprentice_0"):
        path = export_policy(policies[role], layout, 4, tmp_path / f"{role}.onnx", role=role)
        session = onnxruntime.InferenceSession(path)
        given = {"observation": np.array([[2.0]], np.float32)}
        if role != "cutter":
            given["action_mask"] = np.array([[True, True, True, False]])
        names = [output.name for output in session.get_outputs()]
        outputs[role] = dict(zip(names, session.run(None, given), strict=True))
    assert set(outputs["cutter"]) == {"continuous", "mean", "log_std", "value"} and outputs[
        "cutter"
    ]["mean"].shape == (1, 2)
    greedy, _ = load(run.path, "cutter").act(np.array([2.0], np.float32), greedy=True)
    assert outputs["cutter"]["continuous"][0] == pytest.approx(greedy, abs=1e-5)
    chances = outputs["apprentice_0"]["choice_action"][0]
    # it may not choose "3"
    assert chances.shape == (4,) and chances.sum() == pytest.approx(1.0) and chances[3] < 1e-6
