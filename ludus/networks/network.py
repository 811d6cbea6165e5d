"""What turns an observation into features. A network of your own is a class like these:

    class MyNetwork(Network):
        def __init__(self, observation, config):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(observation.size, 64), nn.ReLU())
            self.outputs = 64

        def forward(self, numbers, seen):
            return self.layers(numbers)

Memory, the action distribution and the value follow: they are not the network's business. Axes:
numbers [steps, rows, size]; pictures [steps, rows, frames, height, width], bytes; tokens [steps,
rows, count, 3], bytes; histories as in `history.py`; features [steps, rows, outputs].
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from torch import Tensor, nn

from ludus.config import NetworkConfig, PolicyConfig
from ludus.networks.history import History
from ludus.protocols import Batch

if TYPE_CHECKING:
    from ludus.networks.encoders import Part
    from ludus.networks.policy import Output, Policy


@dataclass(frozen=True)
class Observation:
    """What there is to see."""

    names: tuple[str, ...]
    """Of the numbers."""
    size: int
    """Of the numbers as the network gets them: normalised, and padded with zeros to a multiple of
    8, because matrix units are several times faster on such sizes."""
    seen: Mapping[str, Part]
    """Pictures, tokens and the history, by name."""


class Auxiliary(nn.Module):
    """A loss that a network brings beside the algorithm's own. Its weights are learned with those
    of the policy, and saved, but nothing that acts needs them."""

    name: str
    """Of the metric: learner/ROLE/NAME_loss."""
    weight: float

    def record(self, batch: Batch, agents: slice) -> dict[str, Tensor]:
        """What it wants to know of every step of the rollout, after the step: each [rows, …]."""
        return {}

    def prepare(self, rollout: Any) -> dict[str, Tensor]:
        """What it derives from the whole rollout before the first update: each [steps, rows, …]."""
        return {}

    def forward(
        self, output: Output, rows: Mapping[str, Tensor], weight: Tensor, rollout: Any
    ) -> Tensor:
        """The loss of a minibatch [steps, chunks]: `rows` holds what was recorded and prepared, and
        the observation, starts and valid. `weight` sums to 1 over the rows that count: `(cost *
        weight).sum()` is their mean."""
        raise NotImplementedError


class NetworkMetrics(Protocol):
    """What a network says about itself, from some rows before and after an update."""

    def before(self, seen: Mapping[str, Tensor]) -> None: ...
    def after(self, seen: Mapping[str, Tensor]) -> None: ...
    def read(self) -> dict[str, float]: ...


class Network(nn.Module):
    """The base of all networks. `outputs` says how many features `forward` gives."""

    settings: ClassVar[type[NetworkConfig]] = NetworkConfig
    """A dataclass of the network's own settings, which are set as policy.NAME.KEY."""
    outputs: int

    @classmethod
    def history(cls, names: Sequence[str], config: PolicyConfig) -> History | None:
        """What it looks back at. `names`: the entries of the observation."""
        return None

    @property
    def input_weight(self) -> Tensor | None:
        """The weights [units, inputs] that meet the numbers first, where policy.quiet_inputs can
        set some of them to zero."""
        return None

    def auxiliary(self, policy: Policy) -> Auxiliary | None:
        """A loss of its own."""
        return None

    def metrics(self) -> NetworkMetrics | None:
        """What is logged of it as NETWORK/ROLE/KEY."""
        return None

    def join(self, loaded: Collection[str]) -> None:
        """A trained policy takes over weights (`loaded` are those of this network). Parts that are
        new may keep silent at first, so that it plays as it did."""
