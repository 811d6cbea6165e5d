"""Predicting the next observation from the features (ppo.auxiliary), so that the memory comes to
hold what the next steps depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ludus.networks.network import Auxiliary
from ludus.networks.policy import Output, Policy


class NextObservation(Auxiliary):
    """Predicts the next observation of the chunk where it belongs to the same episode."""

    name = "auxiliary"

    def __init__(self, policy: Policy, weight: float) -> None:
        super().__init__()
        self.weight, self.entries = weight, policy.entries
        self.predictor = nn.Linear(policy.actor.outputs, policy.entries)
        self.prepared = policy.observation_norm.forward  # not a part of this module

    def forward(
        self, output: Output, rows: Mapping[str, Tensor], weight: Tensor, rollout: Any
    ) -> Tensor:
        following = self.prepared(rows["observation"][1:].float())[..., : self.entries]
        same_episode = weight[:-1] * ~rows["starts"][1:]
        error = (self.predictor(output.features[:-1].float()) - following).square().mean(-1)
        return (error * same_episode).sum()
