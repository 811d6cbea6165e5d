"""Predicting which keys the opponent presses (policy.strategy.next_keys), so that the strategy
vector comes to hold how it plays.

The vector of one step meets the observation of a later step of the same episode, and the keys of
that later step are to be predicted from both. The observation shows the situation, so the vector is
worth something only for what lasts: the opponent's way to answer it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ludus.networks.network import Auxiliary
from ludus.networks.policy import Output, Policy
from ludus.protocols import Batch

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


class NextKeys(Auxiliary):
    """Predicts the opponent's keys in a later step, from the vector of now and the observation of
    then."""

    name = "next_keys"

    def __init__(self, policy: Policy, vector: int, weight: float) -> None:
        super().__init__()
        self.weight = weight
        self.predictor = KeyPredictor(vector + policy.entries, policy.space.binary)
        # not a part of this module: its weights are the policy's
        self.prepared, self.entries = policy.prepared, policy.entries

    def record(self, batch: Batch, agents: slice) -> dict[str, Tensor]:
        """Whoever pressed them: the policy, a snapshot or a bot."""
        return {"opponent_keys": batch.tensor("binary")[:, agents].flip(1).flatten(0, 1)}

    def prepare(self, rollout: Any) -> dict[str, Tensor]:
        """`later`: step · rows + row of what is predicted."""
        ends = rollout.terminated | rollout.truncated
        later = later_steps(ends, torch.rand_like(rollout.reward))
        rows = ends.shape[1]
        return {"later": later * rows + torch.arange(rows, device=later.device)}

    def forward(
        self, output: Output, rows: Mapping[str, Tensor], weight: Tensor, rollout: Any
    ) -> Tensor:
        later = rows["later"]
        observed = self.prepared(rollout.observation.flatten(0, 1)[later])
        guess = self.predictor(output.notes["vector"], observed[..., : self.entries])
        pressed = rollout.recorded["opponent_keys"].flatten(0, 1)[later].float()
        cost = nn.functional.binary_cross_entropy_with_logits(
            guess, pressed, reduction="none"
        ).mean(-1)
        return (cost * weight * rollout.valid.flatten()[later]).sum()


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
