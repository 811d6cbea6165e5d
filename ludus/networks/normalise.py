"""Running statistics: of observations, and of value targets. Only valid rows enter; frozen in
evaluation."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class RunningNorm(nn.Module):
    """Mean and variance of everything seen so far, per entry, by the parallel form of Welford's
    update."""

    mean: Tensor
    var: Tensor
    count: Tensor

    def __init__(self, entries: int, limit: float = 10.0) -> None:
        super().__init__()
        self.limit = limit
        self.register_buffer("mean", torch.zeros(entries))
        self.register_buffer("var", torch.ones(entries))
        self.register_buffer("count", torch.zeros(()))

    @torch.no_grad()
    def update(self, x: Tensor, valid: Tensor) -> None:
        """x [rows, entries], valid [rows] (bool). No row valid: nothing changes."""
        weight = valid.to(torch.float32)
        n = weight.sum()
        safe = n.clamp(min=1.0)
        # around the old mean: no loss of digits
        x = torch.where(valid.unsqueeze(-1), x.float() - self.mean, 0.0)
        delta = weight @ x / safe
        # two passes: the difference of two large squares would leave nothing of a small variance
        # far from 0
        x = torch.where(valid.unsqueeze(-1), x - delta, 0.0)
        rest = weight @ x / safe
        var = weight @ x.square() / safe - rest.square()
        delta = delta + rest
        total = self.count + n
        share = n / total.clamp(min=1.0)
        new_mean = self.mean + delta * share
        new_var = (
            self.var * (1 - share) + var.clamp(min=0) * share + delta.square() * share * (1 - share)
        )
        self.mean.copy_(torch.where(n > 0, new_mean, self.mean))
        self.var.copy_(torch.where(n > 0, new_var, self.var))
        self.count.copy_(total)

    @property
    def std(self) -> Tensor:
        return (self.var + 1e-8).sqrt()

    def forward(self, x: Tensor, entries: Tensor | None = None) -> Tensor:
        """`entries`: which ones x consists of (default: all)."""
        mean, std = (
            (self.mean, self.std) if entries is None else (self.mean[entries], self.std[entries])
        )
        return ((x - mean) / std).clamp(-self.limit, self.limit)
