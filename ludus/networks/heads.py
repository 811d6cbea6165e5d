"""Action distributions: squashed Gaussian, Bernoulli keys, categorical choices, and any mix of
them, with masks.

Axes: everything has leading row axes […]; `parameters` is […, space.num_parameters]. Continuous
actions are kept as `raw` (before tanh): the log-probability through raw is exact at saturation,
where the inverse of tanh would have lost it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ludus.protocols import RoleActions

FORBIDDEN = -1e9
LOG_STD_LIMITS = (-5.0, 2.0)
LOG_2PI = math.log(2 * math.pi)


_QUADRATURE: dict[str, tuple[Tensor, Tensor]] = {}


def quadrature(device: torch.device) -> tuple[Tensor, Tensor]:
    """Gauss-Hermite points and weights for the standard normal distribution.

    The entropy of the squash has no closed form; 8 points give it to 1e-3 up to a deviation of 1.
    """
    if device.type not in _QUADRATURE:
        roots, shares = np.polynomial.hermite.hermgauss(8)
        pair = np.stack([roots * math.sqrt(2), shares / math.sqrt(math.pi)])
        points, weights = torch.tensor(pair, dtype=torch.float32, device=device)
        _QUADRATURE[device.type] = points, weights
    return _QUADRATURE[device.type]


class Actions(NamedTuple):
    raw: Tensor  # […, continuous] before tanh
    binary: Tensor  # […, binary] int8
    choices: Tensor  # […, choices] int32

    @property
    def continuous(self) -> Tensor:
        return torch.tanh(self.raw)


@dataclass(frozen=True)
class ActionSpace:
    """What an agent can do. `binary_mask_at` and `choice_mask_at` say where in the mask an entry's
    flags are; -1: never masked."""

    continuous: int
    binary: int
    choices: tuple[int, ...]
    binary_mask_at: tuple[int, ...] = ()
    choice_mask_at: tuple[int, ...] = ()
    state_dependent_std: bool = False
    continuous_names: tuple[str, ...] = ()

    @property
    def num_parameters(self) -> int:
        return (
            self.continuous * (2 if self.state_dependent_std else 1)
            + self.binary
            + sum(self.choices)
        )

    @property
    def masked(self) -> bool:
        return any(at >= 0 for at in (*self.binary_mask_at, *self.choice_mask_at))

    @property
    def max_entropy(self) -> float:
        """Entropy of acting uniformly at random: the scale for `entropy_share`."""
        return math.log(2) * (self.continuous + self.binary) + sum(
            math.log(n) for n in self.choices
        )


def action_space(layout: RoleActions, state_dependent_std: bool) -> ActionSpace:
    """The action space of a layout, or of its `actions_of(role)`."""
    return ActionSpace(
        continuous=len(layout.continuous),
        binary=len(layout.binary),
        choices=tuple(len(o) for o in layout.choices.values()),
        binary_mask_at=tuple(layout.binary_mask_at),
        choice_mask_at=tuple(layout.choice_mask_at),
        state_dependent_std=state_dependent_std,
        continuous_names=tuple(layout.continuous),
    )


def squash_correction(raw: Tensor) -> Tensor:
    """log(1 − tanh²(raw)), without an epsilon and exact where tanh saturates."""
    return 2.0 * (math.log(2) - raw - F.softplus(-2.0 * raw))


class Distribution:
    """The joint distribution over one agent's action entries."""

    def __init__(
        self, space: ActionSpace, parameters: Tensor, log_std: Tensor | None, mask: Tensor | None
    ) -> None:
        self.space = space
        c, b = space.continuous, space.binary
        parameters = parameters.float()
        self.mean = parameters[..., :c]
        at = c
        if space.state_dependent_std:
            self.log_std = parameters[..., c : 2 * c].clamp(*LOG_STD_LIMITS)
            at = 2 * c
        else:
            self.log_std = (
                log_std.clamp(*LOG_STD_LIMITS) if log_std is not None else parameters.new_zeros(c)
            )
        self.key_logits = parameters[..., at : at + b]
        self.key_mask = self._binary_mask(mask)
        at += b
        self.choice_log_probs: list[Tensor] = []
        for i, options in enumerate(space.choices):
            logits = parameters[..., at : at + options]
            start = space.choice_mask_at[i] if space.choice_mask_at else -1
            if mask is not None and start >= 0:
                logits = logits.masked_fill(~mask[..., start : start + options], FORBIDDEN)
            self.choice_log_probs.append(F.log_softmax(logits, -1))
            at += options

    def _binary_mask(self, mask: Tensor | None) -> Tensor | None:
        """[…, binary]: may this key be pressed?"""
        at = self.space.binary_mask_at
        if mask is None or not any(i >= 0 for i in at):
            return None
        if all(i >= 0 for i in at) and list(at) == list(range(at[0], at[0] + len(at))):
            return mask[..., at[0] : at[0] + len(at)]
        always = torch.ones_like(mask[..., 0])
        return torch.stack([mask[..., i] if i >= 0 else always for i in at], -1)

    def sample(self) -> Actions:
        raw = self.mean + self.log_std.exp() * torch.randn_like(self.mean)
        pressed = torch.rand_like(self.key_logits) < torch.sigmoid(self.key_logits)
        if self.key_mask is not None:
            pressed = pressed & self.key_mask
        # Gumbel: the largest of log-probability plus noise is a draw, without a host
        # synchronisation
        picks = [
            (p - torch.empty_like(p).exponential_().log()).argmax(-1) for p in self.choice_log_probs
        ]
        return self._actions(raw, pressed, picks)

    def greedy(self) -> Actions:
        pressed = self.key_logits > 0
        if self.key_mask is not None:
            pressed = pressed & self.key_mask
        return self._actions(self.mean, pressed, [p.argmax(-1) for p in self.choice_log_probs])

    def _actions(self, raw: Tensor, pressed: Tensor, picks: list[Tensor]) -> Actions:
        none = pressed.new_zeros((*pressed.shape[:-1], 0), dtype=torch.int32)
        return Actions(
            raw, pressed.to(torch.int8), torch.stack(picks, -1).to(torch.int32) if picks else none
        )

    def log_prob(self, actions: Actions) -> Tensor:
        """Of all parts of an action together; a key that may not be pressed adds nothing."""
        total = self.mean.new_zeros(self.mean.shape[:-1])
        if self.space.continuous:
            z = (actions.raw - self.mean) * torch.exp(-self.log_std)
            each = -0.5 * (z * z + LOG_2PI) - self.log_std - squash_correction(actions.raw)
            total = total + each.sum(-1)
        if self.space.binary:
            # log p(1) = -softplus(-l), log p(0) = -softplus(l)
            signed = torch.where(actions.binary != 0, self.key_logits, -self.key_logits)
            each = -F.softplus(-signed)
            if self.key_mask is not None:
                each = each * self.key_mask
            total = total + each.sum(-1)
        for i, log_probs in enumerate(self.choice_log_probs):
            total = total + log_probs.gather(-1, actions.choices[..., i : i + 1].long()).squeeze(-1)
        return total

    def entropy(self) -> Tensor:
        """Of the actions as the game receives them: the squash included."""
        total = self.mean.new_zeros(self.mean.shape[:-1])
        if self.space.continuous:
            points, weights = quadrature(self.mean.device)
            raw = self.mean.unsqueeze(-1) + (self.log_std.exp().unsqueeze(-1) * points)
            correction = (squash_correction(raw) * weights).sum(-1)
            total = total + (0.5 * (1.0 + LOG_2PI) + self.log_std + correction).sum(-1)
        if self.space.binary:
            p = torch.sigmoid(self.key_logits)
            each = F.softplus(self.key_logits) - p * self.key_logits
            if self.key_mask is not None:
                each = each * self.key_mask
            total = total + each.sum(-1)
        for log_probs in self.choice_log_probs:
            total = total - (log_probs.exp() * log_probs).sum(-1)
        return total
