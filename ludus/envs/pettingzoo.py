"""Every Ludus game as a PettingZoo `ParallelEnv`: `ludus.envs.pettingzoo.make("hide_and_seek")`."""

from __future__ import annotations

from typing import Any

import gymnasium
from pettingzoo import ParallelEnv

from ludus.envs.port import Port, fresh_seed, make_batch, seed_envs
from ludus.errors import LudusError


def make(
    game: str, *, preset: str | None = None, box_action: bool = False, **values: float
) -> LudusParallelEnv:
    """All agents of a game ("NAME", "NAME:PRESET" or "package.module:GAME"), named role_0, role_1,
    …"""
    return LudusParallelEnv(game, preset=preset, box_action=box_action, **values)


class LudusParallelEnv(ParallelEnv):
    """Agents that die leave `agents`; the others play on until the game is over. An agent's last
    info holds the game's goal metrics, as goal_NAME."""

    def __init__(
        self, game: str, *, preset: str | None = None, box_action: bool = False, **values: float
    ) -> None:
        self.batch = make_batch(game, 1, preset, values)
        self.port = Port(self.batch, box_action=box_action)
        self.metadata = {"name": f"ludus_{self.batch.game.name}", "render_modes": []}
        self.render_mode = None
        self.number = {
            f"{s.role}_{i}": s.start + i
            for s in self.batch.layout.seats
            for i in range(s.stop - s.start)
        }
        self.possible_agents = list(self.number)
        self.agents: list[str] = []
        # one space each: a caller who seeds the space of one agent must not change what another
        # samples
        self.observation_spaces = {name: Port(self.batch).observation_space for name in self.number}
        self.action_spaces = {
            name: Port(self.batch, box_action=box_action).action_space for name in self.number
        }
        self.seeded = False

    def observation_space(self, agent: str) -> gymnasium.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict | None = None
    ) -> tuple[dict[str, Any], dict[str, dict]]:
        if seed is None and not self.seeded:
            seed = fresh_seed()
        if seed is not None:
            seed_envs(self.batch, seed)
            self.seeded = True
        self.batch.reset()
        self.agents = list(self.possible_agents)
        return self._observations(self.agents), self._infos(self.agents)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict]]:
        if not self.agents:
            raise LudusError("the episode is over: call reset() before the next step")
        missing = [name for name in self.agents if name not in actions]
        if missing:
            raise LudusError(
                f"no action for {', '.join(missing)}: every agent in env.agents needs one"
            )
        acted = self.agents
        for name in acted:
            self.port.act((0, self.number[name]), actions[name])
        self.batch.step()

        def of(array: str, kind: type) -> dict[str, Any]:
            return {name: kind(self.batch[array][0, self.number[name]]) for name in acted}

        rewards, ended, cut = (
            of("reward", float),
            of("agent_terminated", bool),
            of("agent_truncated", bool),
        )
        self.agents = [name for name in acted if not (ended[name] or cut[name])]
        infos = self._infos(acted)
        for name in set(acted) - set(self.agents):
            infos[name] |= {
                goal: float(value)
                for goal, value in self.port.goals((0, self.number[name])).items()
            }
        return self._observations(acted), rewards, ended, cut, infos

    def _observations(self, names: list[str]) -> dict[str, Any]:
        return {name: self.port.observation((0, self.number[name])) for name in names}

    def _infos(self, names: list[str]) -> dict[str, dict]:
        if not self.port.masked:
            return {name: {} for name in names}
        return {name: {"action_mask": self.port.mask((0, self.number[name]))} for name in names}

    def render(self) -> None:
        raise LudusError(f"games are shown by `ludus view {self.batch.game.name}`, not by render()")

    def close(self) -> None: ...
