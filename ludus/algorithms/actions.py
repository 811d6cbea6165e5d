"""What agents did, as metrics."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def action_metrics(
    actions: Any, role: str, raw: Tensor, binary: Tensor, choices: Tensor, valid: Tensor
) -> dict[str, float]:
    """Over valid rows [steps, rows], nothing where there are none: gathered as tensors, read once.
    `actions`: the layout's `actions_of(role)`."""
    weight = valid.float()
    count = weight.sum()
    weight = weight / count.clamp(min=1.0)
    names: list[str] = []
    parts: list[Tensor] = []
    if actions.continuous:
        action = torch.tanh(raw)
        mean = (action * weight.unsqueeze(-1)).sum((0, 1))
        square = (action.square() * weight.unsqueeze(-1)).sum((0, 1))
        saturated = ((action.abs() > 0.99) * weight.unsqueeze(-1)).sum((0, 1))
        parts += [mean, (square - mean.square()).clamp(min=0).sqrt(), saturated]
        names += [
            f"{n}/{kind}" for kind in ("mean", "std", "saturated") for n in actions.continuous
        ]
    if actions.binary:
        parts.append((binary * weight.unsqueeze(-1)).sum((0, 1)))
        names += [f"{n}/pressed" for n in actions.binary]
    for i, (name, options) in enumerate(actions.choices.items()):
        flat = choices[..., i].flatten().long()
        parts.append(
            torch.zeros(len(options), device=weight.device).scatter_add_(0, flat, weight.flatten())
        )
        names += [f"{name}/{option}" for option in options]
    rows, *values = torch.cat([count.unsqueeze(0), *parts]).tolist()
    return {f"action/{role}/{n}": v for n, v in zip(names, values, strict=True)} if rows else {}
