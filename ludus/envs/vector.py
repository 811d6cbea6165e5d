"""Every Ludus game as a `gymnasium.vector.VectorEnv`: `gymnasium.make_vec("ludus/NAME-v0",
num_envs=64)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ludus.envs.opponents import RANDOM_BOT, Opponents
from ludus.envs.port import Port, Restarts, fresh_seed, make_batch, own_agents, seed_envs
from ludus.errors import LudusError


class LudusVectorEnv(VectorEnv):
    """One row per env, or `agents` rows per env that share its episode; bots or a trained run
    (`opponent`) play everyone else.

    An episode ends with the game, or when none of its rows is alive any more. A row that dies
    before the others of its env goes on without reward until then; info["valid"] says which rows
    really decided. autoreset: SAME_STEP (a finished row shows the next episode's first observation;
    its last one is in info["final_obs"], the game's goal metrics as goal_NAME in
    info["final_info"]) or NEXT_STEP (a finished row shows its last observation, and the following
    step only resets: the faster one).
    """

    def __init__(
        self,
        game: str,
        num_envs: int = 1,
        *,
        role: str | None = None,
        agents: int = 1,
        opponent: str | Mapping[str, str] = RANDOM_BOT,
        preset: str | None = None,
        box_action: bool = False,
        autoreset: AutoresetMode | str = AutoresetMode.SAME_STEP,
        **values: float,
    ) -> None:
        if num_envs < 1 or num_envs % agents:
            raise LudusError(
                f"{num_envs} rows do not divide into envs of {agents} agents: make num_envs a "
                f"multiple of {agents}"
            )
        self.mode = AutoresetMode(autoreset)
        if self.mode == AutoresetMode.DISABLED:
            raise LudusError(
                "a batch resets its envs by itself: use autoreset SAME_STEP or NEXT_STEP"
            )
        self.batch = make_batch(game, num_envs // agents, preset, values, opponent)
        self.port = Port(self.batch, box_action=box_action)
        mine = own_agents(self.batch, role, agents)
        self.opponents = Opponents(self.batch, opponent, mine)
        self.agents = slice(int(mine[0]), int(mine[-1]) + 1)
        self.at = (slice(None), self.agents)
        self.restart = Restarts(self.batch)
        self.seeded = False
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": self.mode, "render_modes": []}
        self.single_observation_space, self.single_action_space = (
            self.port.observation_space,
            self.port.action_space,
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Env i starts as a single env with seed + i would, or with the i-th of a list of seeds."""
        if seed is None and not self.seeded:
            seed = fresh_seed()
        if seed is not None:
            count = self.batch.num_envs
            if not isinstance(seed, int | np.integer) and len(seed) != count:
                raise LudusError(
                    f"{len(seed)} seeds for {count} envs: give one for each, or one number for all"
                )
            seed_envs(
                self.batch, seed + np.arange(count) if isinstance(seed, int | np.integer) else seed
            )
            self.seeded = True
        self.batch.reset()
        return self._rows(), self._info()

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        batch = self.batch
        resetting = batch["finished"].copy()
        self.port.act(self.at, actions)
        self.opponents.act()
        batch.step()
        alive = batch["alive"][self.at]
        over = (batch["finished"] | ~alive.any(1)) & ~resetting
        ended = over[:, None] & (~alive | batch["terminated"][:, None])
        rewards = batch["reward"][self.at].astype(np.float64).reshape(-1)
        terminated, truncated = ended.reshape(-1), (over[:, None] & ~ended).reshape(-1)
        batch["finished"][over] = True
        info = self._info()
        if self.mode == AutoresetMode.SAME_STEP and over.any():
            final = self._info_of_rows(self._rows(), info, np.repeat(over, alive.shape[1]))
            self.restart(np.flatnonzero(over))
            info = {**info, **self._mask(), **final}
        return self._rows(), rewards, terminated, truncated, info

    def _rows(self) -> Any:
        observation = self.port.observation(self.at)
        if isinstance(observation, dict):
            return {
                key: value.reshape(self.num_envs, *value.shape[2:])
                for key, value in observation.items()
            }
        return observation.reshape(self.num_envs, -1)

    def _info(self) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, bool)
        return {
            "valid": self.batch["valid"][self.at].reshape(-1),
            "_valid": everywhere,
            **self._mask(),
        }

    def _mask(self) -> dict[str, np.ndarray]:
        if not self.port.masked:
            return {}
        return {
            "action_mask": self.port.mask(self.at).reshape(self.num_envs, -1),
            "_action_mask": np.ones(self.num_envs, bool),
        }

    def _info_of_rows(self, rows: Any, info: dict[str, Any], over: np.ndarray) -> dict[str, Any]:
        """The last observation and info of the rows that are over, as Gymnasium's own vector envs
        give them."""
        final_obs = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(over):
            final_obs[i] = (
                {key: value[i] for key, value in rows.items()}
                if isinstance(rows, dict)
                else rows[i]
            )
        final_info = {key: value for key, value in info.items() if not key.startswith("_")}
        final_info |= {name: value.reshape(-1) for name, value in self.port.goals(self.at).items()}
        final_info |= {f"_{key}": over for key in final_info}
        return {
            "final_obs": final_obs,
            "_final_obs": over,
            "final_info": final_info,
            "_final_info": over,
        }
