"""A policy that acts for some agents of a batch without learning: in evaluation, and as an opponent in training."""

from __future__ import annotations

from typing import Any

import torch

from ludus.policies.policy import Policy


class Player:
    """Its memory starts fresh with every episode.

    `slot`: it acts only where `controller` says so (`Batch.set_opponent`), which changes in an env's reset row and nowhere
    else; without a slot it acts for all of `agents`.
    """

    def __init__(self, policy: Policy, batch: Any, agents: slice, *, greedy: bool = False, slot: int | None = None) -> None:
        self.policy, self.batch, self.agents, self.greedy, self.slot = policy, batch, agents, greedy, slot
        self.count = agents.stop - agents.start
        self.state = policy.initial_state(batch.num_envs * self.count)

    @torch.no_grad()
    def act(self) -> None:
        batch, rows = self.batch, self.batch.num_envs * self.count
        observation = batch.tensor("observation")[:, self.agents].reshape(1, rows, -1)
        mask = batch.tensor("action_mask")[:, self.agents].reshape(1, rows, -1) if self.policy.space.masked else None
        starts = batch.tensor("resetting").unsqueeze(1).expand(-1, self.count).reshape(1, rows)
        output = self.policy(observation, self.state, starts, mask)
        actions = output.distribution.greedy() if self.greedy else output.distribution.sample()
        self.state.copy_(output.state)
        for name, values in (("continuous", actions.continuous), ("binary", actions.binary), ("choices", actions.choices)):
            if values.shape[-1]:
                self._write(name, values.view(batch.num_envs, self.count, -1))

    def _write(self, name: str, values: torch.Tensor) -> None:
        target = self.batch.tensor(name)[:, self.agents]
        if self.slot is not None:
            mine = self.batch.tensor("controller")[:, self.agents] == -1 - self.slot
            values = torch.where(mine.unsqueeze(-1), values.to(target.dtype), target)
        target.copy_(values)
