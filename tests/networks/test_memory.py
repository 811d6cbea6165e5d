"""Memory: the cell against torch's, resets, normalisers."""

import pytest
import torch

from ludus.algorithms.rainbow import RainbowConfig
from ludus.algorithms.rainbow.q_policy import QPolicy
from ludus.config import PolicyConfig
from ludus.networks.heads import ActionSpace
from ludus.networks.memory import LSTM
from ludus.networks.normalise import RunningNorm
from ludus.networks.policy import Policy


def test_the_cell_and_its_gradients_are_torchs_lstm():
    """torch's gates are in another order: input, forget, cell, output."""
    mine, theirs = LSTM(5, 7).double(), torch.nn.LSTM(5, 7).double()
    order = torch.cat([torch.arange(0, 14), torch.arange(21, 28), torch.arange(14, 21)])
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(mine.input_weight[order])
        theirs.weight_hh_l0.copy_(mine.hidden_weight[order])
        theirs.bias_ih_l0.copy_(mine.bias[order])
        theirs.bias_hh_l0.zero_()
    x = torch.randn(9, 3, 5, dtype=torch.float64)
    state = torch.randn(3, 14, dtype=torch.float64, requires_grad=True)
    weigh_out, weigh_state = (
        torch.randn(9, 3, 7, dtype=torch.float64),
        torch.randn(3, 14, dtype=torch.float64),
    )
    out, after = mine(x, state, torch.zeros(9, 3, dtype=torch.bool))
    ((out * weigh_out).sum() + (after * weigh_state).sum()).backward()
    my_state_gradient = state.grad.clone()
    state.grad = None
    expected, (h, c) = theirs(x, (state[None, :, :7].contiguous(), state[None, :, 7:].contiguous()))
    expected_after = torch.cat([h[0], c[0]], -1)
    ((expected * weigh_out).sum() + (expected_after * weigh_state).sum()).backward()
    assert torch.allclose(out, expected) and torch.allclose(after, expected_after)
    assert torch.allclose(my_state_gradient, state.grad)
    assert torch.allclose(mine.hidden_weight.grad[order], theirs.weight_hh_l0.grad)
    assert torch.allclose(mine.input_weight.grad[order], theirs.weight_ih_l0.grad)
    assert torch.allclose(mine.bias.grad[order], theirs.bias_ih_l0.grad)


def test_gradients_stop_at_starts():
    """Finite differences, with episode starts inside the sequence."""
    memory = LSTM(3, 4).double()
    starts = torch.rand(6, 2) < 0.3
    starts[2, 0] = True
    x = torch.randn(6, 2, 3, dtype=torch.float64, requires_grad=True)
    state = torch.randn(2, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, s: memory(x, s, starts), (x, state))


def test_a_start_inside_a_sequence_is_a_fresh_state():
    memory = LSTM(4, 6)
    x, state = torch.randn(8, 2, 4), torch.randn(2, 12)
    starts = torch.zeros(8, 2, dtype=torch.bool)
    starts[3, 1] = True
    out, _ = memory(x, state, starts)
    fresh, _ = memory(x[3:, 1:], torch.zeros(1, 12), torch.zeros(5, 1, dtype=torch.bool))
    untouched, _ = memory(x, state, torch.zeros(8, 2, dtype=torch.bool))
    assert torch.allclose(out[3:, 1:], fresh) and torch.allclose(out[:, 0], untouched[:, 0])
    assert not torch.allclose(out[3:, 1], untouched[3:, 1])


def test_running_norm_is_the_mean_and_variance_of_the_valid_rows():
    norm = RunningNorm(3)
    parts = [torch.randn(n, 3) * 4 + 2 for n in (5, 1, 200)]
    valid = [torch.rand(len(p)) < 0.7 for p in parts]
    valid[0][0] = True
    # nothing valid: nothing changes
    norm.update(torch.full((4, 3), float("nan")), torch.zeros(4, dtype=torch.bool))
    for p, v in zip(parts, valid, strict=True):
        norm.update(torch.where(v.unsqueeze(1), p, torch.nan), v)
    seen = torch.cat([p[v] for p, v in zip(parts, valid, strict=True)])
    assert torch.allclose(norm.mean, seen.mean(0), atol=1e-4)
    assert torch.allclose(norm.var, seen.var(0, unbiased=False), atol=1e-3)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, 1e6])
def test_running_norm_far_from_zero_keeps_a_small_variance(offset):
    """In the first update too, and beside an entry of another size. At a million a float32 has a
    resolution of 1/16."""
    torch.manual_seed(0)
    norm, seen = RunningNorm(2), []
    for _ in range(3):
        x = (
            torch.rand(4096, 2, dtype=torch.float64)
            * torch.tensor([1.0, 300.0], dtype=torch.float64)
            + offset
        )
        seen.append(x.float().double())
        norm.update(x.float(), torch.ones(4096, dtype=torch.bool))
        true = torch.cat(seen)
        assert torch.allclose(norm.var.double(), true.var(0, unbiased=False), rtol=2e-2)
        assert torch.allclose(norm.mean.double(), true.mean(0), rtol=1e-6, atol=0.2)


def test_moving_value_statistics_keep_real_values():
    policy = Policy(["a", "b", "c", "d"], ActionSpace(1, 0, ()), PolicyConfig(hidden=(8,)))
    obs, starts = torch.randn(1, 6, 4), torch.zeros(1, 6, dtype=torch.bool)

    def value():
        return policy.real_value(policy(obs, policy.initial_state(6), starts).value)

    before = value()
    for scale in (1.0, 1000.0):
        policy.update_value_norm(
            torch.randn(50) * scale + 3 * scale, torch.ones(50, dtype=torch.bool)
        )
        assert torch.allclose(value(), before, rtol=1e-3, atol=1e-2)
    target = torch.tensor([5.0, -7.0])
    assert torch.allclose(policy.real_value(policy.normal_value(target)), target, atol=1e-3)


@pytest.mark.parametrize("hidden", [(8,), ()], ids=["layers", "no layers"])
@pytest.mark.parametrize("kind", ["plain", "one trunk", "lstm", "values"])
def test_quiet_inputs_are_not_heard_at_the_start(kind, hidden):
    """Without layers and memory the observation meets the heads themselves."""
    memory = "lstm" if kind == "lstm" else "none"
    config = PolicyConfig(
        hidden=hidden,
        memory=memory,
        memory_size=4,
        separate_value=kind != "one trunk",
        quiet_inputs=("ray",),
    )
    entries = ["speed", "ray0", "ray1"]
    if kind == "values":
        policy = QPolicy(
            entries, ActionSpace(0, 0, (2,)), config, RainbowConfig(stream=8, cosines=4)
        )
    else:
        policy = Policy(entries, ActionSpace(0, 0, (2,)), config)

    def told(observation):
        seen = torch.tensor([observation] * 2).unsqueeze(0)
        output = policy(seen, policy.initial_state(2), torch.zeros(1, 2, dtype=torch.bool))
        return (
            output.value
            if kind == "values"
            else torch.cat([output.value, output.distribution.choice_log_probs[0][..., 0]])
        )

    assert torch.equal(told([0.5, 0.0, 0.0]), told([0.5, 1.0, -1.0]))
    assert not torch.isclose(told([0.5, 0.0, 0.0]), told([0.1, 0.0, 0.0]), rtol=1e-6).any()
