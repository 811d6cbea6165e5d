"""Advantages. Axes: everything is [time, rows], values [time + 1, rows]."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.no_grad()
def generalised_advantages(
    reward: Tensor,
    value: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    idle: Tensor,
    gamma: float | Tensor,
    gae_lambda: float,
    out: Tensor,
) -> Tensor:
    """GAE(λ) in units of reward.

    A *terminated* row has no future. A *truncated* row has one, the value of the true final observation, which is the next
    row's observation (the row after it is the reset row, which is not valid and learns nothing). Both cut the sum.
    An *idle* row (alive, but without a decision) has a value nobody trains: it is worth what follows it.
    """
    goes_on = gamma * (~terminated).to(value.dtype)
    carries = gae_lambda * goes_on * ~truncated
    running = torch.zeros_like(value[0])
    following = value[-1]
    for t in reversed(range(reward.shape[0])):
        worth = torch.addcmul(reward[t], goes_on[t], following)
        following = torch.where(idle[t], worth, value[t])
        running = torch.addcmul(worth - following, carries[t], running, out=out[t])
    return out


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """The mean over entries where the mask is true; 0 if there are none."""
    weight = mask.to(x.dtype)
    return (x * weight).sum() / weight.sum().clamp(min=1.0)


@torch.no_grad()
def standardise(x: Tensor, mask: Tensor) -> Tensor:
    """x to mean 0 and deviation 1 over the masked entries; 0 elsewhere."""
    mean = masked_mean(x, mask)
    std = masked_mean((x - mean).square(), mask).sqrt()
    return torch.where(mask, (x - mean) / (std + 1e-8), 0.0)


@torch.no_grad()
def explained_variance(prediction: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """1: the value predicts returns perfectly; 0: no better than their mean; below 0: worse."""
    mean = masked_mean(target, mask)
    variance = masked_mean((target - mean).square(), mask)
    error = target - prediction
    error_mean = masked_mean(error, mask)
    return 1.0 - masked_mean((error - error_mean).square(), mask) / variance.clamp(min=1e-12)
