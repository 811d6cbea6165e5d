"""The same mathematics a second time, as plainly as possible and in double precision: what the
checks compare with.

Nothing here is shared with the learning code. Axes: L steps, R rows; parameters are a policy's
state dict by name.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

Parameters = dict[str, Tensor]


def doubles(module: torch.nn.Module, grad: bool = False) -> Parameters:
    """A module's parameters and buffers in double precision, cut loose from it."""
    named = {**dict(module.named_buffers()), **dict(module.named_parameters())}
    learned = {n for n, p in module.named_parameters() if p.requires_grad}
    return {
        n: (
            t.detach().cpu().double().clone().requires_grad_(grad and n in learned)
            if t.is_floating_point()
            else t.detach().cpu()
        )
        for n, t in named.items()
    }


# -- networks --------------------------------------------------------------------------------------

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "silu": lambda x: x * torch.sigmoid(x)}


def normal(p: Parameters, x: Tensor) -> Tensor:
    """An observation less its running mean, over its deviation, cut at ten."""
    return ((x - p["observation_norm.mean"]) / (p["observation_norm.var"] + 1e-8).sqrt()).clamp(
        -10, 10
    )


def padded(x: Tensor, size: int) -> Tensor:
    return torch.cat([x, x.new_zeros(*x.shape[:-1], size - x.shape[-1])], -1)


def trunk(
    p: Parameters,
    prefix: str,
    x: Tensor,
    extra: Tensor | None,
    config: Any,
    state: Tensor,
    starts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Hidden layers, then the memory step by step: zero where an episode starts. `extra` joins the
    first layer."""
    for i in range(len(config.hidden)):
        layer = f"{prefix}network.encoder.{2 * i}"
        x = x @ p[f"{layer}.weight"].T + p[f"{layer}.bias"]
        if i == 0 and extra is not None:
            x = x + extra
        x = ACTIVATIONS[config.activation](x)
    if config.memory == "none":
        return x, state
    size = config.memory_size
    hidden, cell = state[:, :size], state[:, size:]
    outputs = []
    for t in range(len(x)):
        fresh = starts[t].unsqueeze(-1)
        hidden, cell = torch.where(fresh, 0.0, hidden), torch.where(fresh, 0.0, cell)
        gates = (
            x[t] @ p[f"{prefix}memory.input_weight"].T
            + hidden @ p[f"{prefix}memory.hidden_weight"].T
            + p[f"{prefix}memory.bias"]
        )
        enters, stays, leaves, new = gates.split(size, -1)
        cell = torch.sigmoid(stays) * cell + torch.sigmoid(enters) * torch.tanh(new)
        hidden = torch.sigmoid(leaves) * torch.tanh(cell)
        outputs.append(hidden)
    return torch.stack(outputs), torch.cat([hidden, cell], -1)


class Seen(NamedTuple):
    """What a policy says about some steps."""

    head: Tensor  # [L, R, parameters of the action distribution]
    value: Tensor  # [L, R] normalised
    state: Tensor
    features: Tensor


def policy(
    p: Parameters, config: Any, obs: Tensor, state: Tensor, starts: Tensor, parameters: int
) -> Seen:
    x = padded(obs, p["observation_norm.mean"].shape[0])
    if config.normalise_observation:
        x = normal(p, x)
    split = 2 * config.memory_size if config.memory == "lstm" else 0
    features, new = trunk(p, "actor.", x, None, config, state[:, :split], starts)
    of_value = features
    if config.separate_value:
        of_value, critic = trunk(p, "critic.", x, None, config, state[:, split:], starts)
        new = torch.cat([new, critic], -1)
    head = features @ p["action_head.weight"].T + p["action_head.bias"]
    value = of_value @ p["value_head.weight"].T + p["value_head.bias"]
    return Seen(head[..., :parameters], value[..., 0], new, features)


def real(p: Parameters, value: Tensor) -> Tensor:
    return value * (p["value_norm.var"] + 1e-8).sqrt() + p["value_norm.mean"]


def network(
    p: Parameters,
    prefix: str,
    config: Any,
    rainbow: Any,
    x: Tensor,
    pictures: Tensor | None,
    shares: Tensor,
) -> Tensor:
    """Values [B, quantiles, actions] of what was observed, x [B, entries] normalised."""
    extra = None
    if pictures is not None:
        extra = (pictures.double().flatten(1) / 255) @ p[
            f"{prefix}actor.network.seen.picture.into.weight"
        ].T
    nothing = x.new_zeros(len(x), 0)
    flags = torch.zeros(1, len(x), dtype=torch.bool)
    features = trunk(
        p,
        f"{prefix}actor.",
        x.unsqueeze(0),
        None if extra is None else extra.unsqueeze(0),
        config,
        nothing,
        flags,
    )[0][0]
    features = features.unsqueeze(1)
    if rainbow.iqn:
        count = p[f"{prefix}cosines.layer.weight"].shape[1]
        waves = torch.cos(math.pi * shares.double().unsqueeze(-1) * torch.arange(1, count + 1))
        features = features * torch.relu(
            waves @ p[f"{prefix}cosines.layer.weight"].T + p[f"{prefix}cosines.layer.bias"]
        )

    def stream(name: str) -> Tensor:
        hidden = torch.relu(
            features @ p[f"{prefix}{name}.0.weight"].T + p[f"{prefix}{name}.0.bias"]
        )
        return hidden @ p[f"{prefix}{name}.2.weight"].T + p[f"{prefix}{name}.2.bias"]

    advantage = stream("advantage")
    if not rainbow.dueling:
        return advantage
    return stream("value") + advantage - advantage.mean(-1, keepdim=True)


# -- actions ---------------------------------------------------------------------------------------


class Said(NamedTuple):
    log_prob: Tensor
    entropy: Tensor


def distribution(
    space: Any,
    head: Tensor,
    log_std: Tensor,
    mask: Tensor | None,
    raw: Tensor,
    binary: Tensor,
    choices: Tensor,
) -> Said:
    """Of one continuous action squashed by tanh, one key and one choice, by torch.distributions and
    numerical integration."""
    c = space.continuous
    log_prob, entropy = head.new_zeros(head.shape[:-1]), head.new_zeros(head.shape[:-1])
    at = c
    if space.state_dependent_std:
        log_std, at = head[..., c : 2 * c], 2 * c
    if c:
        log_std = log_std.clamp(-5, 2).expand_as(head[..., :c])
        gauss = torch.distributions.Normal(head[..., :c], log_std.exp())
        log_prob = log_prob + (gauss.log_prob(raw.double()) - slope(raw.double())).sum(-1)
        roots, weights = np.polynomial.hermite.hermgauss(40)
        points = gauss.mean.unsqueeze(-1) + gauss.stddev.unsqueeze(-1) * torch.tensor(
            roots
        ) * math.sqrt(2)
        entropy = entropy + (
            gauss.entropy() + (slope(points) * torch.tensor(weights) / math.sqrt(math.pi)).sum(-1)
        ).sum(-1)
    for i in range(space.binary):
        key = torch.distributions.Bernoulli(logits=head[..., at])
        may = (
            torch.ones_like(key.logits)
            if mask is None or not space.binary_mask_at
            else mask[..., space.binary_mask_at[i]].double()
        )
        log_prob = log_prob + may * key.log_prob(binary[..., i].double())
        entropy = entropy + may * key.entropy()
        at += 1
    for i, options in enumerate(space.choices):
        logits = head[..., at : at + options]
        if mask is not None and space.choice_mask_at:
            first = space.choice_mask_at[i]
            logits = torch.where(mask[..., first : first + options], logits, -1e9)
        pick = torch.distributions.Categorical(logits=logits)
        log_prob, entropy = (
            log_prob + pick.log_prob(choices[..., i].long()),
            entropy + pick.entropy(),
        )
        at += options
    return Said(log_prob, entropy)


def slope(raw: Tensor) -> Tensor:
    """The logarithm of the derivative of tanh, 1 / cosh², in a form that holds for large
    numbers."""
    return 2 * (math.log(2) - raw.abs() - torch.log1p(torch.exp(-2 * raw.abs())))


# -- returns ---------------------------------------------------------------------------------------


def advantages(
    reward: Tensor,
    value: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    idle: Tensor,
    gamma: float,
    lam: float,
) -> tuple[Tensor, Tensor]:
    """Each advantage as the sum it is defined by: discounted one-step errors up to the episode's
    end; and the returns that values should predict: the advantage plus the value, or for an idle
    row plus what follows it."""
    r, v = reward.double().numpy(), value.double().numpy().copy()
    steps, rows = r.shape
    dies, ends, waits = terminated.numpy(), (terminated | truncated).numpy(), idle.numpy()
    out = np.zeros((steps, rows))
    for row in range(rows):
        for t in reversed(range(steps)):  # what an idle row is worth is what follows it
            if waits[t, row]:
                v[t, row] = r[t, row] + (0.0 if dies[t, row] else gamma * v[t + 1, row])
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                future = 0.0 if dies[k, row] else gamma * v[k + 1, row]
                out[t, row] += weight * (r[k, row] + future - v[k, row])
                if ends[k, row]:
                    break
                weight *= gamma * lam
    return torch.from_numpy(out), torch.from_numpy(out + v[:steps])


def merged(p: Parameters, norm: str, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, variance and number of what a normaliser saw before and these rows, through their sums
    and sums of squares."""
    mean, var, count = (p[f"{norm}.{n}"] for n in ("mean", "var", "count"))
    n = float(count)
    total = n + len(rows)
    if total == 0:
        return mean, var, count
    first = (n * mean + rows.sum(0)) / total
    second = (n * (var + mean.square()) + rows.square().sum(0)) / total
    return first, second - first.square(), torch.tensor(total)


# -- optimizers ------------------------------------------------------------------------------------


def clipped(gradients: Parameters, limit: float) -> tuple[Parameters, float]:
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradients.values()))
    scale = min(1.0, limit / (norm + 1e-6)) if limit > 0 else 1.0
    return {n: g * scale for n, g in gradients.items()}, norm


class Adam:
    """Adam with decoupled weight decay (0: plain Adam), written from its paper."""

    def __init__(self, epsilon: float, decay: float = 0.0) -> None:
        self.epsilon, self.decay, self.time = epsilon, decay, 0
        self.mean: Parameters = {}
        self.square: Parameters = {}

    def step(self, p: Parameters, gradients: Parameters, rates: dict[str, float]) -> None:
        self.time += 1
        with torch.no_grad():
            for n, g in gradients.items():
                self.mean[n] = 0.9 * self.mean.get(n, torch.zeros_like(g)) + 0.1 * g
                self.square[n] = (
                    0.999 * self.square.get(n, torch.zeros_like(g)) + 0.001 * g.square()
                )
                mean, square = (
                    self.mean[n] / (1 - 0.9**self.time),
                    self.square[n] / (1 - 0.999**self.time),
                )
                p[n] -= rates[n] * (mean / (square.sqrt() + self.epsilon) + self.decay * p[n])
