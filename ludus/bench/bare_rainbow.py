"""The arithmetic of a Rainbow iteration and nothing else: no envs, no replay, no metrics, random
data."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from ludus.algorithms.rainbow.q_policy import move
from ludus.algorithms.rainbow.rainbow import chosen, huber, quantile_huber, random_shares
from ludus.networks.encoders import shaped


class BareRainbow:
    """One role: acting for a rollout, and its share of updates, with networks of the same sizes."""

    def __init__(self, role: Any) -> None:
        self.c, self.rows = role.config, role.rows
        self.policy = copy.deepcopy(role.policy).train()
        self.target = copy.deepcopy(role.target)
        self.parameters = list(self.policy.online.parameters())
        self.optimizer = torch.optim.AdamW(
            self.parameters, fused=True, capturable=role.replay.head.is_cuda
        )
        self.updates = round(role.updates_per_iteration)
        self.device = role.replay.head.device
        self.acting, self.acting_seen = self._data(self.rows)
        self.learning, self.learning_seen = self._data(self.c.batch)
        self.action = torch.zeros(self.c.batch, dtype=torch.long, device=self.device)

    def _data(self, rows: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        parts = {
            n: shaped(
                torch.ones(
                    1, rows, p.frames, p.height, p.width, dtype=torch.uint8, device=self.device
                ),
                p,
            )
            for n, p in self.policy.seen.items()
        }
        return torch.randn(1, rows, self.policy.entries, device=self.device), parts

    def run(self, precision: Any) -> None:
        with torch.no_grad(), precision():
            for _ in range(self.c.rollout):
                self.policy.q_values(self.acting, None, self.acting_seen).argmax(-1)
        for _ in range(self.updates):
            self._update(precision)
        move(self.target, self.policy.online, self.c.target_tau)

    def _update(self, precision: Any) -> None:
        c, online = self.c, self.policy.online
        x = self.policy.prepared(self.learning)
        with torch.no_grad(), precision():
            features = self.target.features(x, self.learning_seen)[0]
            source = online if c.double else self.target
            best = source.expectation(
                online.features(x, self.learning_seen)[0] if c.double else features
            ).argmax(-1)
            shares = random_shares(c.batch, c.target_quantiles, self.device) if c.iqn else None
            target = chosen(self.target.values(features, shares), best)
        self.optimizer.zero_grad()
        with precision():
            shares = random_shares(c.batch, c.quantiles, self.device) if c.iqn else None
            estimate = chosen(
                online.values(online.features(x, self.learning_seen, True)[0], shares), self.action
            )
        error = target.unsqueeze(1) - estimate.unsqueeze(2)
        loss = (
            quantile_huber(error, shares, c.kappa) if shares is not None else huber(error, c.kappa)
        )
        loss.mean().backward()
        nn.utils.clip_grad_norm_(self.parameters, 10.0, foreach=True)
        self.optimizer.step()
