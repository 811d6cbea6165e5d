"""Settings of the strategy network: the section policy.strategy."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from ludus.config.limits import AtLeast, Below, OneOf
from ludus.config.network import NetworkConfig
from ludus.errors import LudusError, nearest
from ludus.networks.history import HISTORY
from ludus.protocols import Layout

if TYPE_CHECKING:
    from ludus.config.experiment import Config

STRATEGY_SIZES: dict[str, dict[str, int]] = {
    "small": {"stride": 5, "layers": 2, "heads": 4, "width": 64, "vector": 64},
    "full": {"stride": 1, "layers": 6, "heads": 8, "width": 256, "vector": 256},
}


@dataclass(kw_only=True)
class StrategyConfig(NetworkConfig):
    """A transformer over what was seen of the opponent, whose output joins the observation in the
    first hidden layer."""

    size: Annotated[str, OneOf(tuple(STRATEGY_SIZES))] = "small"
    """small (for CPUs) or full (for a GPU): what is not given below comes from it."""
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
    next_keys: Annotated[float, AtLeast(0)] = 0.0
    """Weight of predicting which keys the opponent presses in a later step of the rollout, from the
    strategy vector of now and the observation of then; 0: no such loss."""
    dropout: Annotated[float, Below(1)] = 0.0
    """Share of units left out while learning. The policy that acted had none, so ratios of
    probabilities get noisier."""

    def resolve(self) -> None:
        for name, value in STRATEGY_SIZES.get(self.size, {}).items():
            if getattr(self, name) is None:
                setattr(self, name, value)

    def filled(self) -> StrategyConfig:
        """A copy with what its size says where nothing was given."""
        out = dataclasses.replace(self)
        out.resolve()
        return out

    def check(self) -> None:
        """Refuses settings that cannot work together."""
        s = self.filled()
        if s.width is not None and s.heads is not None and (s.width % s.heads or s.width % 2):
            raise LudusError(
                f"policy.strategy.width={s.width} must be even and divide among {s.heads} heads: "
                f"use a multiple of {2 * s.heads}"
            )

    def check_game(self, config: Config, layout: Layout) -> None:
        teams = [(seats.count, seats.teams) for seats in layout.seats]
        if self.next_keys and not (teams == [(1, 2)] and layout.binary):
            raise LudusError(
                "policy.strategy.next_keys needs a game of one against one with keys, and "
                f"{config.game} is not one: set it to 0"
            )
        if self.dropout and getattr(config.learner, "recompute_activations", False):
            raise LudusError(
                f"{config.section}.recompute_activations would leave other units out than "
                "policy.strategy.dropout did: use one"
            )
        if not config.policy.hidden:
            raise LudusError(
                "the strategy vector joins in the first hidden layer: give policy.hidden a layer"
            )
        if not any(name.startswith(self.entries) for name in layout.observation):
            raise LudusError(
                f"policy.strategy.entries is '{self.entries}', but no observation entry begins so: "
                f"{nearest(self.entries, layout.observation)}"
            )

    def meaning(self, loaded: Collection[str]) -> dict[str, Any]:
        if not any(f".{HISTORY}." in name for name in loaded):
            return {}
        s = self.filled()
        return {name: getattr(s, name) for name in ("entries", "history", "stride", "heads")}

    @property
    def large(self) -> bool:
        return self.size == "full"
