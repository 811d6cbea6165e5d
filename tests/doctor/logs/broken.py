"""CartPoles that are broken in one way each, to make logs of sick runs with."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv

from ludus.examine.probes import Probe

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
        return (
            observation,
            reward,
            terminated,
            truncated or (self.steps > CHANGES_AFTER and self.length >= 20),
            told,
        )


class Compound(CartPoleEnv):
    """Rewards that grow by a twentieth with every step that the pole stands: the better the policy,
    the larger by far."""

    def reset(self, **options: Any) -> Any:
        self.worth = 1.0
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        self.worth *= 1.05
        observation, _, *rest = super().step(action)
        return observation, self.worth, *rest


class Forbidding(CartPoleEnv):
    """A third action, to do nothing, which the mask never allows: its index is one too low."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(3)

    def reset(self, **options: Any) -> Any:
        observation, _ = super().reset(**options)
        return observation, {"action_mask": np.array([1, 1, 0], np.int8)}

    def step(self, action: Any) -> Any:
        *rest, _ = super().step(min(int(action), 1))
        return *rest, {"action_mask": np.array([1, 1, 0], np.int8)}


class Late(Probe):
    """What has to be known is shown in the very step it is asked for: there is nothing to
    remember."""

    steps = 5

    def look(self) -> np.ndarray:
        return np.array([self.signal if self.time == self.steps - 1 else 0.0], np.float32)

    def pay(self, action: int) -> float:
        if self.time < self.steps - 1:
            return 0.0
        return 1.0 if (action == 1) == (self.signal > 0) else -1.0


for _kind in (Hasty, Shifting, Compound, Forbidding, Late):
    gymnasium.register(
        f"{_kind.__name__}-v0", f"{__name__}:{_kind.__name__}", max_episode_steps=200
    )
