"""The policy of a role: observation → encoder → memory → action distribution and value.

Axes: obs_lrf [steps, rows, entries], or padded with zeros to `inputs`; a state is [rows,
state_size]; values are in units of scaled reward, as the algorithm learns them; `expected_reward`
gives them in the game's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ludus.config import PolicyConfig
from ludus.errors import LudusError
from ludus.networks.encoders import Part
from ludus.networks.heads import ActionSpace, Distribution
from ludus.networks.history import HISTORY
from ludus.networks.memory import LSTM, NoMemory, orthogonal
from ludus.networks.network import Network, Observation
from ludus.networks.normalise import RunningNorm
from ludus.registry import NETWORKS


def aligned(size: int) -> int:
    """The next multiple of 8: matrix units run several times faster on such sizes. What is added
    stays zero or unused."""
    return -(-size // 8) * 8


def network_class(name: str) -> type[Network]:
    """By its name, or the import path of one's own."""
    found = NETWORKS.find(name)
    if not issubclass(found, Network):
        raise LudusError(
            f"the network '{name}' does not inherit ludus.Network: write class "
            f"{found.__name__}(ludus.Network)"
        )
    if found.forward is nn.Module.forward:
        raise LudusError(f"the network '{name}' has no method 'forward', which gives features")
    return found


def make_network(observation: Observation, config: PolicyConfig) -> Network:
    return network_class(config.network)(observation, config)


class Trunk(nn.Module):
    """A network, then memory."""

    def __init__(self, observation: Observation, config: PolicyConfig) -> None:
        super().__init__()
        self.network = make_network(observation, config)
        features = self.network.outputs
        self.memory: NoMemory | LSTM = (
            LSTM(features, config.memory_size) if config.memory == "lstm" else NoMemory()
        )
        self.outputs = config.memory_size if config.memory == "lstm" else features

    def first_weight(self, head: nn.Module) -> Tensor:
        """The weights [units, inputs] that meet the observation: those of the head where there is
        no layer before it."""
        first = self.network.input_weight
        if first is not None:
            return first
        return next(p for layer in (self.memory, head) for p in layer.parameters())

    def forward(
        self, x_lrf: Tensor, seen: Mapping[str, Tensor], state: Tensor, starts: Tensor
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Features, the state after them, and what the network notes for its auxiliary loss."""
        encoded = self.network(x_lrf, seen)
        features, notes = encoded if isinstance(encoded, tuple) else (encoded, {})
        features, state = self.memory(features, state, starts)
        return features, state, notes


class Output(NamedTuple):
    distribution: Distribution
    # [steps, rows], as the network has it: `expected_reward` gives it in units of the game's reward
    value: Tensor
    state: Tensor  # [rows, state_size] after the last step
    features: Tensor  # [steps, rows, trunk outputs]
    notes: Mapping[str, Tensor] = {}
    """What the actor's network notes beside its features."""


class Policy(nn.Module):
    """Actor and critic with their normalisers. Everything needed to act is in its state dict."""

    history_entries: Tensor

    def __init__(
        self,
        entries: Sequence[str],
        space: ActionSpace,
        config: PolicyConfig,
        seen: Mapping[str, Part] | None = None,
        reward_scale: float = 1.0,
    ) -> None:
        """`reward_scale`: what rewards are multiplied by before values are learned from them."""
        super().__init__()
        self.space, self.reward_scale = space, reward_scale
        history = network_class(config.network).history(entries, config)
        self.seen: dict[str, Part] = {**(seen or {}), **({HISTORY: history} if history else {})}
        kept = history.entries if history else ()
        self.register_buffer(
            "history_entries", torch.tensor(kept, dtype=torch.long), persistent=False
        )
        self.normalise_observation = config.normalise_observation
        self.entries, self.inputs = len(entries), aligned(len(entries))
        self.observation_norm = RunningNorm(self.inputs)
        self.value_norm = RunningNorm(1, limit=float("inf"))
        observation = Observation(tuple(entries), self.inputs, self.seen)
        self.actor = Trunk(observation, config)
        self.critic = Trunk(observation, config) if config.separate_value else None
        features = self.actor.outputs
        self.action_head = orthogonal(nn.Linear(features, aligned(space.num_parameters)), 0.01)
        self.value_head = orthogonal(nn.Linear(features, aligned(1)), 1.0)
        quiet = (
            [i for i, name in enumerate(entries) if name.startswith(config.quiet_inputs)]
            if config.quiet_inputs
            else []
        )
        with torch.no_grad():
            for trunk, head in (
                (self.actor, self.action_head),
                (self.critic or self.actor, self.value_head),
            ):
                if quiet:
                    trunk.first_weight(head)[:, quiet] = 0.0
        start = torch.tensor(
            [
                config.initial_log_std_of.get(n, config.initial_log_std)
                for n in space.continuous_names
            ]
        )
        self.log_std = nn.Parameter(
            start.float()
            if len(start)
            else torch.full((space.continuous,), float(config.initial_log_std))
        )
        keys = space.continuous * (2 if space.state_dependent_std else 1)
        with torch.no_grad():
            # a role may lack an entry of another
            for name in config.initial_mean_of.keys() & set(space.continuous_names):
                self.action_head.bias[space.continuous_names.index(name)] = config.initial_mean_of[
                    name
                ]
            self.action_head.bias[keys : keys + space.binary] = config.initial_key_logit
            if space.state_dependent_std:
                self.action_head.bias[space.continuous : keys] = self.log_std

    @property
    def state_size(self) -> int:
        return self.actor.memory.state_size + (self.critic.memory.state_size if self.critic else 0)

    def initial_state(self, rows: int) -> Tensor:
        return torch.zeros(rows, self.state_size, device=self.log_std.device)

    def forward(
        self,
        obs_lrf: Tensor,
        state: Tensor,
        starts: Tensor,
        mask: Tensor | None = None,
        seen: Mapping[str, Tensor] | None = None,
    ) -> Output:
        x = self.prepared(obs_lrf)
        seen = self.normalised(seen or {})
        split = self.actor.memory.state_size
        features, actor_state, notes = self.actor(x, seen, state[:, :split], starts)
        if self.critic is None:
            value, new_state = self.value_head(features), actor_state
        else:
            critic_features, critic_state, _ = self.critic(x, seen, state[:, split:], starts)
            value, new_state = (
                self.value_head(critic_features),
                torch.cat([actor_state, critic_state], -1),
            )
        distribution = Distribution(self.space, self.action_head(features), self.log_std, mask)
        return Output(distribution, value[..., 0].float(), new_state, features, notes)

    def prepared(self, observation: Tensor) -> Tensor:
        """[…, inputs]: padded and normalised, as the first layer gets it."""
        if observation.shape[-1] < self.inputs:
            observation = nn.functional.pad(observation, (0, self.inputs - observation.shape[-1]))
        if self.normalise_observation:
            return self.observation_norm(observation.float())
        return (
            observation
            if torch.is_autocast_enabled(observation.device.type)
            else observation.float()
        )

    def remembered(self, observation: Tensor) -> Tensor:
        """What the history keeps of an observation [rows, entries]: [rows, 1, entries of the
        history + 1]."""
        return nn.functional.pad(observation[:, self.history_entries], (0, 1), value=1.0).unsqueeze(
            1
        )

    def normalised(self, seen: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A history is normalised as the observations it is made of."""
        if HISTORY not in seen or not self.normalise_observation:
            return dict(seen)
        history = seen[HISTORY].float()
        values = self.observation_norm(history[..., :-1], self.history_entries)
        return {**seen, HISTORY: torch.cat([values, history[..., -1:]], -1)}

    def real_value(self, value: Tensor) -> Tensor:
        """In units of scaled reward."""
        return value * self.value_norm.std + self.value_norm.mean

    def expected_reward(self, value: Tensor) -> Tensor:
        """The same in units of the game's reward: what anybody but the algorithm wants to know."""
        return self.real_value(value) / self.reward_scale

    def normal_value(self, value: Tensor) -> Tensor:
        return (value - self.value_norm.mean) / self.value_norm.std

    @torch.no_grad()
    def update_value_norm(self, targets: Tensor, valid: Tensor) -> None:
        """New statistics of value targets; the value head is rescaled so that its real-unit outputs
        stay what they were."""
        old_mean, old_std = self.value_norm.mean.clone(), self.value_norm.std.clone()
        self.value_norm.update(targets.reshape(-1, 1), valid.reshape(-1))
        mean, std = self.value_norm.mean, self.value_norm.std
        self.value_head.weight.mul_(old_std / std)
        self.value_head.bias.copy_((self.value_head.bias * old_std + old_mean - mean) / std)
