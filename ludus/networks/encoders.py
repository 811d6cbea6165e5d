"""What is seen on its way into the first hidden layer: pictures through convolutions, tokens
through a table.

Each encoder ends in a linear map into the first hidden layer, where its output is added to that of
the observation's numbers. Axes: bytes are [steps, rows, frames, height, width] or [steps, rows,
tokens, 3]; outputs [steps, rows, units].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ludus.networks.history import History
from ludus.networks.memory import ROOT_2, orthogonal
from ludus.sim.game import Tokens
from ludus.sim.layout import Seen

SMALL = 24  # pictures up to this size need no convolutions
CELL, FEATURE, AMOUNT = 0, 1, 2


class Picture(nn.Module):
    """Frames of a small picture are flattened; larger ones pass two convolutions."""

    def __init__(self, seen: Seen, units: int) -> None:
        super().__init__()
        if min(seen.height, seen.width) <= SMALL:
            self.convolutions = nn.Sequential(nn.Flatten())
            size = seen.frames * seen.height * seen.width
        else:
            self.convolutions = nn.Sequential(
                orthogonal(nn.Conv2d(seen.frames, 16, 8, 4), ROOT_2),
                nn.ReLU(),
                orthogonal(nn.Conv2d(16, 32, 4, 2), ROOT_2),
                nn.ReLU(),
                nn.Flatten(),
            )
            with torch.no_grad():
                size = self.convolutions(
                    torch.zeros(1, seen.frames, seen.height, seen.width)
                ).shape[1]
        self.into = orthogonal(nn.Linear(size, units, bias=False), ROOT_2)

    def forward(self, seen: Tensor) -> Tensor:
        pictures = seen.flatten(0, 1).to(self.into.weight.dtype) / 255.0
        return self.into(self.convolutions(pictures)).unflatten(0, seen.shape[:2])


class TokenTable(nn.Module):
    """A row of weights for every feature at every cell: the sum of the rows of what is seen,
    weighted by how much of it.

    On the CPU only the rows that are needed are touched; on CUDA the table meets a dense picture of
    the tokens, which costs little there and gives the same sums in every run.
    """

    def __init__(self, kind: Tokens, units: int) -> None:
        super().__init__()
        self.kind = kind
        self.rows = -(-kind.cells * kind.features // 8) * 8
        self.table = nn.Parameter(torch.randn(self.rows, units) * 0.1)

    def forward(self, seen: Tensor) -> Tensor:
        flat = seen.flatten(0, 1)
        amount = torch.log2(1.0 + flat[..., AMOUNT].float())
        if not flat.is_cuda:
            used = int((flat[..., AMOUNT] > 0).any(0).sum())  # tokens come first, padding last
            flat, amount = flat[:, : max(used, 1)], amount[:, : max(used, 1)]
        index = flat[..., CELL].int() * self.kind.features + flat[..., FEATURE].int()
        if flat.is_cuda:
            dtype = torch.bfloat16 if torch.is_autocast_enabled("cuda") else self.table.dtype
            # as many as flat under vmap, too
            dense = flat.new_zeros(len(flat), self.rows, dtype=dtype)
            dense.scatter_add_(1, index.long(), amount.to(dtype))  # padding adds 0
            out = F.linear(dense, self.table.t())
        else:
            out = F.embedding_bag(
                index, self.table, per_sample_weights=amount.to(self.table.dtype), mode="sum"
            )
        return out.unflatten(0, seen.shape[:2])


Part = Seen | History
"""What a policy sees beside the numbers of its observation."""


def shaped(stack: Tensor, part: Part) -> Tensor:
    """[steps, rows, frames, height, width] as the encoder of this part wants it: tokens have no
    frames."""
    return stack[:, :, 0] if isinstance(part, Seen) and isinstance(part.kind, Tokens) else stack


def steps_back(part: Part) -> range:
    """How long ago each frame of a stack was, oldest first."""
    return part.steps_back if isinstance(part, History) else range(part.frames - 1, -1, -1)


def stored_as(part: Part, device: Any) -> torch.dtype:
    """Bytes, but histories are numbers: on CUDA in half precision, as observations are."""
    if not isinstance(part, History):
        return torch.uint8
    return torch.float32 if torch.device(device).type == "cpu" else torch.float16


def example(part: Part, steps: int, rows: int) -> Tensor:
    """What a policy sees of a part, as zeros."""
    frames = len(steps_back(part))
    kind = stored_as(part, "cpu")
    return shaped(torch.zeros(steps, rows, frames, part.height, part.width, dtype=kind), part)


def make_encoder(part: Part, units: int) -> nn.Module:
    """What brings a picture or tokens into a layer of so many units."""
    assert isinstance(part, Seen), "a history needs an encoder of its own"
    return TokenTable(part.kind, units) if isinstance(part.kind, Tokens) else Picture(part, units)


class Frames:
    """The last frames of every row's episode while acting, for policies that see more than one."""

    def __init__(self, seen: Mapping[str, Part], rows: int, device: Any) -> None:
        self.seen = seen
        self.kept = {
            name: torch.zeros(
                rows,
                part.frames,
                part.height,
                part.width,
                dtype=stored_as(part, device),
                device=device,
            )
            for name, part in seen.items()
        }

    def push(self, newest: Mapping[str, Tensor], starts: Tensor) -> dict[str, Tensor]:
        """What is new [rows, height, width] at the end; frames of an earlier episode go black.
        Returns [1, rows, …]."""
        out = {}
        for name, part in self.seen.items():
            kept = self.kept[name]
            if part.frames > 1:
                kept[:, :-1] = torch.where(starts.view(-1, 1, 1, 1), 0, kept[:, 1:].clone())
            kept[:, -1] = newest[name]
            back = steps_back(part)
            shown = kept[:, part.frames - 1 - back[0] :: -back.step]
            out[name] = shaped(shown.unsqueeze(0), part)
        return out
