"""Tiny envs whose answers are known: each isolates one part of a learning algorithm. Registered
with Gymnasium on import.

| env                 | what must work                              | what is learned
| | ------------------- | ------------------------------------------- |
-------------------------------------- | | ProbeConstant       | value loss, discount, truncation
| V = 1 / (1 − γ)                        | | ProbeObservation    | observations reach the value
| V(o) = o                               | | ProbeDelay          | credit over two steps
| V(first) = γ, V(second) = 1            | | ProbeAction         | the policy gradient's sign
| always action 1                        | | ProbeMatch          | policy and observation together
| action = observation                   | | ProbeContinuous     | squashed continuous actions
| always 0.5                             | | ProbeMemory         | memory, and its reset at episode
starts     | recall the first observation           | | CartPoleBlind       | memory (velocities are
hidden)              | balance                                | | CartPoleShort       | truncation
at 50 steps bootstraps           | balance for longer than 50             |
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv


class Probe(gymnasium.Env):
    """One observation entry, two actions, `steps` steps."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space: spaces.Space = spaces.Discrete(2)
    steps = 1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.time = 0
        self.signal = float(self.np_random.choice([-1.0, 1.0]))
        return self.look(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        reward = self.pay(int(action))
        self.time += 1
        return self.look(), reward, self.time >= self.steps, False, {}

    def look(self) -> np.ndarray:
        return np.zeros(1, np.float32)

    def pay(self, action: int) -> float:
        return 1.0


class ProbeConstant(Probe):
    """Reward 1 for ever; episodes are cut (truncated) after 20 steps."""

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.time += 1
        return self.look(), 1.0, False, self.time >= 20, {}


class ProbeObservation(Probe):
    def look(self) -> np.ndarray:
        return np.array([self.signal], np.float32)

    def pay(self, action: int) -> float:
        return self.signal


class ProbeDelay(Probe):
    steps = 2

    def look(self) -> np.ndarray:
        return np.array([float(min(self.time, 1))], np.float32)

    def pay(self, action: int) -> float:
        return 1.0 if self.time == 1 else 0.0


class ProbeAction(Probe):
    def pay(self, action: int) -> float:
        return 1.0 if action == 1 else -1.0


class ProbeMatch(Probe):
    def look(self) -> np.ndarray:
        return np.array([self.signal], np.float32)

    def pay(self, action: int) -> float:
        return 1.0 if (action == 1) == (self.signal > 0) else -1.0


class ProbeContinuous(Probe):
    """One step; the reward falls with the square of the distance from 0.5."""

    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        return self.look(), -float((np.asarray(action).reshape(-1)[0] - 0.5) ** 2), True, False, {}


class ProbeMemory(Probe):
    """The signal is shown once; the action five steps later must match it."""

    steps = 5

    def look(self) -> np.ndarray:
        return np.array([self.signal if self.time == 0 else 0.0], np.float32)

    def pay(self, action: int) -> float:
        if self.time < self.steps - 1:
            return 0.0
        return 1.0 if (action == 1) == (self.signal > 0) else -1.0


class CartPoleBlind(gymnasium.ObservationWrapper):
    """CartPole without its two velocities."""

    def __init__(self) -> None:
        super().__init__(CartPoleEnv())
        box = self.env.observation_space
        assert isinstance(box, spaces.Box)
        self.observation_space = spaces.Box(box.low[[0, 2]], box.high[[0, 2]], dtype=np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation[[0, 2]]


for _name in (
    "ProbeConstant",
    "ProbeObservation",
    "ProbeDelay",
    "ProbeAction",
    "ProbeMatch",
    "ProbeContinuous",
    "ProbeMemory",
):
    gymnasium.register(f"{_name}-v0", f"{__name__}:{_name}")
gymnasium.register("CartPoleBlind-v0", f"{__name__}:CartPoleBlind", max_episode_steps=500)
gymnasium.register(
    "CartPoleShort-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=50
)
