"""Distributions against numerical integration, torch's own, and brute force."""

import math

import pytest
import torch

from ludus.networks.heads import Actions, ActionSpace, Distribution, squash_correction


def distribution(space, parameters, log_std=None, mask=None):
    return Distribution(space, torch.tensor(parameters), log_std, mask)


def actions(raw=(), binary=(), choices=()):
    return Actions(
        torch.tensor(raw),
        torch.tensor(binary, dtype=torch.int8),
        torch.tensor(choices, dtype=torch.int32),
    )


@pytest.mark.parametrize("mean", [-2.0, 0.0, 0.7])
@pytest.mark.parametrize("log_std", [-1.5, 0.0, 0.5])
def test_squashed_density_integrates_to_one_and_its_entropy_is_right(mean, log_std):
    space = ActionSpace(1, 0, ())
    raw = torch.linspace(-9, 9, 40_001, dtype=torch.float64)
    d = Distribution(space, torch.full((40_001, 1), mean), torch.tensor([log_std]), None)
    log_p = d.log_prob(Actions(raw.unsqueeze(1), torch.zeros(40_001, 0), torch.zeros(40_001, 0)))
    width = (1 - torch.tanh(raw) ** 2) * (raw[1] - raw[0])  # da = (1 − tanh²) du
    assert (log_p.exp() * width).sum() == pytest.approx(1.0, abs=1e-3)
    entropy = -(log_p.exp() * log_p * width).sum()
    assert d.entropy()[0] == pytest.approx(float(entropy), abs=2e-3 if log_std <= 0 else 0.02)


def test_log_probability_at_saturation_is_exact():
    """At raw = 20, tanh is 1 in float32: an inverse would be infinite, an epsilon biased. The
    formula is linear there."""
    space = ActionSpace(1, 0, ())
    d = distribution(space, [[0.0]], torch.zeros(1))
    expected = -0.5 * (400 + math.log(2 * math.pi)) - (2 * math.log(2) - 40)
    assert d.log_prob(actions([[20.0]], [[]], [[]])).item() == pytest.approx(expected, rel=1e-6)
    raw = torch.linspace(-3, 3, 13, dtype=torch.float64)
    assert torch.allclose(squash_correction(raw), torch.log(1 - torch.tanh(raw) ** 2), atol=1e-12)


def test_hybrid_is_the_sum_of_its_parts():
    space = ActionSpace(2, 2, (3, 2), (-1, -1), (-1, -1))
    parameters = torch.randn(5, space.num_parameters)
    log_std = torch.tensor([-0.3, 0.2])
    d = Distribution(space, parameters, log_std, None)
    a = d.sample()
    normal = torch.distributions.Normal(parameters[:, :2], log_std.exp())
    expected = (normal.log_prob(a.raw) - torch.log(1 - torch.tanh(a.raw) ** 2 + 1e-12)).sum(-1)
    expected += (
        torch.distributions.Bernoulli(logits=parameters[:, 2:4]).log_prob(a.binary.float()).sum(-1)
    )
    for i, (start, n) in enumerate([(4, 3), (7, 2)]):
        expected += torch.distributions.Categorical(
            logits=parameters[:, start : start + n]
        ).log_prob(a.choices[:, i])
    assert torch.allclose(d.log_prob(a), expected, atol=1e-4)
    entropy = torch.distributions.Bernoulli(logits=parameters[:, 2:4]).entropy().sum(-1)
    entropy += torch.distributions.Categorical(logits=parameters[:, 4:7]).entropy()
    entropy += torch.distributions.Categorical(logits=parameters[:, 7:9]).entropy()
    keys = Distribution(ActionSpace(0, 2, (3, 2)), parameters[:, 2:], None, None)
    assert torch.allclose(keys.entropy(), entropy, atol=1e-5)


def test_sampling_frequencies_match_probabilities():
    torch.manual_seed(0)
    space = ActionSpace(1, 1, (3,))
    d = Distribution(
        space,
        torch.tensor([0.4, 1.0, 0.0, 1.0, 2.0]).expand(200_000, 5),
        torch.tensor([-1.0]),
        None,
    )
    a = d.sample()
    assert a.binary.float().mean() == pytest.approx(
        torch.sigmoid(torch.tensor(1.0)).item(), abs=0.005
    )
    shares = torch.bincount(a.choices[:, 0].long(), minlength=3) / 200_000
    assert torch.allclose(shares, torch.softmax(torch.tensor([0.0, 1.0, 2.0]), 0), atol=0.005)
    assert a.raw.mean() == pytest.approx(0.4, abs=0.005) and a.raw.std() == pytest.approx(
        math.exp(-1), abs=0.005
    )


def test_masks():
    space = ActionSpace(0, 2, (3,), (0, -1), (1,))
    # key 0 forbidden; option 1 forbidden
    mask = torch.tensor([[False, True, False, True]]).expand(5000, 4)
    d = Distribution(space, torch.tensor([5.0, 0.0, 0.0, 9.0, 0.0]).expand(5000, 5), None, mask)
    a = d.sample()
    assert not a.binary[:, 0].any() and a.binary[:, 1].any()
    assert set(a.choices[:, 0].tolist()) == {0, 2}
    assert d.log_prob(a)[0] == pytest.approx(2 * math.log(0.5), abs=1e-5)
    assert d.entropy()[0] == pytest.approx(2 * math.log(2), abs=1e-5)
    assert d.greedy().choices[0, 0] != 1 and d.greedy().binary[0, 0] == 0


def test_masked_entries_get_no_gradient():
    space = ActionSpace(0, 1, (2,), (0,), (1,))
    parameters = torch.zeros(1, 3, requires_grad=True)
    d = Distribution(space, parameters, None, torch.tensor([[False, True, False]]))
    (d.log_prob(actions([[]], [[0]], [[0]])) + d.entropy()).sum().backward()
    assert torch.isfinite(parameters.grad).all() and (parameters.grad == 0).all()
