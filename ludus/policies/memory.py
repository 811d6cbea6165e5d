"""Memory: none or LSTM. Every policy has a state tensor [rows, size], possibly of size 0, so nothing is retrofitted.

Axes: x_lrf is [steps, rows, features]. `starts` [steps, rows] marks first observations of an episode: the state is zeroed
before they are processed, while acting and while learning alike.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class NoMemory(nn.Module):
    state_size = 0

    def forward(self, x_lrf: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        return x_lrf, state


class LSTM(nn.Module):
    """An LSTM layer that can be reset inside a sequence (torch's own cannot). The state is [hidden, cell] side by side."""

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.state_size = 2 * size
        self.input_weight = nn.Parameter(torch.empty(4 * size, inputs))
        self.hidden_weight = nn.Parameter(torch.empty(4 * size, size))
        self.bias = nn.Parameter(torch.zeros(4 * size))
        nn.init.orthogonal_(self.input_weight)
        nn.init.orthogonal_(self.hidden_weight)
        with torch.no_grad():
            self.bias[size : 2 * size] = 1.0  # remember by default

    def forward(self, x_lrf: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [steps, rows, size] and the state after the last step. Gates in the order input, forget, cell, output."""
        from_input = torch.nn.functional.linear(x_lrf, self.input_weight, self.bias)
        hidden, cell = state[:, : self.size], state[:, self.size :]
        keep = (~starts).to(state.dtype).unsqueeze(-1)
        outputs = []
        for t in range(x_lrf.shape[0]):
            hidden, cell = hidden * keep[t], cell * keep[t]
            gates = from_input[t] + torch.nn.functional.linear(hidden.to(from_input.dtype), self.hidden_weight)
            gate_input, gate_forget, candidate, gate_output = gates.float().chunk(4, -1)
            cell = torch.sigmoid(gate_forget) * cell + torch.sigmoid(gate_input) * torch.tanh(candidate)
            hidden = torch.sigmoid(gate_output) * torch.tanh(cell)
            outputs.append(hidden)
        return torch.stack(outputs), torch.cat([hidden, cell], -1)


def orthogonal(layer: nn.Linear, gain: float) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


ROOT_2 = math.sqrt(2)
