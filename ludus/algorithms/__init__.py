"""Learning algorithms."""

from ludus.registry import ALGORITHMS

ALGORITHMS.register(
    "ppo", settings="ludus.algorithms.ppo.config:PPOConfig", path="ludus.algorithms.ppo.ppo:PPO"
)
ALGORITHMS.register(
    "rainbow",
    settings="ludus.algorithms.rainbow.config:RainbowConfig",
    path="ludus.algorithms.rainbow.rainbow:Rainbow",
)
