"""Single formulas on numbers made up for the purpose: advantages, distributions, memory cells,
normalisers, schedules."""

from __future__ import annotations

import math
from typing import Any

import torch

from ludus.algorithms.advantage import (
    explained_variance,
    generalised_advantages,
    masked_mean,
    standardise,
)
from ludus.config import PolicyConfig
from ludus.config.schedules import parse
from ludus.examine.selftest import reference
from ludus.examine.selftest.core import close, holds, part, same
from ludus.examine.selftest.scene import Session
from ludus.networks.encoders import TokenTable
from ludus.networks.heads import Actions, ActionSpace, Distribution
from ludus.networks.memory import LSTM
from ludus.networks.normalise import RunningNorm
from ludus.networks.policy import Policy
from ludus.sim.game import Tokens

STEPS, ROWS = 14, 24


@part("advantages", "ludus/algorithms/advantage.py")
def advantages_of_random_episodes(s: Session) -> None:
    """Generalised advantages equal the sum they are defined by, over random rewards, values, ends
    and idle rows."""
    reward, value = torch.randn(STEPS, ROWS), torch.randn(STEPS + 1, ROWS) * 3
    terminated, truncated = torch.rand(STEPS, ROWS) < 0.15, torch.rand(STEPS, ROWS) < 0.15
    truncated &= ~terminated
    idle = (torch.rand(STEPS, ROWS) < 0.15) & ~terminated & ~truncated
    for gamma, lam in ((0.9, 0.8), (1.0, 1.0), (0.5, 0.0), (0.0, 0.9)):
        r, v, ends, cuts, waits = (
            x.to(s.device) for x in (reward, value, terminated, truncated, idle)
        )
        targets = torch.zeros(STEPS, ROWS, device=s.device)
        got = generalised_advantages(
            r, v, ends, cuts, waits, gamma, lam, torch.zeros_like(targets), targets
        )
        expected, returns = reference.advantages(
            reward, value, terminated, truncated, idle, gamma, lam
        )
        close(f"advantages with gamma {gamma} and lambda {lam}", got, expected)
        close(f"returns with gamma {gamma} and lambda {lam}", targets, returns)


@part("advantages", "ludus/algorithms/advantage.py")
def a_constant_reward_has_no_advantage(s: Session) -> None:
    """A value of 1 / (1 − gamma) is exactly right for a reward of 1 for ever, across episodes that
    are cut off too."""
    flags = torch.zeros(9, 1, dtype=torch.bool, device=s.device)
    cut = flags.clone()
    cut[3] = True
    ones, value = (
        torch.ones(9, 1, device=s.device),
        torch.full((10, 1), 1 / (1 - 0.97), device=s.device),
    )
    got = generalised_advantages(ones, value, flags, cut, flags, 0.97, 0.95, torch.zeros_like(ones))
    close("advantages", got, torch.zeros(9, 1), 1e-3)


@part("masked statistics", "ludus/algorithms/advantage.py")
def means_and_deviations_leave_invalid_rows_out(s: Session) -> None:
    """Means, deviations and explained variance are over the rows that count, as if the others were
    not there."""
    x, y, mask = torch.randn(60), torch.randn(60), torch.rand(60) < 0.6
    x[~mask], y[~mask] = 1e6, -1e6
    kept, other = x[mask].double(), y[mask].double()
    close("masked mean", masked_mean(x, mask), kept.mean())
    close("mean of nothing", masked_mean(x, torch.zeros_like(mask)), 0.0)
    close(
        "standardised",
        standardise(x, mask)[mask],
        (kept - kept.mean()) / kept.std(unbiased=False),
        1e-3,
    )
    holds("invalid rows are not 0 after standardising", not bool(standardise(x, mask)[~mask].any()))
    explained = 1 - (other - kept).var(unbiased=False) / other.var(unbiased=False)
    close("explained variance", explained_variance(x, y, mask), explained, 1e-3)


@part("log-probabilities", "ludus/networks/heads.py")
def log_probabilities_and_entropies_of_mixed_actions(s: Session) -> None:
    """Log-probability and entropy of continuous (squashed), binary and chosen actions together,
    with and without masks."""
    for own_std in (False, True):
        space = ActionSpace(2, 2, (3, 2), (0, 1), (2, 5), state_dependent_std=own_std)
        head = torch.randn(40, space.num_parameters)
        if own_std:
            # the entropy is exact to a thousandth for deviations up to 1
            head[:, 2:4] = head[:, 2:4].clamp(max=0.0)
        log_std = torch.tensor([-0.7, 0.0])
        mask = torch.rand(40, 7) < 0.7
        mask[:, [2, 5]] = True
        for allowed in (None, mask):
            d = Distribution(
                space,
                head.to(s.device),
                log_std.to(s.device),
                None if allowed is None else allowed.to(s.device),
            )
            a = Actions(*(x.cpu() for x in d.sample()))
            got = d.log_prob(Actions(*(x.to(s.device) for x in a)))
            expected = reference.distribution(space, head.double(), log_std.double(), allowed, *a)
            close("log-probability", got, expected.log_prob, 1e-3)
            close("entropy", d.entropy(), expected.entropy, 5e-3)


@part("log-probabilities", "ludus/networks/heads.py")
def squashed_density_is_a_density(s: Session) -> None:
    """The density of a squashed action, summed over the whole range of the action, is 1; far out it
    stays exact."""
    raw = torch.linspace(-9, 9, 8001)
    nothing = torch.zeros(len(raw), 0)
    d = Distribution(
        ActionSpace(1, 0, ()), torch.full((len(raw), 1), 0.4), torch.tensor([-0.3]), None
    )
    log_p = d.log_prob(Actions(raw.unsqueeze(1), nothing, nothing)).double()
    width = (1 - torch.tanh(raw.double()) ** 2) * (raw[1] - raw[0]).double()
    close("the density's sum", (log_p.exp() * width).sum(), 1.0, 1e-3)
    far = Distribution(ActionSpace(1, 0, ()), torch.zeros(1, 1), torch.zeros(1), None)
    told = far.log_prob(Actions(torch.tensor([[20.0]]), nothing[:1], nothing[:1]))
    close(
        "log-probability at 20",
        told,
        [-0.5 * (400 + math.log(2 * math.pi)) - (2 * math.log(2) - 40)],
        1e-5,
    )


@part("sampling", "ludus/networks/heads.py")
def samples_come_as_often_as_their_probability(s: Session) -> None:
    """Sampled keys and choices come up as often as their probability says, forbidden ones never;
    greedy takes the likeliest."""
    count, space = 40_000, ActionSpace(1, 1, (3,), (-1,), (0,))
    head = torch.tensor([0.4, 1.0, 0.0, 1.0, 2.0], device=s.device).expand(count, 5)
    for mask in (None, torch.tensor([True, True, False], device=s.device).expand(count, 3)):
        d = Distribution(space, head, torch.tensor([-1.0], device=s.device), mask)
        a = d.sample()
        logits = torch.tensor([0.0, 1.0, 2.0 if mask is None else -math.inf])
        shares = torch.bincount(a.choices[:, 0].long().cpu(), minlength=3) / count
        close("shares of the options", shares, torch.softmax(logits, 0), 0.015)
        close("share of a key", a.binary.float().mean(), 1 / (1 + math.exp(-1.0)), 0.015)
        close("mean of what is squashed", a.raw.mean(), 0.4, 0.015)
        close("its deviation", a.raw.std(), math.exp(-1.0), 0.015)
        best = d.greedy()
        same("the greedy choice", best.choices[0, 0], 2 if mask is None else 1)
        same("the greedy key", best.binary[0, 0], 1)
        close("the greedy continuous action", best.continuous[0, 0], math.tanh(0.4))


@part("memory", "ludus/networks/memory.py")
def lstm_and_its_gradients_are_torchs(s: Session) -> None:
    """The LSTM's outputs, last state and all gradients equal those of torch's own, whose gates
    stand in another order."""
    mine, theirs = LSTM(5, 7).double(), torch.nn.LSTM(5, 7).double()
    other: Any = theirs
    order = torch.cat([torch.arange(0, 14), torch.arange(21, 28), torch.arange(14, 21)])
    with torch.no_grad():
        for a, b in (
            (other.weight_ih_l0, mine.input_weight),
            (other.weight_hh_l0, mine.hidden_weight),
            (other.bias_ih_l0, mine.bias),
        ):
            b.add_(0.3 * torch.randn_like(b))
            a.copy_(b[order])
        other.bias_hh_l0.zero_()
    x, state = torch.randn(9, 3, 5, dtype=torch.float64), torch.randn(3, 14, dtype=torch.float64)
    x.requires_grad_()
    weigh, weigh_state = (
        torch.randn(9, 3, 7, dtype=torch.float64),
        torch.randn(3, 14, dtype=torch.float64),
    )
    out, after = mine(x, state, torch.zeros(9, 3, dtype=torch.bool))
    ((out * weigh).sum() + (after * weigh_state).sum()).backward()
    mine_x, x.grad = x.grad, None
    expected, (h, c) = theirs(x, (state[None, :, :7].contiguous(), state[None, :, 7:].contiguous()))
    ((expected * weigh).sum() + (torch.cat([h[0], c[0]], -1) * weigh_state).sum()).backward()
    close("outputs", out, expected, 1e-9)
    close("the last state", after, torch.cat([h[0], c[0]], -1), 1e-9)
    close("the gradient of inputs", mine_x, x.grad, 1e-9)
    for name, ours, its in (
        ("input weights", mine.input_weight, other.weight_ih_l0),
        ("hidden weights", mine.hidden_weight, other.weight_hh_l0),
        ("biases", mine.bias, other.bias_ih_l0),
    ):
        assert ours.grad is not None
        close(f"the gradient of {name}", ours.grad[order], its.grad, 1e-9)


@part("memory", "ludus/networks/memory.py")
def a_start_inside_a_sequence_is_a_fresh_memory(s: Session) -> None:
    """Where an episode starts, the memory begins at zero, in the middle of a sequence too, and no
    gradient passes."""
    memory = LSTM(4, 6)
    x, state = torch.randn(8, 2, 4, requires_grad=True), torch.randn(2, 12)
    starts = torch.zeros(8, 2, dtype=torch.bool)
    starts[3, 1] = True
    out, _ = memory(x, state, starts)
    fresh, _ = memory(x[3:, 1:], torch.zeros(1, 12), torch.zeros(5, 1, dtype=torch.bool))
    whole, _ = memory(x, state, torch.zeros(8, 2, dtype=torch.bool))
    close("outputs after the start", out[3:, 1:], fresh, 1e-5)
    close("outputs of the row without a start", out[:, 0], whole[:, 0], 1e-5)
    (gradient,) = torch.autograd.grad(out[3:, 1].sum(), x)
    holds("a gradient passes through an episode's start", not bool(gradient[:3, 1].any()))
    holds("no gradient passes within an episode", bool(gradient[3:, 1].any()))


@part("normaliser", "ludus/networks/normalise.py")
def running_statistics_are_those_of_all_rows(s: Session) -> None:
    """Running mean and variance over several batches are those of all their valid rows together,
    and are applied so."""
    norm = RunningNorm(3)
    parts = [torch.randn(n, 3) * 4 + 20 for n in (5, 1, 200)]
    kept = [torch.rand(len(p)) < 0.7 for p in parts]
    kept[0][0] = True
    for p, valid in zip(parts, kept, strict=True):
        norm.update(torch.where(valid.unsqueeze(1), p, 1e5), valid)
    norm.update(torch.full((4, 3), 1e5), torch.zeros(4, dtype=torch.bool))
    seen = torch.cat([p[valid] for p, valid in zip(parts, kept, strict=True)]).double()
    close("mean", norm.mean, seen.mean(0), 1e-3)
    close("variance", norm.var, seen.var(0, unbiased=False), 1e-3)
    close("count", norm.count, len(seen))
    x = torch.tensor([[20.0, 1e4, -1e4]])
    applied = ((x - seen.mean(0)) / seen.std(0, unbiased=False)).clamp(-10, 10)
    for mode in (norm.train(), norm.eval()):
        close("a normalised row", mode(x), applied, 1e-3)


@part("value normaliser", "ludus/networks/policy.py")
def value_units_go_there_and_back(s: Session) -> None:
    """Values in units of reward stay what they were when the statistics of their targets move, and
    convert there and back."""
    policy = Policy(["a", "b", "c", "d"], ActionSpace(1, 0, ()), PolicyConfig(hidden=(8,)))
    seen, starts = torch.randn(1, 6, 4), torch.zeros(1, 6, dtype=torch.bool)

    def values() -> torch.Tensor:
        return policy.real_value(policy(seen, policy.initial_state(6), starts).value)

    before = values()
    for scale in (1.0, 100.0):
        policy.update_value_norm(
            torch.randn(50) * scale + 3 * scale, torch.ones(50, dtype=torch.bool)
        )
        close("values after the statistics moved", values(), before, 1e-2)
    target = torch.tensor([5.0, -7.0])
    close("a value there and back", policy.real_value(policy.normal_value(target)), target, 1e-3)
    holds(
        "normalised targets are not of unit size",
        0.5 < float(policy.normal_value(torch.tensor(300.0))) < 3,
    )


@part("initial policy", "ludus/networks/policy.py")
def a_policy_starts_as_configured(s: Session) -> None:
    """A new policy acts nearly at random around the configured means, spreads (within limits) and
    keys, does not hear quiet inputs, and keeps what its memory holds."""
    space = ActionSpace(2, 1, (3,), continuous_names=("go", "turn"))
    config = PolicyConfig(
        hidden=(16,),
        initial_log_std=-0.7,
        initial_log_std_of={"turn": -1.5},
        initial_mean_of={"go": 1.0},
        initial_key_logit=-1.0,
        quiet_inputs=("ray",),
    )
    policy = Policy(["speed", "ray0", "ray1"], space, config)
    seen, starts = torch.randn(1, 200, 3), torch.ones(1, 200, dtype=torch.bool)
    output = policy(seen, policy.initial_state(200), starts)
    close("spreads", output.distribution.log_std, [-0.7, -1.5])
    close("means", output.distribution.mean[0].mean(0), [1.0, 0.0], 0.1)
    close("keys", output.distribution.key_logits.mean(), -1.0, 0.1)
    close("choices", output.distribution.choice_log_probs[0].exp().mean((0, 1)), [1 / 3] * 3, 0.05)
    for wild, limited in ((9.0, 2.0), (-9.0, -5.0)):
        spread = Distribution(
            space, torch.zeros(space.num_parameters), torch.full((2,), wild), None
        ).log_std
        close(f"a spread of exp({wild:g})", spread, [limited] * 2)
    seen[..., 1:] = 7.0
    close(
        "values with other quiet inputs",
        policy(seen, policy.initial_state(200), starts).value,
        output.value,
        1e-5,
    )
    close(
        "biases of a new memory: input, forget, output, cell",
        LSTM(3, 2).bias,
        [0, 0, 1, 1, 0, 0, 0, 0],
    )


@part("schedules", "ludus/config/schedules.py")
def schedules_are_read_as_written(s: Session) -> None:
    """Constants, straight lines, cosines and points, at their ends and in between."""
    half = 0.5 - 0.5 * math.cos(math.pi / 4)
    for text, share, value in (
        (0.3, 0.9, 0.3),
        ("1 -> 0", 0.25, 0.75),
        ("1 -> 0 @ 0.5", 0.25, 0.5),
        ("1 -> 0 @ 0.5", 0.9, 0.0),
        ("cosine 1 -> 0", 0.25, 1 - half),
        ("0:0, 0.5:2, 1:1", 0.25, 1.0),
        ("0:0, 0.5:2, 1:1", 0.75, 1.5),
        ("1 -> 0", 2.0, 0.0),
    ):
        close(f"'{text}' at {share}", parse(text)(share), value, 1e-9)


@part("tokens", "ludus/networks/encoders.py")
def tokens_add_up(s: Session) -> None:
    """What is seen as tokens is the sum of the table's rows of their cells and features, each as
    often as log2(1 + amount) says."""
    kind, count = Tokens(cells=5, features=3), 4
    table = TokenTable(kind, 6).to(s.device)
    seen = torch.zeros(2, 3, count, 3, dtype=torch.uint8)
    expected = torch.zeros(2, 3, 6, dtype=torch.float64)
    rows = table.table.detach().cpu().double()
    for t in range(2):
        for r in range(3):
            for k in range(min(count, 1 + t + r)):  # padding comes last
                cell, feature, amount = (2 * k + t) % 5, (k + r) % 3, 1 + 7 * k + r
                seen[t, r, k] = torch.tensor([cell, feature, amount], dtype=torch.uint8)
                expected[t, r] += math.log2(1 + amount) * rows[cell * kind.features + feature]
    close("the sum of tokens", table(seen.to(s.device)), expected)


CHECKS = (
    advantages_of_random_episodes,
    a_constant_reward_has_no_advantage,
    means_and_deviations_leave_invalid_rows_out,
    log_probabilities_and_entropies_of_mixed_actions,
    squashed_density_is_a_density,
    samples_come_as_often_as_their_probability,
    lstm_and_its_gradients_are_torchs,
    a_start_inside_a_sequence_is_a_fresh_memory,
    running_statistics_are_those_of_all_rows,
    value_units_go_there_and_back,
    a_policy_starts_as_configured,
    schedules_are_read_as_written,
    tokens_add_up,
)
