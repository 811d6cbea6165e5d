"""Players of one role that act in one go: on a GPU eight small networks one after the other take
eight times as long as one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ludus.networks.heads import Actions
from ludus.play.player import Player


class Together(Player):
    """Acts for frozen players in neighbouring blocks of envs that are equally long, each row with
    the weights of its player.

    Weights, memories and frames of the players become parts of stacks that are held here: what is
    copied into a player later is copied into its part.
    """

    def __init__(self, players: Sequence[Player]) -> None:
        first, last = players[0], players[-1]
        super().__init__(
            first.policy,
            first.batch,
            first.agents,
            frozen=True,
            envs=slice(first.envs.start, last.envs.stop),
        )
        self.blocks, self.every_row = len(players), True
        self.weights: dict[str, Tensor] = {}
        tensors = [
            {**dict(p.policy.named_parameters()), **dict(p.policy.named_buffers())} for p in players
        ]
        for name in first.policy.state_dict():  # what is not in it is the same in all
            self.weights[name] = torch.stack([theirs[name].detach() for theirs in tensors])
            for theirs, part in zip(tensors, self.weights[name], strict=True):
                theirs[name].data = part
        for i, player in enumerate(players):
            player.state = self.in_blocks(self.state, 0)[i]
            player.frames.kept = {
                name: self.in_blocks(kept, 0)[i] for name, kept in self.frames.kept.items()
            }
        self._decide = torch.vmap(
            self._with_weights, in_dims=(0, 0, 0, 0, 0, 0), randomness="different"
        )

    def in_blocks(self, rows: Tensor, axis: int) -> Tensor:
        """A tensor with an axis of rows, one block after the other: [blocks, …], each with its rows
        in that axis."""
        return rows.unflatten(axis, (self.blocks, -1)).movedim(axis, 0)

    def decide(
        self, observation: Tensor, starts: Tensor, mask: Tensor | None, seen: dict[str, Tensor]
    ) -> tuple[Tensor, Actions]:
        masks = {} if mask is None else {"mask": self.in_blocks(mask, 1)}
        state, actions = self._decide(
            self.weights,
            self.in_blocks(observation, 1),
            self.in_blocks(self.state, 0),
            self.in_blocks(starts, 1),
            masks,
            {name: self.in_blocks(part, 1) for name, part in seen.items()},
        )
        return state.flatten(0, 1), Actions(*(part.movedim(0, 1).flatten(1, 2) for part in actions))

    def _with_weights(
        self,
        weights: dict[str, Tensor],
        observation: Tensor,
        state: Tensor,
        starts: Tensor,
        masks: dict[str, Tensor],
        seen: dict[str, Tensor],
    ) -> tuple[Tensor, Actions]:
        """One block's decision."""
        assert isinstance(self.policy, nn.Module)
        output = functional_call(
            self.policy, weights, (observation, state, starts, masks.get("mask"), seen)
        )
        return output.state, output.distribution.sample()
