"""Memory: none or LSTM. Every policy has a state tensor [rows, size], possibly of size 0, so nothing is retrofitted.

Axes: x_lrf is [steps, rows, features]. `starts` [steps, rows] marks first observations of an episode: the state is zeroed
before they are processed, while acting and while learning alike.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

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
        """Outputs [steps, rows, size] and the state after the last step. Gates in the order input, forget, output, cell."""
        from_input = nn.functional.linear(x_lrf, self.input_weight, self.bias)
        keep = (~starts).to(state.dtype).unsqueeze(-1)
        hidden, cell = state[:, : self.size], state[:, self.size :]
        outputs, cell = _Recurrence.apply(from_input, self.hidden_weight, hidden, cell, keep)
        return outputs, torch.cat([outputs[-1], cell], -1)


class _Recurrence(torch.autograd.Function):
    """The recurrent part, with its backward pass written out: a third of the operations that autograd would record.

    Per step, with h and c zeroed where an episode starts:
    i, f, o = σ(x + W h), g = tanh(x + W h);  c = f c + i g;  h = o tanh(c).
    """

    @staticmethod
    def forward(
        ctx: Any, from_input: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, keep: Tensor
    ) -> tuple[Tensor, Tensor]:
        steps, rows, size = from_input.shape[0], from_input.shape[1], cell.shape[1]
        transposed = weight.t().to(from_input.dtype)
        gates = cell.new_empty(steps, rows, 4 * size)
        before, cells, squashed, outputs = (cell.new_empty(steps, rows, size) for _ in range(4))
        for t in range(steps):
            torch.mul(hidden, keep[t], out=before[t])
            torch.mul(cell, keep[t], out=cells[t])
            gate = gates[t]
            gate.copy_(torch.addmm(from_input[t], before[t].to(from_input.dtype), transposed))
            gate[:, : 3 * size].sigmoid_()
            gate[:, 3 * size :].tanh_()
            i, f, o, g = gate.chunk(4, -1)
            cell = torch.addcmul(f * cells[t], i, g)
            torch.tanh(cell, out=squashed[t])
            torch.mul(o, squashed[t], out=outputs[t])
            hidden = outputs[t]
        ctx.save_for_backward(gates, before, cells, squashed, keep, weight)
        ctx.dtype = from_input.dtype
        return outputs, cell

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_outputs, d_cell = gradients
        gates, before, cells, squashed, keep, weight = ctx.saved_tensors
        size = squashed.shape[-1]
        matrix = weight.to(ctx.dtype)
        d_gates = torch.empty_like(gates)
        d_hidden = torch.zeros_like(squashed[0])
        for t in reversed(range(len(gates))):
            i, f, o, g = gates[t].chunk(4, -1)
            d_i, d_f, d_o, d_g = d_gates[t].chunk(4, -1)
            d_hidden = d_hidden + d_outputs[t]
            torch.mul(d_hidden, squashed[t], out=d_o)
            d_cell = torch.addcmul(d_cell, d_hidden * o, 1.0 - squashed[t] * squashed[t])
            torch.mul(d_cell, g, out=d_i)
            torch.mul(d_cell, cells[t], out=d_f)
            torch.mul(d_cell * i, 1.0 - g * g, out=d_g)
            inner = gates[t, :, : 3 * size]
            d_gates[t, :, : 3 * size] *= inner * (1.0 - inner)
            d_hidden = (d_gates[t].to(ctx.dtype) @ matrix).to(d_cell.dtype) * keep[t]
            d_cell = d_cell * f * keep[t]
        flat = d_gates.flatten(0, 1).to(ctx.dtype)
        d_weight = (flat.t() @ before.flatten(0, 1).to(ctx.dtype)).to(weight.dtype)
        return d_gates.to(ctx.dtype), d_weight, d_hidden, d_cell, None


Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


def orthogonal(layer: Layer, gain: float) -> Layer:
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


ROOT_2 = math.sqrt(2)
