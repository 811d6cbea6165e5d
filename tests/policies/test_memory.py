"""Memory: the cell against torch's, resets, normalisers."""

import torch

from ludus.config import PolicyConfig
from ludus.policies.heads import ActionSpace
from ludus.policies.memory import LSTM
from ludus.policies.normalise import RunningNorm
from ludus.policies.policy import Policy


def test_the_cell_is_torchs_lstm():
    mine, theirs = LSTM(5, 7), torch.nn.LSTM(5, 7)
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(mine.input_weight)
        theirs.weight_hh_l0.copy_(mine.hidden_weight)
        theirs.bias_ih_l0.copy_(mine.bias)
        theirs.bias_hh_l0.zero_()
    x, state = torch.randn(9, 3, 5), torch.randn(3, 14)
    out, after = mine(x, state, torch.zeros(9, 3, dtype=torch.bool))
    expected, (h, c) = theirs(x, (state[None, :, :7].contiguous(), state[None, :, 7:].contiguous()))
    assert torch.allclose(out, expected, atol=1e-6)
    assert torch.allclose(after, torch.cat([h[0], c[0]], -1), atol=1e-6)


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
    norm.update(torch.full((4, 3), float("nan")), torch.zeros(4, dtype=torch.bool))  # nothing valid: nothing changes
    for p, v in zip(parts, valid, strict=True):
        norm.update(torch.where(v.unsqueeze(1), p, torch.nan), v)
    seen = torch.cat([p[v] for p, v in zip(parts, valid, strict=True)])
    assert torch.allclose(norm.mean, seen.mean(0), atol=1e-4)
    assert torch.allclose(norm.var, seen.var(0, unbiased=False), atol=1e-3)


def test_moving_value_statistics_keep_real_values():
    policy = Policy(4, ActionSpace(1, 0, ()), PolicyConfig(hidden=(8,)))
    obs, starts = torch.randn(1, 6, 4), torch.zeros(1, 6, dtype=torch.bool)

    def value():
        return policy.real_value(policy(obs, policy.initial_state(6), starts).value)

    before = value()
    for scale in (1.0, 1000.0):
        policy.update_value_norm(torch.randn(50) * scale + 3 * scale, torch.ones(50, dtype=torch.bool))
        assert torch.allclose(value(), before, rtol=1e-3, atol=1e-2)
    target = torch.tensor([5.0, -7.0])
    assert torch.allclose(policy.real_value(policy.normal_value(target)), target, atol=1e-3)
