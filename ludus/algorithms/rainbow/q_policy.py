"""A policy that acts by the values of its actions: what Rainbow learns, called as any other
`Policy`.

Axes: obs_lrf [steps, rows, entries]; features [steps, rows, units]; values [steps, rows, quantiles,
actions]. Without quantiles there is one value per action. Values are in units of scaled reward,
except `Output.value`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ludus.algorithms.rainbow.config import RainbowConfig
from ludus.config import PolicyConfig
from ludus.networks.heads import FORBIDDEN, ActionSpace, Distribution
from ludus.networks.memory import ROOT_2, orthogonal
from ludus.networks.network import Observation
from ludus.networks.normalise import RunningNorm
from ludus.networks.policy import Output, Trunk, aligned
from ludus.sim.layout import Seen

IMPOSSIBLE = 1e-30  # a probability that never comes up, with a finite logarithm


class NoisyLinear(nn.Module):
    """A linear layer whose weights carry factorised noise of learned size (Fortunato et al. 2018);
    none in evaluation.

    One draw serves all rows until `draw` is called again.
    """

    noise_in: Tensor
    noise_out: Tensor

    def __init__(self, inputs: int, outputs: int, noise: float) -> None:
        super().__init__()
        reach = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-reach, reach))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-reach, reach))
        self.weight_noise = nn.Parameter(torch.full((outputs, inputs), noise * reach))
        self.bias_noise = nn.Parameter(torch.full((outputs,), noise * reach))
        self.register_buffer("noise_in", torch.zeros(inputs), persistent=False)
        self.register_buffer("noise_out", torch.zeros(outputs), persistent=False)

    def draw(self) -> None:
        for noise in (self.noise_in, self.noise_out):
            noise.normal_()
            noise.copy_(noise.sign() * noise.abs().sqrt())

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return nn.functional.linear(x, self.weight, self.bias)
        weight = self.weight + self.weight_noise * torch.outer(self.noise_out, self.noise_in)
        return nn.functional.linear(x, weight, self.bias + self.bias_noise * self.noise_out)


class Cosines(nn.Module):
    """How a quantile (a share between 0 and 1) meets the features: as cosines, through a layer,
    multiplied (Dabney et al. 2018)."""

    frequencies: Tensor

    def __init__(self, count: int, features: int) -> None:
        super().__init__()
        self.register_buffer(
            "frequencies", math.pi * torch.arange(1, count + 1).float(), persistent=False
        )
        self.layer = orthogonal(nn.Linear(count, features), ROOT_2)

    def forward(self, features: Tensor, shares: Tensor) -> Tensor:
        """[…, units] and […, quantiles] → […, quantiles, units]."""
        embedded = torch.relu(self.layer(torch.cos(shares.unsqueeze(-1) * self.frequencies)))
        return features.unsqueeze(-2) * embedded


class QNetwork(nn.Module):
    """Encoder, quantiles, streams: the values of all actions."""

    middles: Tensor

    def __init__(
        self,
        observation: Observation,
        actions: int,
        policy: PolicyConfig,
        rainbow: RainbowConfig,
    ) -> None:
        super().__init__()
        self.actor = Trunk(observation, policy)
        units = self.actor.outputs
        self.norm = nn.BatchNorm1d(units) if rainbow.batch_norm else None
        self.cosines = Cosines(rainbow.cosines, units) if rainbow.iqn else None
        self.advantage = self._stream(units, actions, rainbow)
        self.value = self._stream(units, 1, rainbow) if rainbow.dueling else None
        count = rainbow.quantiles
        self.register_buffer("middles", (torch.arange(count) + 0.5) / count, persistent=False)

    @staticmethod
    def _stream(units: int, outputs: int, rainbow: RainbowConfig) -> nn.Sequential:
        if rainbow.noisy:
            return nn.Sequential(
                NoisyLinear(units, rainbow.stream, rainbow.noise),
                nn.ReLU(),
                NoisyLinear(rainbow.stream, outputs, rainbow.noise),
            )
        hidden, last = nn.Linear(units, rainbow.stream), nn.Linear(rainbow.stream, outputs)
        return nn.Sequential(orthogonal(hidden, ROOT_2), nn.ReLU(), orthogonal(last, 0.1))

    def draw_noise(self) -> None:
        for layer in self.modules():
            if isinstance(layer, NoisyLinear):
                layer.draw()

    def features(self, x_lrf: Tensor, seen: Mapping[str, Tensor], learning: bool = False) -> Tensor:
        """`learning`: batch normalisation takes the statistics of this batch, and remembers
        them."""
        no_memory = x_lrf.new_zeros(x_lrf.shape[1], 0)
        features, _, _ = self.actor(x_lrf, seen, no_memory, no_memory)
        if self.norm is not None:
            self.norm.train(learning)
            features = self.norm(features.flatten(0, 1)).view_as(features)
        return features

    def values(self, features: Tensor, shares: Tensor | None = None) -> Tensor:
        """[…, quantiles, actions] at these shares; one value without quantiles."""
        if self.cosines is not None:
            assert shares is not None
            x = self.cosines(features, shares)
        else:
            x = features.unsqueeze(-2)
        out = self.advantage(x)
        if self.value is not None:
            out = self.value(x) + out - out.mean(-1, keepdim=True)
        return out.float()

    def expectation(self, features: Tensor) -> Tensor:
        """[…, actions]: the mean over evenly spaced quantiles, so that it is a function of the
        observation alone."""
        return self.values(features, self.middles).mean(-2)


class QPolicy(nn.Module):
    """Acts by the highest value. Everything needed to act is in its state dict.

    In training mode the `online` network decides, noise included. In evaluation it is the running
    average of its weights, without noise. A *sampled* action is then the best one too, except for a
    share `play_epsilon` of random ones.
    """

    state_size = 0

    def __init__(
        self,
        entries: Sequence[str],
        space: ActionSpace,
        policy: PolicyConfig,
        rainbow: RainbowConfig,
        seen: Mapping[str, Seen] | None = None,
    ) -> None:
        super().__init__()
        self.space, self.seen = space, seen or {}
        self.normalise_observation = policy.normalise_observation
        self.reward_scale, self.play_epsilon = rainbow.reward_scale, rainbow.play_epsilon
        self.entries, self.inputs = len(entries), aligned(len(entries))
        self.observation_norm = RunningNorm(self.inputs)
        observation = Observation(tuple(entries), self.inputs, self.seen)
        self.online = QNetwork(observation, space.choices[0], policy, rainbow)
        quiet = (
            [i for i, name in enumerate(entries) if name.startswith(policy.quiet_inputs)]
            if policy.quiet_inputs
            else []
        )
        with torch.no_grad():
            streams = filter(None, (self.online.advantage, self.online.value))
            for stream in streams if quiet else ():
                self.online.actor.first_weight(stream)[:, quiet] = 0.0
        self.averaged = (
            copy.deepcopy(self.online).requires_grad_(False) if rainbow.average else None
        )

    def initial_state(self, rows: int) -> Tensor:
        return torch.zeros(rows, 0, device=self.observation_norm.mean.device)

    @property
    def acting(self) -> QNetwork:
        return self.online if self.training or self.averaged is None else self.averaged

    def prepared(self, obs_lrf: Tensor) -> Tensor:
        """Padded and normalised."""
        x = nn.functional.pad(obs_lrf.float(), (0, self.inputs - obs_lrf.shape[-1]))
        return self.observation_norm(x) if self.normalise_observation else x

    def allowed(self, q: Tensor, mask: Tensor | None) -> Tensor:
        """Values with those of forbidden actions out of reach."""
        if mask is None or not self.space.masked:
            return q
        at = self.space.choice_mask_at[0]
        return q.masked_fill(~mask[..., at : at + q.shape[-1]], FORBIDDEN)

    def q_values(
        self, obs_lrf: Tensor, mask: Tensor | None = None, seen: Mapping[str, Tensor] | None = None
    ) -> Tensor:
        """[steps, rows, actions]."""
        network = self.acting
        return self.allowed(
            network.expectation(network.features(self.prepared(obs_lrf), seen or {})), mask
        )

    def forward(
        self,
        obs_lrf: Tensor,
        state: Tensor,
        starts: Tensor,
        mask: Tensor | None = None,
        seen: Mapping[str, Tensor] | None = None,
    ) -> Output:
        network = self.acting
        features = network.features(self.prepared(obs_lrf), seen or {})
        q = self.allowed(network.expectation(features), mask)
        best = nn.functional.one_hot(q.argmax(-1), q.shape[-1]).float()
        possible = (q > FORBIDDEN).float()
        share = (1 - self.play_epsilon) * best + self.play_epsilon * possible / possible.sum(
            -1, keepdim=True
        ).clamp(min=1.0)
        distribution = Distribution(self.space, share.clamp(min=IMPOSSIBLE).log(), None, mask)
        return Output(distribution, q.amax(-1) / self.reward_scale, state, features)

    def remembered(self, observation: Tensor) -> Tensor:
        raise AssertionError("a network that looks back is refused: nothing keeps a history")

    def expected_reward(self, value: Tensor) -> Tensor:
        """As it is: what `forward` gives is in units of the game's reward already."""
        return value

    @torch.no_grad()
    def follow(self, share: Tensor) -> None:
        """Moves the running average this far towards the online network."""
        if self.averaged is not None:
            mine: list[Tensor] = list(self.averaged.parameters())
            apart = torch._foreach_sub(list(self.online.parameters()), mine)
            torch._foreach_mul_(apart, share)
            torch._foreach_add_(mine, apart)
            _copy_statistics(self.averaged, self.online)


@torch.no_grad()
def move(network: QNetwork, towards: QNetwork, share: float) -> None:
    """Moves all weights this far towards those of another network; 1 copies them."""
    mine: list[Tensor] = list(network.parameters())
    theirs: list[Tensor] = list(towards.parameters())
    if share == 1:
        torch._foreach_copy_(mine, theirs)
    else:
        torch._foreach_lerp_(mine, theirs, share)
    _copy_statistics(network, towards)


def _copy_statistics(network: QNetwork, source: QNetwork) -> None:
    """What batch normalisation remembers is an average already."""
    if network.norm is not None and source.norm is not None:
        for a, b in zip(network.norm.buffers(), source.norm.buffers(), strict=True):
            a.copy_(b)
