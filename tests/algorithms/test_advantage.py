"""Advantages against closed forms and hand-worked episodes."""

import pytest
import torch

from ludus.algorithms.advantage import (
    explained_variance,
    generalised_advantages,
    masked_mean,
    standardise,
)


def gae(reward, value, terminated=None, truncated=None, idle=None, gamma=0.9, lam=0.5):
    reward = torch.tensor(reward, dtype=torch.float64).unsqueeze(1)
    steps = len(reward)

    def flags(at):
        out = torch.zeros(steps, 1, dtype=torch.bool)
        out[list(at or [])] = True
        return out

    out = torch.zeros_like(reward)
    value = torch.tensor(value, dtype=torch.float64).unsqueeze(1)
    return (
        generalised_advantages(
            reward, value, flags(terminated), flags(truncated), flags(idle), gamma, lam, out
        )
        .squeeze(1)
        .tolist()
    )


def test_constant_reward_at_its_fixed_point_has_no_advantage():
    """V = 1/(1−γ) is exactly right for a reward of 1 for ever, so every advantage is 0, also across
    a truncation."""
    gamma = 0.97
    value = [1 / (1 - gamma)] * 9
    assert gae([1.0] * 8, value, truncated=[3], gamma=gamma, lam=0.95) == pytest.approx(
        [0.0] * 8, abs=1e-9
    )


def test_gamma_zero_is_reward_minus_value():
    assert gae([1.0, 2.0, 3.0], [0.5, 0.5, 0.5, 9.0], gamma=0.0) == pytest.approx([0.5, 1.5, 2.5])


def test_lambda_zero_is_the_one_step_error():
    assert gae([1.0, 2.0], [1.0, 4.0, 10.0], gamma=0.9, lam=0.0) == pytest.approx(
        [1 + 0.9 * 4 - 1, 2 + 0.9 * 10 - 4]
    )


def test_lambda_one_is_the_discounted_return_minus_value():
    reward, value, g = [1.0, 2.0, 3.0], [0.1, 0.2, 0.3, 5.0], 0.9
    returns = [1 + g * 2 + g * g * 3 + g**3 * 5, 2 + g * 3 + g * g * 5, 3 + g * 5]
    expected = [r - v for r, v in zip(returns, value, strict=False)]
    assert gae(reward, value, gamma=g, lam=1.0) == pytest.approx(expected)


def test_a_terminal_in_the_middle_by_hand():
    """γ 0.9, λ 0.5. Row 1 ends the episode: no future. Row 2 is the reset row. Row 3 starts
    anew."""
    # row 3: 4 + 0.9·8 − 2 = 9.2
    # row 2 (reset, unused): 0 + 0.9·2 − 7 + 0.45·9.2 = −1.06
    # row 1: 2 − 3 = −1
    # row 0: 1 + 0.9·3 − 5 + 0.45·(−1) = −1.75
    assert gae([1.0, 2.0, 0.0, 4.0], [5.0, 3.0, 7.0, 2.0, 8.0], terminated=[1]) == pytest.approx(
        [-1.75, -1.0, -1.06, 9.2]
    )


def test_a_truncation_in_the_middle_by_hand():
    """The same, but row 1 is cut off: its future is the value of the final observation, 7, seen in
    row 2."""
    # row 1: 2 + 0.9·7 − 3 = 5.3
    # row 0: 1 + 0.9·3 − 5 + 0.45·5.3 = 1.085
    assert gae([1.0, 2.0, 0.0, 4.0], [5.0, 3.0, 7.0, 2.0, 8.0], truncated=[1])[:2] == pytest.approx(
        [1.085, 5.3]
    )


def test_shifting_the_ends_by_one_row_changes_the_answer():
    a = gae([1.0, 2.0, 0.0, 4.0], [5.0, 3.0, 7.0, 2.0, 8.0], terminated=[1])
    b = gae([1.0, 2.0, 0.0, 4.0], [5.0, 3.0, 7.0, 2.0, 8.0], terminated=[2])
    assert a[0] != pytest.approx(b[0])


def test_an_idle_row_is_worth_what_follows_it():
    """Its own value, 999, is nobody's prediction. Row 0 sees through it: 1 + 0.9·(2 + 0.9·4) − 5 =
    1.04."""
    # row 2: 3 + 0.9·8 − 4 = 6.2
    # row 1 idle: worth 2 + 0.9·4 = 5.6, advantage 0 + 0.45·6.2 = 2.79
    # row 0: 1 + 0.9·5.6 − 5 + 0.45·2.79 = 2.2955
    assert gae([1.0, 2.0, 3.0], [5.0, 999.0, 4.0, 8.0], idle=[1]) == pytest.approx(
        [2.2955, 2.79, 6.2]
    )


def test_values_of_idle_rows_learn_what_follows():
    """γ 0.9, λ 0. Row 1 is idle: it is worth 2 + 0.9·4; row 0: 1 + 0.9·5.6; the last row bootstraps
    from 8."""
    rows = torch.zeros(3, 1, dtype=torch.bool)
    idle = torch.tensor([[False], [True], [False]])
    reward, value = (
        torch.tensor([[1.0], [2.0], [3.0]]),
        torch.tensor([[5.0], [999.0], [4.0], [8.0]]),
    )
    target = torch.zeros(3, 1)
    advantage = generalised_advantages(
        reward, value, rows, rows, idle, 0.9, 0.0, torch.zeros(3, 1), target
    )
    assert target.flatten().tolist() == pytest.approx([1 + 0.9 * 5.6, 5.6, 3 + 0.9 * 8])
    assert advantage.flatten().tolist() == pytest.approx([1 + 0.9 * 5.6 - 5, 0.0, 3 + 0.9 * 8 - 4])


def test_a_rollout_that_ends_while_idle_bootstraps_from_the_idle_observation():
    """Row 0 decides, row 1 is idle, and the rollout is over: what comes later is the value of the
    last observation, 8."""
    assert gae([1.0, 2.0], [5.0, 999.0, 8.0], idle=[1])[0] == pytest.approx(
        1 + 0.9 * (2 + 0.9 * 8) - 5
    )


def test_masked_mean_divides_by_the_number_of_valid_entries():
    x, mask = torch.tensor([1.0, 100.0, 3.0, 100.0]), torch.tensor([True, False, True, False])
    assert masked_mean(x, mask) == 2.0
    assert masked_mean(x, torch.zeros(4, dtype=torch.bool)) == 0.0


def test_standardise_ignores_invalid_rows():
    x, mask = torch.tensor([1.0, 1e6, 3.0]), torch.tensor([True, False, True])
    assert standardise(x, mask).tolist() == pytest.approx([-1.0, 0.0, 1.0], abs=1e-5)


def test_explained_variance():
    mask = torch.ones(4, dtype=torch.bool)
    target = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert explained_variance(target, target, mask) == 1.0
    assert explained_variance(torch.full((4,), 7.0), target, mask) == pytest.approx(0.0)
    assert explained_variance(-target, target, mask) < 0


def test_there_is_no_explained_variance_where_nothing_varies():
    some = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert explained_variance(some, some, torch.zeros(4, dtype=torch.bool)).isnan()
    assert explained_variance(some, torch.full((4,), 2.0), torch.ones(4, dtype=torch.bool)).isnan()
