"""Foretelling which keys the opponent presses (learn.next_keys), so that the strategy vector comes
to hold how it plays.

The vector of one step meets the observation of a later step of the same episode, and the keys of
that later step are to be told from both. The observation shows the situation, so the vector is
worth something only for what lasts: the opponent's way to answer it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

UNITS = 64


class KeyPredictor(nn.Module):
    """Vector […, vector] and observation […, entries] → how likely each key is pressed, as logits
    […, keys]."""

    def __init__(self, inputs: int, keys: int) -> None:
        """`inputs`: entries of the vector and of the observation together."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, UNITS),
            nn.SiLU(),
            nn.Linear(UNITS, UNITS),
            nn.SiLU(),
            nn.Linear(UNITS, keys),
        )

    def forward(self, vector: Tensor, observation: Tensor) -> Tensor:
        logits: Tensor = self.layers(torch.cat([vector, observation], -1).float())
        return logits


def later_steps(ends: Tensor, share: Tensor) -> Tensor:
    """For every step [T, R] one of those from it to the last of its episode in the rollout: that
    which lies `share` [T, R], from 0 up to but not 1, of the way. `ends`: last steps of
    episodes."""
    steps = len(ends)
    left = torch.empty_like(share)  # how many follow
    left[-1] = 0.0
    for t in range(steps - 2, -1, -1):
        left[t] = torch.where(ends[t], 0.0, left[t + 1] + 1.0)
    now = torch.arange(steps, device=ends.device).unsqueeze(1)
    return now + (share * (left + 1.0)).long()
