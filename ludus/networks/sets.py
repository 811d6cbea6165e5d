"""Entries of an observation that tell of several things of a kind (mate0_ahead, mate1_ahead …),
read by the same weights in any order.

Every member passes one layer, those that are not there (their entry `valid` is 0) count nothing,
and the mean over members joins the first hidden layer, as in deep sets (Zaheer et al. 2017).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ludus.errors import LudusError
from ludus.networks.memory import ROOT_2, orthogonal

VALID = "valid"


@dataclass(frozen=True)
class Members:
    names: tuple[str, ...]
    """What is told of each member, in alphabetical order: the order of entries in a layout does not
    matter."""
    places: tuple[tuple[int, ...], ...]
    """[member][name] → entry."""


def sets_of(entries: Sequence[str], prefixes: Sequence[str]) -> dict[str, Members]:
    """The members of every set, by its prefix."""
    out = {}
    for prefix in prefixes:
        found: dict[int, dict[str, int]] = {}
        for place, name in enumerate(entries):
            if match := re.fullmatch(rf"{re.escape(prefix)}(\d+)_(.+)", name):
                found.setdefault(int(match[1]), {})[match[2]] = place
        if len(found) < 2 or len({frozenset(member) for member in found.values()}) > 1:
            known = sorted({m[1] for name in entries if (m := re.fullmatch(r"(\D+)\d+_.+", name))})
            raise LudusError(
                f"policy.sets names '{prefix}', but the observation has no several alike "
                f"{prefix}0_…, {prefix}1_…: "
                f"there is {', '.join(known) or 'nothing numbered'}"
            )
        names = tuple(sorted(found[min(found)]))
        out[prefix] = Members(
            names, tuple(tuple(found[i][name] for name in names) for i in sorted(found))
        )
    return out


class SetEncoder(nn.Module):
    places: Tensor

    def __init__(self, members: Members, units: int, activation: nn.Module) -> None:
        super().__init__()
        self.shape = (len(members.places), len(members.names))
        self.valid = members.names.index(VALID) if VALID in members.names else None
        self.register_buffer("places", torch.tensor(members.places).flatten(), persistent=False)
        self.each = orthogonal(nn.Linear(len(members.names), units), ROOT_2)
        self.activation = activation
        self.into = orthogonal(nn.Linear(units, units, bias=False), ROOT_2)

    def forward(self, x_lrf: Tensor) -> Tensor:
        members = x_lrf.index_select(-1, self.places).unflatten(-1, self.shape)
        hidden = self.activation(self.each(members))
        if self.valid is not None:
            hidden = hidden * (members[..., self.valid, None] > 0)
        return self.into(hidden.sum(-2) / self.shape[0])
