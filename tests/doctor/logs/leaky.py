"""CartPole with a planted leak: every step is kept for ever and the whole history is looked through
again."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import CartPoleEnv

KEPT: list[np.ndarray] = []
KILOBYTES = 25
LOOKS_EVERY = 50


class Leaky(CartPoleEnv):
    def step(self, action: Any) -> Any:
        KEPT.append(np.ones(KILOBYTES * 128))
        if len(KEPT) % LOOKS_EVERY == 0:
            sum(float(kept[0]) for kept in KEPT for _ in range(12))
        return super().step(action)


gymnasium.register("Leaky-v0", "tests.doctor.logs.leaky:Leaky", max_episode_steps=500)
