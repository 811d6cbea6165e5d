"""The strategy network: the standard one, and a transformer over what was seen of the opponent,
down to one vector that tells how it plays, which joins in the first hidden layer.

The last number of every step of a history tells whether there is such a step: the others are masked
out of the attention, the same way everywhere.

Axes: a history is [steps, rows, tokens, 1, entries + 1], oldest token first; vectors are [steps,
rows, vector].
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ludus.config import PolicyConfig
from ludus.networks.encoders import Part
from ludus.networks.history import HISTORY, History
from ludus.networks.memory import ROOT_2, orthogonal
from ludus.networks.network import Auxiliary, NetworkMetrics, Observation
from ludus.networks.next_keys import NextKeys
from ludus.networks.policy import Policy
from ludus.networks.standard import StandardNetwork
from ludus.networks.strategy_config import StrategyConfig
from ludus.networks.strategy_metrics import StrategyMetrics
from ludus.protocols import ActingPolicy


class Strategy(NamedTuple):
    vector: Tensor  # [steps, rows, vector]
    attention: Tensor  # [steps, rows, tokens]: the share of each step of the history in it


class Layer(nn.Module):
    """Attention among the steps of the history, then two linear maps, each on what is normalised
    and added to its input."""

    def __init__(self, width: int, heads: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        # what all layers add stays of the size of what they start from
        quiet = 1 / math.sqrt(2 * layers)
        self.attention_norm, self.mix_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.asked = orthogonal(nn.Linear(width, 3 * width), 1.0)
        self.answer = orthogonal(nn.Linear(width, width), quiet)
        self.mix = nn.Sequential(
            orthogonal(nn.Linear(width, 4 * width), ROOT_2),
            nn.SiLU(),
            orthogonal(nn.Linear(4 * width, width), quiet),
        )

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        """x [rows, tokens, width], there [rows, tokens]."""
        query, key, value = (
            self.asked(self.attention_norm(x))
            .unflatten(-1, (3, self.heads, -1))
            .permute(2, 0, 3, 1, 4)
        )
        rate = self.dropout if self.training else 0.0
        found = F.scaled_dot_product_attention(query, key, value, there[:, None, None, :], rate)
        x = x + F.dropout(
            self.answer(found.transpose(1, 2).flatten(2)), self.dropout, self.training
        )
        return x + F.dropout(self.mix(self.mix_norm(x)), self.dropout, self.training)


class StrategyEncoder(nn.Module):
    """Steps → layers → attention pooling → two linear maps → the strategy vector → the first hidden
    layer."""

    positions: Tensor

    def __init__(self, history: History, config: StrategyConfig, units: int) -> None:
        super().__init__()
        c = config.filled()
        assert (
            c.width is not None
            and c.heads is not None
            and c.layers is not None
            and c.vector is not None
        )
        self.embed = orthogonal(nn.Linear(len(history.entries), c.width), ROOT_2)
        self.register_buffer("positions", sinusoids(history.steps_back, c.width), persistent=False)
        self.layers = nn.ModuleList(
            Layer(c.width, c.heads, c.layers, c.dropout) for _ in range(c.layers)
        )
        self.norm = nn.LayerNorm(c.width)
        # at the start every step counts alike
        self.interest = orthogonal(nn.Linear(c.width, 1, bias=False), 0.0)
        self.refine = nn.Sequential(
            orthogonal(nn.Linear(c.width, c.vector), ROOT_2),
            nn.SiLU(),
            orthogonal(nn.Linear(c.vector, c.vector), 1.0),
        )
        self.into = orthogonal(nn.Linear(c.vector, units, bias=False), ROOT_2)
        self.watch: Callable[[Strategy], Strategy] | None = (
            None  # sees what is recognised, and may put something else in its place
        )

    def recognise(self, history: Tensor) -> Strategy:
        """The strategy vector of every row's history, and how much of it each of its steps makes
        up."""
        flat = history.flatten(0, 1).squeeze(2)
        there = flat[..., -1] > 0
        there[:, -1] = True  # now is always there
        x = self.embed(flat[..., :-1].to(self.embed.weight.dtype)) + self.positions
        for layer in self.layers:
            x = layer(x, there)
        x = self.norm(x)
        attention = self.interest(x).squeeze(-1).float().masked_fill(~there, -math.inf).softmax(-1)
        vector = self.refine((attention.unsqueeze(1).to(x.dtype) @ x).squeeze(1))
        return Strategy(
            vector.unflatten(0, history.shape[:2]), attention.unflatten(0, history.shape[:2])
        )

    def vector_of(self, history: Tensor) -> Tensor:
        """The strategy vector that the policy gets."""
        strategy = self.recognise(history)
        if self.watch is not None:
            strategy = self.watch(strategy)
        return strategy.vector

    def forward(self, history: Tensor) -> Tensor:
        return self.into(self.vector_of(history))


@contextlib.contextmanager
def watched(encoder: StrategyEncoder, watch: Callable[[Strategy], Strategy]) -> Iterator[None]:
    """Within it, `watch` is shown everything that the encoder recognises and says what the policy
    gets."""
    before, encoder.watch = encoder.watch, watch
    try:
        yield
    finally:
        encoder.watch = before


def sinusoids(positions: Sequence[int], width: int) -> Tensor:
    """[positions, width]: sines and cosines of wavelengths from 2π to 20,000π steps (Vaswani et al.
    2017)."""
    at = torch.tensor(positions, dtype=torch.float32).unsqueeze(1)
    rates = torch.exp(-math.log(10_000) * torch.arange(0, width, 2) / width)
    return torch.stack([torch.sin(at * rates), torch.cos(at * rates)], -1).flatten(1)


class StrategyNetwork(StandardNetwork):
    """The standard network, which also knows how the opponent plays."""

    settings = StrategyConfig

    @classmethod
    def history(cls, names: Sequence[str], config: PolicyConfig) -> History:
        c = cast(StrategyConfig, config.network_settings).filled()
        assert c.stride is not None
        return History.of(names, c.entries, c.history, c.stride)

    def __init__(self, observation: Observation, config: PolicyConfig) -> None:
        self.strategy = cast(StrategyConfig, config.network_settings)
        super().__init__(observation, config)

    def make_encoder(self, part: Part, units: int) -> nn.Module:
        if isinstance(part, History):
            return StrategyEncoder(part, self.strategy, units)
        return super().make_encoder(part, units)

    @property
    def encoder_of_history(self) -> StrategyEncoder:
        encoder = self.seen[HISTORY]
        assert isinstance(encoder, StrategyEncoder)
        return encoder

    def forward(
        self, numbers: Tensor, seen: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        vector = self.encoder_of_history.vector_of(seen[HISTORY])
        joining = {HISTORY: self.encoder_of_history.into(vector)}
        return self.features(numbers, seen, joining), {"vector": vector}

    def auxiliary(self, policy: Policy) -> Auxiliary | None:
        return (
            NextKeys(policy, self.encoder_of_history.into.in_features, self.strategy.next_keys)
            if self.strategy.next_keys
            else None
        )

    def metrics(self) -> NetworkMetrics:
        return StrategyMetrics(self.encoder_of_history)

    def join(self, loaded: Collection[str]) -> None:
        """A vector that means nothing yet would make a trained policy forget in the first updates
        what it knew."""
        if not any(name.startswith(f"seen.{HISTORY}.") for name in loaded):
            nn.init.zeros_(self.encoder_of_history.into.weight)


def strategy_encoder(policy: ActingPolicy) -> StrategyEncoder | None:
    """The actor's, where a policy has one."""
    network = policy.actor.network if isinstance(policy, Policy) else None
    return network.encoder_of_history if isinstance(network, StrategyNetwork) else None
