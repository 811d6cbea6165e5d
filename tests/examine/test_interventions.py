"""What is taken away from a policy: exact answers with a policy that is a sum, and a whole run."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import ludus
from ludus.doctor.log import Curve, Log, read_log
from ludus.doctor.watch import examine
from ludus.errors import LudusError
from ludus.examine.interventions import LOOKS_EVERY, Intervened, examine_run, kinds
from ludus.networks.strategy import HISTORY

PROBE = "gym:ludus.examine.probes:ProbeMemory-v0"
SMALL = {
    "envs": 8,
    "train.threads": 1,
    "train.total_agent_steps": 200,
    "ppo.rollout": 16,
    "ppo.minibatches": 1,
    "ppo.epochs": 1,
    "policy.hidden": (8,),
    "eval.episodes": 2,
    "log.tensorboard": False,
    "log.diagnostics_every": 0,
}


class Sum:
    """Says the sum of its observation, its memory and its history; its memory counts calls."""

    state_size, seen = 1, {HISTORY: None}

    def __call__(self, observation, state, starts, mask=None, seen=None):
        mean = (
            observation.sum(-1, keepdim=True)
            + state.unsqueeze(0)
            + seen[HISTORY].sum((-1, -2, -3)).unsqueeze(-1)
        )
        said = SimpleNamespace(mean=mean, key_logits=torch.zeros(1, 4, 0), choice_log_probs=[])
        return Out(said, state + 1)


class Out(SimpleNamespace):
    def __init__(self, distribution, state):
        super().__init__(distribution=distribution, state=state)

    def _replace(self, state):
        return Out(self.distribution, state)


def act(kind: str, calls: int = LOOKS_EVERY) -> tuple[Intervened, list]:
    """Four rows that see 1, 2, 3, 4 and a message of 10, with a history of 100 times their
    number."""
    touched = Intervened(Sum(), kind, messages=[1])
    observation = torch.stack(
        [torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.full((4,), 10.0)], -1
    ).unsqueeze(0)
    history = 100 * torch.arange(4.0).reshape(1, 4, 1, 1, 1)
    state, said = torch.full((4, 1), 5.0), []
    for _ in range(calls):
        output = touched(observation, state, None, None, {HISTORY: history})
        said.append(output.distribution.mean.flatten().tolist())
        state = output.state
    return touched, said


@pytest.mark.parametrize(
    ("kind", "first", "change"),
    [
        ("none", [16, 117, 218, 319], 0.0),
        # compared at the second call, when the memory it would have had is 6
        ("memory_reset", [11, 112, 213, 314], 6.0),
        ("messages_silenced", [6, 107, 208, 309], 10.0),
        # each has the history of the next row
        ("strategy_shuffled", [116, 217, 318, 19], (100 + 100 + 100 + 300) / 4),
    ],
)
def test_what_is_said_without(kind, first, change):
    touched, said = act(kind)
    assert said[0] == first
    assert touched.changes == [pytest.approx(change)]


def test_only_what_a_policy_has_can_be_taken_away():
    assert kinds(Sum(), [1]) == [
        "memory_reset",
        "messages_silenced",
        "strategy_shuffled",
        "observation_shuffled",
    ]
    assert kinds(SimpleNamespace(state_size=0, seen={}), []) == []


def test_a_run_is_examined_and_the_doctor_reads_it(tmp_path):
    run = ludus.train(
        PROBE,
        run=tmp_path / "run",
        quiet=True,
        **SMALL,
        **{"policy.memory": "lstm", "policy.memory_size": 8},
    )
    line = examine_run(str(run.path), episodes=8)
    assert (
        line["intervention/agent/none/change"] == 0
        and line["intervention/agent/memory_reset/change"] > 0
    )
    assert json.loads((run.path / "examined.jsonl").read_text()) == line
    assert "taken_away" in [f.check for f in examine(read_log(run.path))]


def test_a_run_without_anything_to_take_away_is_refused(tmp_path):
    run = ludus.train(PROBE, run=tmp_path / "run", quiet=True, **SMALL)
    with pytest.raises(LudusError, match="nothing to take away"):
        examine_run(str(run.path))
    assert not (run.path / "examined.jsonl").exists()


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        ("memory_reset", "memory_unused"),
        ("messages_silenced", "messages_unused"),
        ("strategy_shuffled", "strategy_unused"),
    ],
)
def test_what_changes_nothing_is_unused(kind, check):
    def found(change: float) -> list[str]:
        names = {
            f"intervention/agent/{kind}/change": change,
            "intervention/agent/observation_shuffled/change": 0.3,
        }
        curves = {n: Curve(n, np.array([9.0]), np.array([v])) for n, v in names.items()}
        curves["learner/agent/entropy"] = Curve(
            "learner/agent/entropy", np.array([9.0]), np.array([1.0])
        )
        return [f.check for f in examine(Log("here", curves)) if f.severity == "warning"]

    assert found(1e-4) == [check] and found(0.1) == []
