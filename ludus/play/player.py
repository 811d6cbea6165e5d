"""A policy that acts for some agents of a batch without learning: in evaluation, and as an opponent
in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ludus.networks.encoders import Frames
from ludus.networks.heads import Actions
from ludus.networks.history import HISTORY
from ludus.protocols import ActingPolicy, Batch
from ludus.sim.episode import FROZEN


class Player:
    """Its memory starts fresh with every episode.

    `frozen`: it acts only for those of `agents` that `controller` hands to a frozen policy, which
    changes in an env's reset row and nowhere else. `envs`: the block of envs it acts in (default:
    all).
    """

    def __init__(
        self,
        policy: ActingPolicy,
        batch: Batch,
        agents: slice,
        *,
        greedy: bool = False,
        frozen: bool = False,
        envs: slice | None = None,
    ) -> None:
        self.policy, self.batch, self.agents, self.greedy, self.frozen = (
            policy,
            batch,
            agents,
            greedy,
            frozen,
        )
        self.envs = envs or slice(0, batch.num_envs)
        self.num_envs, self.count = self.envs.stop - self.envs.start, agents.stop - agents.start
        self.state = policy.initial_state(self.num_envs * self.count)
        self.frames = Frames(policy.seen, self.num_envs * self.count, self.state.device)
        # or only those that need it; shapes must not vary in a graph
        self.every_row = not frozen or self.state.is_cuda
        self.output: Any = None  # of the last decision for all its rows, on the CPU

    def memory(self) -> list[torch.Tensor]:
        """What it remembers of the episodes it is in, as the tensors that hold it."""
        return [self.state, *self.frames.kept.values()]

    def mine(self, name: str) -> torch.Tensor:
        return self.batch.tensor(name)[self.envs, self.agents]

    @torch.no_grad()
    def act(self) -> None:
        """Writes the actions of its rows into the batch and keeps what it remembers; frozen, only
        where it is in charge."""
        rows = self.num_envs * self.count
        observation = self.mine("observation").reshape(1, rows, -1)
        mask = self.mine("action_mask").reshape(1, rows, -1) if self.policy.space.masked else None
        starts = (
            self.batch.tensor("resetting")[self.envs]
            .unsqueeze(1)
            .expand(-1, self.count)
            .reshape(1, rows)
        )
        seen = self.frames.push(
            {name: self._newest(name, observation[0]) for name in self.policy.seen}, starts[0]
        )
        acting = self.mine("controller") == FROZEN if self.frozen else None
        if acting is not None and not self.every_row:
            self._act_for(acting.flatten().nonzero().squeeze(1), observation, mask, starts, seen)
            return
        state, actions = self.decide(observation, starts, mask, seen)
        self.state.copy_(state)
        for name, values in by_kind(actions):
            # other roles may have more such actions
            target = self.mine(name)[..., : values.shape[-1]]
            values = values.view(target.shape).to(target.dtype)
            target.copy_(
                values if acting is None else torch.where(acting.unsqueeze(-1), values, target)
            )

    def decide(
        self,
        observation: torch.Tensor,
        starts: torch.Tensor,
        mask: torch.Tensor | None,
        seen: dict[str, torch.Tensor],
    ) -> tuple[torch.Tensor, Actions]:
        """What it remembers after this step [rows, …] and what it does [1, rows, …]."""
        output = self.policy(observation, self.state, starts, mask, seen)
        if not observation.is_cuda:  # what a CUDA graph computes is not to be held on to
            self.output = output
        return output.state, self._chosen(output)

    def thought(self) -> dict[str, np.ndarray]:
        """What it thought in its last decision: `value` [rows] in units of the game's reward, and
        `chances` [rows, entries]: a mean per number, then a chance per key and per option."""
        found, value = self.output.distribution, self.policy.expected_reward(self.output.value)
        parts = [
            torch.tanh(found.mean),
            torch.sigmoid(found.key_logits),
            *(p.exp() for p in found.choice_log_probs),
        ]
        return {"value": value[0].numpy(), "chances": torch.cat(parts, -1)[0].numpy()}

    def _newest(self, name: str, observation: torch.Tensor) -> torch.Tensor:
        return (
            self.policy.remembered(observation)
            if name == HISTORY
            else self.mine(f"seen_{name}").flatten(0, 1)
        )

    def _act_for(
        self,
        rows: torch.Tensor,
        observation: torch.Tensor,
        mask: torch.Tensor | None,
        starts: torch.Tensor,
        seen: dict[str, torch.Tensor],
    ) -> None:
        if not len(rows):
            return
        allowed = mask[:, rows] if mask is not None else None
        theirs = {name: part[:, rows] for name, part in seen.items()}
        output = self.policy(
            observation[:, rows], self.state[rows], starts[:, rows], allowed, theirs
        )
        self.state[rows] = output.state
        env, agent = rows // self.count, rows % self.count
        for name, values in by_kind(self._chosen(output)):
            target = self.mine(name)[..., : values.shape[-1]]
            target[env, agent] = values[0].to(target.dtype)

    def _chosen(self, output: Any) -> Actions:
        return output.distribution.greedy() if self.greedy else output.distribution.sample()


def by_kind(actions: Actions) -> list[tuple[str, torch.Tensor]]:
    """The kinds of action that there are, by their names in a batch."""
    kinds = (
        ("continuous", actions.continuous),
        ("binary", actions.binary),
        ("choices", actions.choices),
    )
    return [(name, values) for name, values in kinds if values.shape[-1]]
