"""Adapters in both directions. Importing this makes every game known to Gymnasium, as
"ludus/NAME-v0"."""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

from ludus.games import REGISTRY

for _name in REGISTRY:
    if f"ludus/{_name}-v0" not in registry:
        register(
            f"ludus/{_name}-v0",
            entry_point="ludus.envs.single:LudusEnv",
            vector_entry_point="ludus.envs.vector:LudusVectorEnv",
            kwargs={"game": _name},
        )
