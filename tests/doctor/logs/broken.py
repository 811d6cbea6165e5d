"""CartPoles that are broken in one way each, to make logs of sick runs with."""

from typing import Any

import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

CHANGES_AFTER = 1500  # steps of one env


class Hasty(CartPoleEnv):
    """Ends as soon as it starts: at the first push to the right, and at the second push anyway."""

    def reset(self, **options: Any) -> Any:
        self.length = 0
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        self.length += 1
        observation, reward, _, truncated, told = super().step(action)
        return observation, reward, self.length >= 2 or action == 1, truncated, told


class Shifting(CartPoleEnv):
    """Becomes another game on the way: from some step on, episodes are cut after twenty steps."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.length = 0, 0

    def reset(self, **options: Any) -> Any:
        self.length = 0
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        self.steps += 1
        self.length += 1
        observation, reward, terminated, truncated, told = super().step(action)
        return observation, reward, terminated, truncated or (self.steps > CHANGES_AFTER and self.length >= 20), told


class Loud(CartPoleEnv):
    """Observations in units so small that every gate of a memory is wide open or shut."""

    def reset(self, **options: Any) -> Any:
        observation, told = super().reset(**options)
        return 300 * observation, told

    def step(self, action: Any) -> Any:
        observation, *rest = super().step(action)
        return 300 * observation, *rest


for _kind in (Hasty, Shifting, Loud):
    gymnasium.register(f"{_kind.__name__}-v0", f"{__name__}:{_kind.__name__}", max_episode_steps=200)
