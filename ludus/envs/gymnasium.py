"""A batch of Gymnasium envs, with the same arrays and the same episode semantics as `ludus.sim.Batch`.

One agent, role "agent". Box actions are mapped from [-1, 1] to their bounds; Discrete, MultiDiscrete and MultiBinary become
choices and keys; observations of any fundamental space are flattened.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ludus.errors import LudusError
from ludus.sim.layout import Seats, Seen

if TYPE_CHECKING:
    import torch


class GymLayout:
    """The named layout of a Gymnasium env, as the trainer needs it."""

    seen: Mapping[str, Seen] = {}  # pictures are flattened into the observation

    def __init__(self, env: Any) -> None:
        from gymnasium import spaces

        size = int(spaces.flatdim(env.observation_space))
        self.observation = [f"o{i}" for i in range(size)]
        self.continuous: list[str] = []
        self.binary: list[str] = []
        self.choices: dict[str, list[str]] = {}
        action = env.action_space
        if isinstance(action, spaces.Discrete):
            self.choices["action"] = [str(i) for i in range(int(action.n))]
        elif isinstance(action, spaces.MultiDiscrete):
            for i, n in enumerate(action.nvec.ravel()):
                self.choices[f"action{i}"] = [str(k) for k in range(int(n))]
        elif isinstance(action, spaces.MultiBinary):
            self.binary = [f"key{i}" for i in range(int(np.prod(action.shape)))]
        elif isinstance(action, spaces.Box):
            if not np.isfinite(action.low).all() or not np.isfinite(action.high).all():
                raise LudusError(f"the action space {action} is unbounded: wrap the env so that its actions have limits")
            self.continuous = [f"a{i}" for i in range(int(np.prod(action.shape)))]
        else:
            raise LudusError(f"the action space {action} is not supported: use Discrete, MultiDiscrete, MultiBinary or Box")
        self.binary_mask_at = [-1] * len(self.binary)
        self.choice_mask_at = [-1] * len(self.choices)
        self.sizes = {"num_masked": 0, "agents": 1}
        self.seats = [Seats("agent", 0, 1, 1)]
        self.terms: list[str] = ["reward"]
        self.goals: list[str] = []
        self.num_agents = 1

    def describe(self) -> dict[str, object]:
        return {
            "observation": self.observation,
            "action": {"continuous": self.continuous, "binary": self.binary, "choices": self.choices},
            "roles": {"agent": {"first_agent": 0, "count": 1, "teams": 1}},
            "rewards": {"reward": {"kind": "goal", "roles": None}},
            "goal_metrics": {},
        }


class GymBatch:
    """`num_envs` envs stepped one after the other in this process."""

    def __init__(self, name: str, num_envs: int, *, seed: int = 0, device: str = "cpu") -> None:
        import gymnasium

        if device != "cpu":
            raise LudusError(f"{name} is a Python env and runs on the CPU: use --device cpu")
        self.name, self.num_envs, self.device, self.seed = name, num_envs, device, seed
        try:
            self.envs = [gymnasium.make(name) for _ in range(num_envs)]
        except (gymnasium.error.Error, ModuleNotFoundError, ImportError) as error:
            raise LudusError(f"gym:{name} cannot be made: {error}") from None
        self.layout = GymLayout(self.envs[0])
        self.game = SimpleNamespace(
            name=f"gym:{name}", params={}, goal_metrics={}, roles=[SimpleNamespace(name="agent")], bots={}
        )
        self.controllers = {"agent": {"random": 2}}
        shape = (num_envs, 1)
        self.arrays: dict[str, np.ndarray] = {
            "observation": np.zeros((*shape, len(self.layout.observation)), np.float32),
            "continuous": np.zeros((*shape, len(self.layout.continuous)), np.float32),
            "binary": np.zeros((*shape, len(self.layout.binary)), np.int8),
            "choices": np.zeros((*shape, len(self.layout.choices)), np.int32),
            "action_mask": np.zeros((*shape, 0), bool),
            "reward": np.zeros(shape, np.float32),
            "valid": np.zeros(shape, bool),
            "was_alive": np.zeros(shape, bool),
            "controller": np.zeros(shape, np.int16),
            "agent_terminated": np.zeros(shape, bool),
            "agent_truncated": np.zeros(shape, bool),
            "resetting": np.zeros(num_envs, bool),
            "finished": np.ones(num_envs, bool),
            "counted": np.zeros(num_envs, bool),
            "episode_return": np.zeros(shape, np.float32),
            "episode_length": np.zeros(shape, np.int32),
            "term_totals": np.zeros((*shape, 1), np.float32),
            "outcome": np.zeros(shape, np.int8),
            "goals": np.zeros((*shape, 0), np.float32),
        }
        self._episodes: list[tuple[float, int, bool]] = []
        self._valid_steps = 0
        self._started = False
        self.step()

    def step(self) -> None:
        for i, env in enumerate(self.envs):
            if self.arrays["finished"][i]:
                self._reset(i, env)
            else:
                self._step(i, env)
        self._started = True

    def _reset(self, i: int, env: Any) -> None:
        observation, _ = env.reset(seed=None if self._started else self.seed * 1_000_003 + i)
        a = self.arrays
        self._observe(i, env, observation)
        a["resetting"][i], a["finished"][i], a["counted"][i] = True, False, False
        a["valid"][i] = a["was_alive"][i] = a["agent_terminated"][i] = a["agent_truncated"][i] = False
        a["reward"][i] = a["episode_return"][i] = a["episode_length"][i] = 0
        a["term_totals"][i] = 0

    def _step(self, i: int, env: Any) -> None:
        a = self.arrays
        try:
            observation, reward, terminated, truncated, _ = env.step(self._action(i, env))
        except Exception as error:
            raise LudusError(
                f"env {i} of gym:{self.name} raised {type(error).__name__} in step {a['episode_length'][i, 0] + 1}: {error}"
            ) from error
        if not math.isfinite(float(reward)):
            raise LudusError(f"env {i} of gym:{self.name} gave the reward {reward} in step {a['episode_length'][i, 0] + 1}")
        self._observe(i, env, observation)
        a["resetting"][i], a["valid"][i], a["was_alive"][i], a["reward"][i] = False, True, True, reward
        a["agent_terminated"][i] = terminated
        a["agent_truncated"][i] = truncated and not terminated
        a["finished"][i] = a["counted"][i] = terminated or truncated
        a["episode_return"][i] += reward
        a["term_totals"][i] += reward
        a["episode_length"][i] += 1
        self._valid_steps += 1
        if terminated or truncated:
            self._episodes.append(
                (float(a["episode_return"][i, 0]), int(a["episode_length"][i, 0]), bool(truncated and not terminated))
            )

    def _observe(self, i: int, env: Any, observation: Any) -> None:
        from gymnasium import spaces

        if not isinstance(env.observation_space, spaces.Box):
            observation = spaces.flatten(env.observation_space, observation)
        self.arrays["observation"][i, 0] = np.asarray(observation, np.float32).ravel()

    def _action(self, i: int, env: Any) -> Any:
        from gymnasium import spaces

        space, a = env.action_space, self.arrays
        if a["controller"][i, 0] == 2:
            return space.sample()
        if isinstance(space, spaces.Discrete):
            return int(a["choices"][i, 0, 0]) + int(space.start)
        if isinstance(space, spaces.MultiDiscrete):
            return a["choices"][i, 0].reshape(space.shape) + space.start
        if isinstance(space, spaces.MultiBinary):
            return a["binary"][i, 0].reshape(space.shape)
        unit = (a["continuous"][i, 0].reshape(space.shape) + 1) / 2
        return (space.low + unit * (space.high - space.low)).astype(space.dtype)

    # -- what the trainer asks of a batch ------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def tensor(self, name: str) -> torch.Tensor:
        import torch

        return torch.from_numpy(self.arrays[name])

    def numpy(self, name: str) -> np.ndarray:
        return self.arrays[name].copy()

    def set_controller(self, role: str, name: str, envs: Any = slice(None), team: int | None = None) -> None:
        if name not in ("", "policy", "random"):
            raise LudusError(f"gym:{self.name} has no bot '{name}': there is random")
        self.arrays["controller"][envs] = 2 if name == "random" else 0
        for i, env in enumerate(self.envs):
            env.action_space.seed(self.seed + i)

    def read_statistics(self) -> dict[str, dict[str, float]]:
        episodes, self._episodes = self._episodes, []
        if not episodes:
            return {"agent": {"episodes": 0.0}}
        returns, lengths, cut = (np.array(column, float) for column in zip(*episodes, strict=True))
        return {
            "agent": {
                "episodes": float(len(episodes)), "return": returns.mean(), "return_std": returns.std(),
                "return_min": returns.min(), "return_max": returns.max(), "length": lengths.mean(),
                "won": 0.0, "lost": 0.0, "drawn": 1 - cut.mean(), "truncated": cut.mean(), "term/reward": returns.mean(),
            }
        }  # fmt: skip

    def read_valid_steps(self) -> int:
        count, self._valid_steps = self._valid_steps, 0
        return count

    def received(self) -> dict[str, Any]:
        return {"game": f"gym:{self.name}", "sizes": {}, "params": {}, "rewards": {}}

    def check_received(self) -> None:
        """Nothing is handed to a foreign env, so nothing can be lost on the way."""

    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps([self.name, self.layout.describe()]).encode()).hexdigest()[:16]

    def state(self) -> dict[str, np.ndarray]:
        """Foreign envs cannot be saved: after a resume their episodes start anew."""
        return {}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Episodes start anew, from another seed than the run's first ones."""
        self.seed += 7_919
        self._started = False
        self.arrays["finished"][:] = True
        self.step()
