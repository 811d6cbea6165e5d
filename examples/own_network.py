"""A network of one's own: a file anywhere on the Python path.

ludus train pursuit --policy.network own_network:Gated --policy.gated.units 96
"""

from dataclasses import dataclass

import torch
from torch import nn

import ludus


@dataclass(kw_only=True)
class GatedConfig(ludus.NetworkConfig):
    units: int = 64
    """Units of the layer."""


class Gated(ludus.Network):
    """One layer whose units are opened and closed by another."""

    settings = GatedConfig

    def __init__(self, observation, config):
        super().__init__()
        self.outputs = config.network_settings.units
        self.values = nn.Linear(observation.size, self.outputs)
        self.gates = nn.Linear(observation.size, self.outputs)

    def forward(self, numbers, seen):
        return torch.tanh(self.values(numbers)) * torch.sigmoid(self.gates(numbers))
