"""CartPole with one thing wrong each, for failures that lie in an env and not in settings.
Registered with Gymnasium on import."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv

KEPT: list[np.ndarray] = []
POOL: list[float] = []


def work(rounds: int) -> float:
    """Time spent in plain Python."""
    total = 0.0
    for i in range(rounds):
        total += i * 0.5
    return total


class SearchedHistory(CartPoleEnv):
    """Every step is noted, and the whole list is looked through again and again: each step is
    slower than the last."""

    notes: list[float] = []  # noqa: RUF012 (shared by all envs: that is the fault)

    def step(self, action: Any) -> Any:
        self.notes.append(float(self.state[0]))  # type: ignore[index]
        max(note * note for note in self.notes)
        min(note * note for note in self.notes)
        return super().step(action)


class UnboundedHistory(CartPoleEnv):
    """Every observation is kept for ever, with far more room than it needs."""

    def step(self, action: Any) -> Any:
        KEPT.append(np.ones(4_000))
        return super().step(action)


class Terrain(CartPoleEnv):
    """A world that takes longer to build than an episode to play; `rebuilt`: in every reset,
    although it is always the same."""

    def __init__(self, rebuilt: bool) -> None:
        super().__init__()
        self.rebuilt, self.built = rebuilt, False

    def reset(self, **options: Any) -> Any:
        if self.rebuilt or not self.built:
            work(1_000_000)
        self.built = True
        return super().reset(**options)


class TaskPool(CartPoleEnv):
    """A curriculum that weighs all of its tasks in every reset before choosing one, and adds some
    more each time up to `most`."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def reset(self, **options: Any) -> Any:
        POOL.extend([0.0] * min(1200, self.most - len(POOL)))
        sum(math.exp(-abs(weight)) for weight in POOL)
        return super().reset(**options)


class PythonEveryStep(CartPoleEnv):
    """A tenth of the way into training a slow path in plain Python is taken in every step, and
    takes longer and longer."""

    steps = 0

    def step(self, action: Any) -> Any:
        PythonEveryStep.steps += 1
        work(max(0, PythonEveryStep.steps - 3_000))
        return super().step(action)


class Corridor(gymnasium.Env):
    """The reward is at the end of a corridor, `need` steps from the start; the env knows no time
    limit of its own."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, need: int) -> None:
        self.need = need

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.at = 0
        return self._look(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.at = max(0, self.at + (1 if action else -1))
        there = self.at >= self.need
        return self._look(), 1.0 if there else 0.0, there, False, {}

    def _look(self) -> np.ndarray:
        return np.array([self.at / self.need, 1.0], np.float32)


class LargeRewards(CartPoleEnv):
    """Ten thousand for every step instead of one."""

    def step(self, action: Any) -> Any:
        observation, reward, *rest = super().step(action)
        return observation, 1e4 * float(reward), *rest


for _env in (SearchedHistory, UnboundedHistory, PythonEveryStep, LargeRewards):
    gymnasium.register(f"{_env.__name__}-v0", f"{__name__}:{_env.__name__}", max_episode_steps=500)
# short episodes, so that there are resets to speak of also once the pole is kept up
gymnasium.register(
    "RebuiltTerrain-v0", f"{__name__}:Terrain", max_episode_steps=60, kwargs={"rebuilt": True}
)
gymnasium.register(
    "KeptTerrain-v0", f"{__name__}:Terrain", max_episode_steps=60, kwargs={"rebuilt": False}
)
gymnasium.register(
    "PoolScanned-v0", f"{__name__}:TaskPool", max_episode_steps=60, kwargs={"most": 10**9}
)
gymnasium.register(
    "PoolBounded-v0", f"{__name__}:TaskPool", max_episode_steps=60, kwargs={"most": 400}
)
# cut off after 12 steps: 30 are needed to earn anything; or 6
gymnasium.register(
    "CutTooEarly-v0", f"{__name__}:Corridor", max_episode_steps=12, kwargs={"need": 30}
)
gymnasium.register("Sparse-v0", f"{__name__}:Corridor", max_episode_steps=200, kwargs={"need": 60})
gymnasium.register(
    "NotSparse-v0", f"{__name__}:Corridor", max_episode_steps=200, kwargs={"need": 8}
)
gymnasium.register("CutInTime-v0", f"{__name__}:Corridor", max_episode_steps=12, kwargs={"need": 4})
