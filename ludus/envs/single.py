"""Every Ludus game as a single-agent `gymnasium.Env`: `gymnasium.make("ludus/NAME-v0",
opponent="bot:random")`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium

from ludus.envs.opponents import RANDOM_BOT, Opponents
from ludus.envs.port import Port, fresh_seed, make_batch, own_agents, seed_envs
from ludus.errors import LudusError


class LudusEnv(gymnasium.Env):
    """One agent of `role` (default: the game's first); bots or a trained run (`opponent`) play
    everyone else.

    The episode ends with the game or the agent's death; its last info holds the game's goal
    metrics, as goal_NAME.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own convention)

    def __init__(
        self,
        game: str,
        *,
        role: str | None = None,
        opponent: str | Mapping[str, str] = RANDOM_BOT,
        preset: str | None = None,
        box_action: bool = False,
        render_mode: str | None = None,
        **values: float,
    ) -> None:
        if render_mode is not None:
            raise LudusError(
                f"render_mode={render_mode} cannot be: games are shown by `ludus view {game}`"
            )
        self.render_mode = None
        self.batch = make_batch(game, 1, preset, values, opponent)
        self.port = Port(self.batch, box_action=box_action)
        mine = own_agents(self.batch, role, 1)
        self.opponents = Opponents(self.batch, opponent, mine)
        self.at = (0, int(mine[0]))
        self.observation_space, self.action_space = (
            self.port.observation_space,
            self.port.action_space,
        )
        self.seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is None and not self.seeded:
            seed = fresh_seed()
        if seed is not None:
            seed_envs(self.batch, seed)
            self.seeded = True
        self.batch.reset()
        return self.port.observation(self.at), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.batch["finished"][0]:
            raise LudusError("the episode is over: call reset() before the next step")
        self.port.act(self.at, action)
        self.opponents.act()
        self.batch.step()
        terminated, truncated = (
            bool(self.batch[name][self.at]) for name in ("agent_terminated", "agent_truncated")
        )
        self.batch["finished"][0] |= terminated
        info = self._info()
        if terminated or truncated:
            info |= {name: float(value) for name, value in self.port.goals(self.at).items()}
        return (
            self.port.observation(self.at),
            float(self.batch["reward"][self.at]),
            terminated,
            truncated,
            info,
        )

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"valid": bool(self.batch["valid"][self.at])}
        if self.port.masked:
            info["action_mask"] = self.port.mask(self.at)
        return info
