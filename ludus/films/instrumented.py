"""What a policy thinks while it plays: its value estimate, the chances of its actions, where its
attention goes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from ludus.networks.strategy import Strategy, strategy_encoder, watched
from ludus.play.player import Player
from ludus.protocols import ActingPolicy
from ludus.sim import Batch


class Mind(Player):
    """A player that keeps where its attention went in its last decision."""

    def __init__(self, policy: ActingPolicy, batch: Batch, agents: slice, **options: Any) -> None:
        super().__init__(policy, batch, agents, **options)
        self.attention: np.ndarray | None = None  # [agents, steps of the history]

    def act(self) -> None:
        encoder = strategy_encoder(self.policy)
        with watched(encoder, self._keep) if encoder is not None else nullcontext():
            super().act()

    def _keep(self, strategy: Strategy) -> Strategy:
        self.attention = strategy.attention[0].numpy()
        return strategy


class Minds:
    """The minds of all roles in one env, and their thoughts as arrays [agents, …]. Agents without a
    policy have NaN."""

    def __init__(self, policies: Mapping[str, Any], batch: Batch, greedy: bool = False) -> None:
        self.batch = batch
        self.minds = {
            s.role: Mind(policies[s.role], batch, s.agents, greedy=greedy)
            for s in batch.layout.seats
            if s.role in policies
        }
        self.who = np.zeros(batch.layout.num_agents, bool)
        for mind in self.minds.values():
            self.who[mind.agents] = True

    def act(self) -> None:
        for mind in self.minds.values():
            mind.act()

    def thoughts(self, shown: np.ndarray) -> dict[str, np.ndarray]:
        """`value` [agents], `chances` [agents, entries]: a mean per number, then a chance per key
        and per option.

        `attention` [agents, steps of the history] where a policy has a strategy encoder.
        """
        out: dict[str, np.ndarray] = {}
        count = self.batch.layout.num_agents
        for mind in self.minds.values():
            thought = mind.thought()
            if mind.attention is not None:
                thought["attention"] = mind.attention
            for name, values in thought.items():
                whole = out.setdefault(
                    name, np.full((count, *values.shape[1:]), np.nan, np.float32)
                )
                whole[mind.agents] = values
        for values in out.values():
            values[~shown] = np.nan
        return out
