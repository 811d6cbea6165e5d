"""Memory: none or LSTM. Every policy has a state tensor [rows, size], possibly of size 0, so
nothing is retrofitted.

Axes: x_lrf is [steps, rows, features]. `starts` [steps, rows] marks first observations of an
episode: the state is zeroed before they are processed, while acting and while learning alike.
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
    """An LSTM layer that can be reset inside a sequence (torch's own cannot). The state is [hidden,
    cell] side by side."""

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
        """Outputs [steps, rows, size] and the state after the last step. Gates in the order input,
        forget, output, cell."""
        from_input = nn.functional.linear(x_lrf, self.input_weight, self.bias)
        keep = (~starts).to(state.dtype).unsqueeze(-1)
        hidden, cell = state[:, : self.size], state[:, self.size :]
        parts = (from_input, self.hidden_weight, hidden, cell, keep)
        outputs, cell = (
            _Recurrence.apply(*parts) if torch.is_grad_enabled() else all_steps(*parts)[:2]
        )
        return outputs, torch.cat([outputs[-1], cell], -1)


def step(pre: Tensor, cells: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One step from the gates before their activation and the cells before it: gates, cells,
    squashed cells, outputs."""
    pre = pre.to(cells.dtype)
    size = cells.shape[-1]
    inner, g = pre[:, : 3 * size].sigmoid(), pre[:, 3 * size :].tanh()
    i, f, o = inner.chunk(3, -1)
    after = f * cells + i * g
    squashed = after.tanh()
    return torch.cat([inner, g], -1), after, squashed, o * squashed


def all_steps(
    from_input: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, keep: Tensor
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Outputs, the cells after the last one, and what the way back needs (four lists of a tensor
    per step)."""
    transposed = weight.t().to(from_input.dtype)
    before, cells, gates, squashed, outputs = [], [], [], [], []
    for t in range(len(from_input)):
        before.append(hidden * keep[t])
        cells.append(cell * keep[t])
        pre = torch.addmm(from_input[t], before[t].to(from_input.dtype), transposed)
        gate, cell, squash, hidden = step(pre, cells[t])
        gates.append(gate)
        squashed.append(squash)
        outputs.append(hidden)
    return torch.stack(outputs), cell, [*before, *cells, *gates, *squashed]


def step_back(
    d_output: Tensor, d_after: Tensor, gates: Tensor, cells: Tensor, squashed: Tensor, keep: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of `step`: of the gates before their activation, and of the cells that came in."""
    i, f, o, g = gates.chunk(4, -1)
    d_after = d_after + d_output * o * (1.0 - squashed * squashed)
    d_i, d_f, d_o = (
        d_after * g * i * (1.0 - i),
        d_after * cells * f * (1.0 - f),
        d_output * squashed * o * (1.0 - o),
    )
    return torch.cat([d_i, d_f, d_o, d_after * i * (1.0 - g * g)], -1), d_after * f * keep


class _Recurrence(torch.autograd.Function):
    """The recurrent part, with its backward pass written out: a third of the operations that
    autograd would record.

    Per step, with h and c zeroed where an episode starts:
    i, f, o = σ(x + W h), g = tanh(x + W h);  c = f c + i g;  h = o tanh(c).
    """

    @staticmethod
    def forward(
        ctx: Any, from_input: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, keep: Tensor
    ) -> tuple[Tensor, Tensor]:
        outputs, cell, kept = all_steps(from_input, weight, hidden, cell, keep)
        ctx.save_for_backward(weight, keep, *kept)
        ctx.dtype = from_input.dtype
        return outputs, cell

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_outputs, d_cell = gradients
        weight, keep, *kept = ctx.saved_tensors
        steps = len(keep)
        before, cells, gates, squashed = (kept[i * steps : (i + 1) * steps] for i in range(4))
        matrix = weight.to(ctx.dtype)
        d_gates: list[Tensor] = [d_cell] * steps
        d_hidden = torch.zeros_like(d_cell)
        for t in reversed(range(steps)):
            d_gate, d_cell = step_back(
                d_hidden + d_outputs[t], d_cell, gates[t], cells[t], squashed[t], keep[t]
            )
            d_gates[t] = d_gate.to(ctx.dtype)
            d_hidden = (d_gates[t] @ matrix).to(d_cell.dtype) * keep[t]
        d_input = torch.stack(d_gates)
        d_weight = (d_input.flatten(0, 1).t() @ torch.cat(before).to(ctx.dtype)).to(weight.dtype)
        return d_input, d_weight, d_hidden, d_cell, None


Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


def orthogonal(layer: Layer, gain: float) -> Layer:
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


ROOT_2 = math.sqrt(2)
