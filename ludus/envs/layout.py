"""The named layout of a foreign env, as the trainer needs it: what `ludus.sim.layout.Layout` is for a game."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ludus.envs.codec import Codec
from ludus.envs.guests import agents_of, spaces_of
from ludus.envs.wire import Hello
from ludus.errors import LudusError
from ludus.sim.layout import Seats


def codecs_of(env: Any, *, masked: bool) -> list[Codec]:
    """One for each agent."""
    return [Codec(*spaces_of(env, agent), masked=masked) for agent in agents_of(env)]


class ForeignLayout:
    """Agents named role_0, role_1, … are of one role and share a policy; observations are padded to the longest.

    All agents must have the same actions: a batch has one layout.
    """

    def __init__(self, source: str, agents: list[str], codecs: Sequence[Codec | Hello]) -> None:
        roles = [re.sub(r"_?\d+$", "", agent) or agent for agent in agents]
        self.seats: list[Seats] = []
        for role in dict.fromkeys(roles):
            first, count = roles.index(role), roles.count(role)
            if roles[first : first + count] != [role] * count:
                raise LudusError(f"the agents of {source} are {', '.join(agents)}: those of one role must stand side by side")
            self.seats.append(Seats(role, first, count, 1))
        first_codec = codecs[0]
        for agent, role, codec in zip(agents, roles, codecs, strict=True):
            of_role = codecs[roles.index(role)]
            if codec.action_space != first_codec.action_space:
                raise LudusError(
                    f"{agent} of {source} has the action space {codec.action_space}, {agents[0]} has {first_codec.action_space}: "
                    f"wrap the env so that all have the same"
                )
            if codec.observation_space != of_role.observation_space:
                raise LudusError(
                    f"{agent} of {source} sees {codec.observation_space}, others of its role see {of_role.observation_space}: "
                    f"wrap the env so that they see the same, or give it another name"
                )
            if codec.seen != first_codec.seen:
                raise LudusError(
                    f"{agent} of {source} sees other pictures than {agents[0]}: wrap the env so that all see the same"
                )
        self.seen = first_codec.seen
        self.observation = max((codec.observation_names for codec in codecs), key=len)
        self.continuous, self.binary, self.choices = first_codec.continuous, first_codec.binary, first_codec.choices
        masked = first_codec.num_masked > 0
        self.binary_mask_at = [i if masked else -1 for i in range(len(self.binary))]
        self.choice_mask_at: list[int] = []
        at = len(self.binary)
        for options in self.choices.values():
            self.choice_mask_at.append(at if masked else -1)
            at += len(options)
        self.num_agents = len(agents)
        self.sizes = {"num_masked": first_codec.num_masked, "agents": self.num_agents}
        self.terms: list[str] = ["reward"]
        self.goals: list[str] = []

    def describe(self) -> dict[str, object]:
        return {
            "observation": self.observation,
            "seen": {name: seen.describe() for name, seen in self.seen.items()},
            "action": {"continuous": self.continuous, "binary": self.binary, "choices": self.choices},
            "roles": {s.role: {"first_agent": s.start, "count": s.count, "teams": s.teams} for s in self.seats},
            "rewards": {"reward": {"kind": "goal", "roles": None}},
            "goal_metrics": {},
        }

    def shapes(self, num_envs: int) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The arrays of a batch: those that the trainer reads and writes, and those between the batch and its envs."""
        rows = (num_envs, self.num_agents)
        return {
            "observation": ("float32", (*rows, len(self.observation))),
            **{f"seen_{name}": ("uint8", (*rows, seen.height, seen.width)) for name, seen in self.seen.items()},
            "continuous": ("float32", (*rows, len(self.continuous))),
            "binary": ("int8", (*rows, len(self.binary))),
            "choices": ("int32", (*rows, len(self.choices))),
            "action_mask": ("bool", (*rows, self.sizes["num_masked"])),
            "reward": ("float32", rows),
            "controller": ("int16", rows),
            "alive": ("bool", rows),
            "terminated": ("bool", rows),
            "truncated": ("bool", rows),
            "episode_length": ("int32", rows),
            "resetting": ("bool", (num_envs,)),
            "lost": ("bool", (num_envs,)),  # the env went away in the middle of the episode
            "busy_with": ("int32", (num_envs,)),  # at the first env of a process: the env that it is stepping
            "seeds": ("int64", (num_envs,)),
        }
