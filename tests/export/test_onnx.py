"""An exported policy computes what the policy computes, step after step, in another runtime."""

import importlib.util

import numpy as np
import pytest
import torch

from ludus.algorithms.rainbow import RainbowConfig
from ludus.algorithms.rainbow.q_policy import QPolicy
from ludus.config import PolicyConfig
from ludus.games import load_game
from ludus.networks.heads import ActionSpace, action_space
from ludus.networks.policy import Policy
from ludus.sim.game import Tokens
from ludus.sim.layout import Layout

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxscript", "onnxruntime")),
    reason="ONNX (pip install 'ludus[onnx]') is not installed",
)


def make(game, **settings):
    """A policy of a game with random weights and statistics that matter."""
    torch.manual_seed(0)
    declared, _ = load_game(game)
    layout = Layout(declared, declared.resolve())
    config = PolicyConfig(hidden=(16,), memory_size=8, **settings)
    policy = Policy(
        layout.observation, action_space(layout, config.state_dependent_std), config, layout.seen
    ).eval()
    with torch.no_grad():
        for weights in policy.parameters():
            weights.add_(0.05 * torch.randn_like(weights))
        for norm in (policy.observation_norm, policy.value_norm):
            norm.mean.uniform_(-1, 1)
            norm.var.uniform_(0.5, 2)
    return policy, layout


def inputs(policy, layout, rows, random):
    """One step's inputs as the file wants them."""
    given = {"observation": random.uniform(-2, 2, (rows, policy.entries)).astype(np.float32)}
    for name, part in policy.seen.items():
        if isinstance(part.kind, Tokens):
            tokens = np.zeros((rows, part.height, 3), np.uint8)
            tokens[:, :5] = random.integers(
                0, (part.kind.cells, part.kind.features, 9), (rows, 5, 3)
            )
            given[f"seen_{name}"] = tokens
        else:
            given[f"seen_{name}"] = random.integers(
                0, 256, (rows, part.frames, part.height, part.width), np.uint8
            )
    if policy.space.masked:
        mask = random.random((rows, layout.sizes["num_masked"])) < 0.5
        for at, options in zip(layout.choice_mask_at, layout.choices.values(), strict=True):
            mask[:, at + random.integers(len(options))] = True
        given["action_mask"] = mask
    return given


@pytest.mark.parametrize(
    ("game", "settings"),
    [
        ("hide_and_seek", {"memory": "lstm"}),
        (
            "mechs",
            {
                "state_dependent_std": True,
                "separate_value": False,
                "normalise_observation": False,
                "sets": ("mate",),
            },
        ),
        ("arena", {"memory": "lstm", "normalise_observation": False}),
    ],
)
def test_the_file_agrees_with_the_policy(tmp_path, game, settings):
    import onnxruntime

    from ludus.export.onnx import export_policy

    policy, layout = make(game, **settings)
    policy.reward_scale = 0.5
    path = export_policy(
        policy,
        layout.describe(),
        layout.sizes["num_masked"],
        tmp_path / "policy.onnx",
        role="tester",
    )
    session = onnxruntime.InferenceSession(path)
    assert session.get_modelmeta().custom_metadata_map["role"] == "tester"
    names = [output.name for output in session.get_outputs()]
    random, rows = np.random.default_rng(0), 5
    state, starts = policy.initial_state(rows), torch.ones(1, rows, dtype=torch.bool)
    memory = state.numpy()
    for _ in range(3):
        given = inputs(policy, layout, rows, random)
        mask = (
            torch.from_numpy(given["action_mask"]).unsqueeze(0) if "action_mask" in given else None
        )
        seen = {name: torch.from_numpy(given[f"seen_{name}"]).unsqueeze(0) for name in policy.seen}
        with torch.no_grad():
            output = policy(
                torch.from_numpy(given["observation"]).unsqueeze(0), state, starts, mask, seen
            )
        state, starts = output.state, torch.zeros_like(starts)
        feed = given | ({"state": memory} if policy.state_size else {})
        result = dict(zip(names, session.run(None, feed), strict=True))
        memory = result.get("next_state", memory)
        d = output.distribution
        # in units of the game's reward
        expected = {"value": policy.real_value(output.value[0]) / 0.5}
        if policy.space.continuous:
            expected |= {
                "mean": d.mean[0],
                "continuous": torch.tanh(d.mean[0]),
                "log_std": d.log_std.expand_as(d.mean)[0],
            }
        if policy.space.binary:
            expected["pressed"] = torch.sigmoid(d.key_logits[0]) * (
                d.key_mask[0] if d.key_mask is not None else 1.0
            )
        expected |= {
            f"choice_{n}": p[0].exp()
            for n, p in zip(layout.choices, d.choice_log_probs, strict=True)
        }
        if policy.state_size:
            expected["next_state"] = state
        assert expected.keys() == result.keys()
        for name, value in expected.items():
            assert np.allclose(result[name], value, atol=2e-5), name


def test_a_policy_of_values_is_exported_as_it_plays(tmp_path):
    """Rainbow: the best allowed action by the averaged weights, without noise, and its value in
    units of reward."""
    import onnxruntime

    from ludus.export.onnx import export_policy

    torch.manual_seed(0)
    settings = RainbowConfig(
        noisy=True, average=0.9, reward_scale=0.5, stream=8, cosines=4, quantiles=3
    )
    policy = QPolicy(
        ["a", "b"], ActionSpace(0, 0, (3,), (), (0,)), PolicyConfig(hidden=(8,)), settings
    ).eval()
    policy.observation_norm.mean.uniform_(-1, 1)
    with torch.no_grad():
        for weights in policy.averaged.parameters():
            weights.add_(0.3 * torch.randn_like(weights))
    layout = {"observation": ["a", "b"], "action": {"choices": {"act": ["x", "y", "z"]}}}
    session = onnxruntime.InferenceSession(
        export_policy(policy, layout, 3, tmp_path / "policy.onnx")
    )
    seen, mask = torch.randn(20, 2), torch.rand(20, 3) < 0.4
    mask[torch.arange(20), torch.arange(20) % 3] = True
    output = policy(
        seen.unsqueeze(0),
        policy.initial_state(20),
        torch.ones(1, 20, dtype=torch.bool),
        mask.unsqueeze(0),
    )
    chosen, value = session.run(
        ["choice_act", "value"], {"observation": seen.numpy(), "action_mask": mask.numpy()}
    )
    assert np.array_equal(chosen.argmax(-1), output.distribution.greedy().choices[0, :, 0].numpy())
    assert len(set(chosen.argmax(-1))) > 1 and np.allclose(
        value, output.value[0].detach(), atol=1e-4
    )


def test_the_command_writes_a_file_per_role(tmp_path, capsys):
    from ludus.api import train
    from ludus.cli import main

    run = train(
        "gym:CartPole-v1",
        run=tmp_path / "run",
        quiet=True,
        envs=4,
        total_agent_steps=300,
        **{"eval.episodes": 2, "policy.hidden": (8,), "log.tensorboard": False},
    )
    with pytest.raises(SystemExit) as end:
        main(["export", str(run.path)])
    assert end.value.code == 0
    assert capsys.readouterr().out.strip() == str(run.path / "export" / "agent.onnx")
    assert (run.path / "export" / "agent.onnx").stat().st_size > 1000
    with pytest.raises(SystemExit) as end:
        main(["export", str(run.path), "--format", "onxx"])
    assert end.value.code == 2 and "did you mean 'onnx'?" in capsys.readouterr().err
