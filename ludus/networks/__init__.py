"""Torch modules: networks, memory, heads, normalisers, and policies made of them."""

from ludus.registry import NETWORKS

NETWORKS.register(
    "standard",
    settings="ludus.config.network:NetworkConfig",
    path="ludus.networks.standard:StandardNetwork",
)
NETWORKS.register(
    "strategy",
    settings="ludus.networks.strategy_config:StrategyConfig",
    path="ludus.networks.strategy:StrategyNetwork",
)
