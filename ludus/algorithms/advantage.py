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
    target: Tensor | None = None,
) -> Tensor:
    """GAE(λ) in units of reward, into `out`; into `target` the return that each row's value should
    predict.

    A *terminated* row has no future. A *truncated* row has one, the value of the true final
    observation, which is the next row's observation (the row after it is the reset row, which is
    not valid and learns nothing). Both cut the sum. An *idle* row (alive, but without a decision)
    is worth what follows it, so that a decision sees exactly what the idle steps after it bring.
    Its own value is used only where the rollout ends in the middle of them: as the bootstrap, like
    any other.
    """
    goes_on = gamma * (~terminated).to(value.dtype)
    carries = gae_lambda * goes_on * ~truncated
    running = torch.zeros_like(value[0])
    following = value[-1]
    for t in reversed(range(reward.shape[0])):
        worth = torch.addcmul(reward[t], goes_on[t], following)
        following = torch.where(idle[t], worth, value[t])
        running = torch.addcmul(worth - following, carries[t], running, out=out[t])
        if target is not None:
            torch.add(running, following, out=target[t])
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
    """1: the value predicts returns perfectly; 0: no better than their mean; below 0: worse. NaN
    where returns do not vary, or there are none: then there is nothing to explain."""
    mean = masked_mean(target, mask)
    variance = masked_mean((target - mean).square(), mask)
    error = target - prediction
    error_mean = masked_mean(error, mask)
    unexplained = masked_mean((error - error_mean).square(), mask) / variance.clamp(min=1e-12)
    return torch.where(variance > 0, 1.0 - unexplained, float("nan"))
