"""What a strategy encoder does while it learns: how far its vectors are apart, where it looks, how
fast its meaning moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ludus.networks.history import HISTORY

if TYPE_CHECKING:
    from ludus.networks.strategy import StrategyEncoder

NAMES = ("vector_mean", "vector_std", "attention_entropy", "drift")


class StrategyMetrics:
    """Looks at the same windows before and after an update. The values stay on the device until
    they are read."""

    def __init__(self, encoder: StrategyEncoder) -> None:
        self.encoder = encoder
        self.values = torch.zeros(len(NAMES), device=encoder.into.weight.device)
        self.vector: Tensor | None = None  # before the update

    @torch.no_grad()
    def before(self, seen: Mapping[str, Tensor]) -> None:
        """Before the update: `seen` of some rows of one step."""
        vector, attention = self.encoder.recognise(seen[HISTORY])
        vector, there = vector.float(), attention > 0
        if self.vector is None:
            self.vector = vector.clone()
        self.vector.copy_(vector)
        entropy = -(attention * attention.clamp(min=1e-12).log()).sum(-1)
        # of a single step the entropy is 0 whatever the encoder does
        most = there.sum(-1).clamp(min=2).float().log()
        several = (there.sum(-1) > 1).float()
        share = (entropy / most * several).sum() / several.sum().clamp(min=1)
        spread = vector.flatten(0, 1).std(0, unbiased=False).mean()
        self.values[:3] = torch.stack([vector.mean(), spread, share])

    @torch.no_grad()
    def after(self, seen: Mapping[str, Tensor]) -> None:
        """After the update: how far the vectors of the same windows moved, in units of their
        spread."""
        assert self.vector is not None
        moved = self.encoder.recognise(seen[HISTORY]).vector.float() - self.vector
        self.values[3] = moved.square().mean().sqrt() / self.values[1].clamp(min=1e-6)

    def read(self) -> dict[str, float]:
        return dict(zip(NAMES, self.values.tolist(), strict=True))
