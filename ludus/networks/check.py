"""Settings of networks that do not fit a game's observations and actions."""

from __future__ import annotations

from ludus.config import OF_ACTIONS, Config
from ludus.errors import LudusError, nearest
from ludus.networks.sets import sets_of
from ludus.protocols import Layout


def check_network(config: Config, layout: Layout) -> None:
    """Refuses names of entries that there are not, and parts that have nothing to join."""
    policy = config.policy
    for key in OF_ACTIONS:
        for entry in getattr(policy, key):
            if entry not in layout.continuous:
                raise LudusError(f"policy.{key}.{entry}: {nearest(entry, layout.continuous)}")
    for prefix in policy.quiet_inputs:
        _check_prefix(layout, prefix, f"policy.quiet_inputs names '{prefix}'")
    sets_of(layout.observation, policy.sets)
    strategy = policy.strategy
    if strategy.size != "none":
        _check_prefix(layout, strategy.entries, f"policy.strategy.entries is '{strategy.entries}'")
    if (layout.seen or strategy.size != "none") and not policy.hidden:
        raise LudusError(
            f"{config.game} has pictures, tokens or a strategy vector, which join in the first "
            "hidden layer: give policy.hidden a layer"
        )


def _check_prefix(layout: Layout, prefix: str, what: str) -> None:
    if not any(name.startswith(prefix) for name in layout.observation):
        raise LudusError(
            f"{what}, but no observation entry begins so: {nearest(prefix, layout.observation)}"
        )
