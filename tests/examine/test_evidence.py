"""Evidence about a run, where the answer is known."""

from types import SimpleNamespace

import pytest
import torch

from ludus.algorithms.algorithm import Evidence
from ludus.algorithms.replay_buffer import Replay
from ludus.evidence.diagnostics import Diagnostics


def diagnostics(observation):
    """Of an algorithm with one role whose last rollout saw this: [time, rows, 2]."""
    evidence = Evidence(
        inputs=(observation[:1], torch.zeros(observation.shape[1], 0), None, None, {}),
        observation=observation.flatten(0, 1),
        suspects={"observation": observation},
    )
    algorithm = SimpleNamespace(policies={"player": None}, evidence=lambda name: evidence)
    layout = SimpleNamespace(
        observation=["place", "height"], observation_of=lambda role: ["place", "height"]
    )
    return Diagnostics(algorithm, layout), evidence


def test_entries_that_are_not_finite_are_named():
    observation = torch.randn(3, 4, 2)
    assert diagnostics(observation)[0].broken_observations() == {}
    observation[2, 1, 1] = torch.nan
    assert diagnostics(observation)[0].broken_observations() == {
        "observation/player/not_finite": ["height"]
    }


def test_rows_that_all_see_the_same_say_nothing_about_units_and_inputs():
    """Short episodes that began all at once: equal outputs are no dead units, and shuffling the
    rows changes nothing."""
    looks, evidence = diagnostics(torch.ones(3, 4, 2))
    assert looks._units(None, evidence) == {}
    told = looks._inputs("player", None, evidence)
    assert told["observation/constant"] == ["place", "height"] and not [
        name for name in told if name.startswith("sensitivity")
    ]


def test_what_observations_are_normalised_by_and_what_is_cut():
    """Entry 0 has mean 2 and deviation 3, entry 1 mean 0 and deviation 1: 29 is 9 deviations away,
    -11 is 11."""
    norm = SimpleNamespace(
        mean=torch.tensor([2.0, 0.0, 0.0]), std=torch.tensor([3.0, 1.0, 1.0]), limit=10.0
    )
    policy = SimpleNamespace(normalise_observation=True, observation_norm=norm)
    looks, _ = diagnostics(torch.zeros(1, 1, 2))
    rows = torch.tensor([[29.0, 1.0], [2.0, -11.0]])
    assert looks._normaliser(policy, ["place", "height"], rows) == {
        "observation/out_of_range": ["height"],
        "observation/normaliser_mean": [2.0, 0.0],
        "observation/normaliser_std": [3.0, 1.0],
    }
    policy.normalise_observation = False
    assert looks._normaliser(policy, ["place", "height"], rows) == {
        "observation/out_of_range": ["place", "height"]
    }


def test_what_a_replay_holds():
    """Two rows of an env over four steps, the last of which is not valid: four transitions count
    that differ, and two that do not."""
    replay = Replay(16, 2, 1, 0, {}, n_step=1)
    seen = [[0.0, 5.0], [1.0, 5.0], [2.0, 7.0], [3.0, 8.0]]
    chosen = [[0, 1], [0, 1], [1, 1], [0, 0]]
    paid = [[0.0, 1.0], [0.0, 1.0], [-1.0, 0.0], [9.0, 9.0]]
    for t in range(4):
        replay.observe(
            torch.tensor(seen[t]).unsqueeze(1), None, {}, torch.zeros(2, dtype=torch.bool)
        )
        over, cut, idle = (
            torch.tensor([t == 2, False]),
            torch.tensor([False, t == 2]),
            torch.zeros(2, dtype=torch.bool),
        )
        valid = torch.full((2,), t < 3)
        replay.add(
            torch.tensor(chosen[t]),
            torch.tensor(paid[t]),
            valid,
            idle,
            over,
            cut,
            torch.tensor(1.0),
        )
    looks, evidence = diagnostics(torch.zeros(1, 1, 2))
    looks.layout.actions_of = lambda role: SimpleNamespace(choices={"act": ("stay", "go")})
    found = looks._replay("player", evidence._replace(replay=replay))
    expected = {
        "terminated": 1,
        "truncated": 1,
        "rewarded": 2,
        "punished": 1,
        "duplicates": 1,
        "action/stay": 2,
        "action/go": 4,
    }
    assert found == {f"replay/{name}": pytest.approx(count / 6) for name, count in expected.items()}
    assert looks._replay("player", evidence) == {}
