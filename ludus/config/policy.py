"""Settings of the network of each role."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any

from ludus.config.limits import AtLeast, Below, OneOf
from ludus.errors import LudusError

# of PolicyConfig: by the name of an action entry
OF_ACTIONS = ("initial_log_std_of", "initial_mean_of")
STRATEGY_SIZES: dict[str, dict[str, int]] = {
    "small": {"stride": 5, "layers": 2, "heads": 4, "width": 64, "vector": 64},
    "full": {"stride": 1, "layers": 6, "heads": 8, "width": 256, "vector": 256},
}


@dataclass(kw_only=True)
class StrategyConfig:
    """A transformer over what was seen of the opponent, whose output joins the observation in the
    first hidden layer."""

    size: Annotated[str, OneOf(("none", *STRATEGY_SIZES))] = "none"
    """none, small (for CPUs) or full (for a GPU): what is not given below comes from it."""
    entries: str = "opponent_"
    """The observation entries that make up the history, by the beginning of their name."""
    history: Annotated[int, AtLeast(1)] = 65
    """Steps that it looks back to, the newest included."""
    stride: Annotated[int | None, AtLeast(1)] = None
    """Every so many of them is looked at, counted from the newest (default: small 5, full 1)."""
    layers: Annotated[int | None, AtLeast(1)] = None
    """Attention layers (default: small 2, full 6)."""
    heads: Annotated[int | None, AtLeast(1)] = None
    """Attention heads of a layer (default: small 4, full 8)."""
    width: Annotated[int | None, AtLeast(1)] = None
    """Units of a layer (default: small 64, full 256)."""
    vector: Annotated[int | None, AtLeast(1)] = None
    """Size of the strategy vector (default: small 64, full 256)."""
    dropout: Annotated[float, Below(1)] = 0.0
    """Share of units left out while learning. The policy that acted had none, so ratios of
    probabilities get noisier."""

    def filled(self) -> StrategyConfig:
        """With what its size says where nothing was given."""
        missing: dict[str, Any] = {
            n: v for n, v in STRATEGY_SIZES.get(self.size, {}).items() if getattr(self, n) is None
        }
        return dataclasses.replace(self, **missing)

    def check(self) -> None:
        """Refuses settings that cannot work together."""
        s = self.filled()
        if s.width is not None and s.heads is not None and (s.width % s.heads or s.width % 2):
            raise LudusError(
                f"policy.strategy.width={s.width} must be even and divide among {s.heads} heads: "
                f"use a multiple of {2 * s.heads}"
            )


@dataclass(kw_only=True)
class PolicyConfig:
    """The network of each role."""

    hidden: Annotated[tuple[int, ...], AtLeast(1)] = (128, 128)
    """Sizes of the hidden layers."""
    activation: Annotated[str, OneOf(("tanh", "relu", "silu"))] = "tanh"
    """tanh, relu or silu."""
    memory: Annotated[str, OneOf(("none", "lstm"))] = "none"
    """none or lstm."""
    memory_size: Annotated[int, AtLeast(1)] = 128
    """Units of the LSTM."""
    strategy: StrategyConfig = field(default_factory=StrategyConfig)
    sets: tuple[str, ...] = ()
    """Things of a kind in the observation, by what comes before their number: mate reads mate0_…,
    mate1_… with the same weights and in any order. Empty: every entry has weights of its own."""
    separate_value: bool = True
    """A value network of its own, instead of a head on the actor's."""
    normalise_observation: bool = True
    """Running mean and deviation of every observation entry."""
    state_dependent_std: bool = False
    """The spread of continuous actions is an output of the network, instead of one parameter per
    entry."""
    initial_log_std: float = -0.5
    """Log of the spread of continuous actions at the start."""
    initial_log_std_of: dict[str, float] = field(default_factory=dict)
    """The same for single action entries, such as turn -1.5."""
    initial_mean_of: dict[str, float] = field(default_factory=dict)
    """Mean of single continuous actions at the start, before they are squashed to -1 .. 1 (default:
    0): forward 1 walks ahead."""
    initial_key_logit: float = 0.0
    """Logit of pressing a key at the start: -1 presses it 27% of the time."""
    quiet_inputs: tuple[str, ...] = ()
    """Observation entries, by the beginning of their name, that the network does not hear at the
    start (zero weights): many entries of little meaning, such as rays, drown the few that matter
    until the network has learned to tell them apart."""

    def check(self) -> None:
        """Refuses settings that cannot work together."""
        self.strategy.check()
        if self.sets and self.normalise_observation:
            raise LudusError(
                "policy.sets needs policy.normalise_observation False: statistics of its own for "
                "every entry tell members apart"
            )
        if self.sets and not self.hidden:
            raise LudusError(
                "policy.sets joins in the first hidden layer: give policy.hidden a layer"
            )
