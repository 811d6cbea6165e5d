"""The standard network: hidden layers. Pictures, tokens and sets join in the first one."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ludus.config import PolicyConfig
from ludus.networks.encoders import Part, make_encoder
from ludus.networks.memory import ROOT_2, orthogonal
from ludus.networks.network import Network, Observation
from ludus.networks.sets import SetEncoder, sets_of

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "silu": nn.SiLU}


class StandardNetwork(Network):
    alone: Tensor

    def __init__(self, observation: Observation, config: PolicyConfig) -> None:
        super().__init__()
        inputs, units = observation.size, config.hidden[0] if config.hidden else 0
        sets = sets_of(observation.names, config.sets)
        self.seen = nn.ModuleDict(
            {name: self.make_encoder(part, units) for name, part in observation.seen.items()}
        )
        self.sets = nn.ModuleDict(
            {n: SetEncoder(m, units, ACTIVATIONS[config.activation]()) for n, m in sets.items()}
        )
        if sets:
            alone = torch.ones(inputs)
            alone[[place for m in sets.values() for member in m.places for place in member]] = 0.0
            self.register_buffer("alone", alone, persistent=False)
        layers: list[nn.Module] = []
        for size in config.hidden:
            layers += [
                orthogonal(nn.Linear(inputs, size), ROOT_2),
                ACTIVATIONS[config.activation](),
            ]
            inputs = size
        self.encoder = nn.Sequential(*layers)
        self.outputs = inputs

    def make_encoder(self, part: Part, units: int) -> nn.Module:
        return make_encoder(part, units)

    @property
    def input_weight(self) -> Tensor | None:
        return next(self.encoder.parameters(), None)

    def forward(
        self, numbers: Tensor, seen: Mapping[str, Tensor]
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        return self.features(numbers, seen, {})

    def features(
        self, numbers: Tensor, seen: Mapping[str, Tensor], joining: Mapping[str, Tensor]
    ) -> Tensor:
        """`joining`: what joins in the first hidden layer and is known already, by name."""
        if not (self.seen or self.sets):
            out: Tensor = self.encoder(numbers)
            return out
        hidden = self.encoder[0](numbers * self.alone.to(numbers.dtype) if self.sets else numbers)
        for members in self.sets.values():
            hidden = hidden + members(numbers)
        for name, encoder in self.seen.items():
            hidden = hidden + (joining[name] if name in joining else encoder(seen[name]))
        out = self.encoder[1:](hidden)
        return out
