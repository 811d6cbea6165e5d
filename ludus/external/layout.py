"""The named layout of a foreign env, as the trainer needs it: what `ludus.sim.layout.Layout` is for
a game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ludus.errors import LudusError
from ludus.external import pictures, spaces
from ludus.external.codec import Codec
from ludus.external.guests import agents_of, spaces_of
from ludus.external.wire import Hello
from ludus.sim.game import Goal, Param, Phase, Role, Term
from ludus.sim.layout import Seats


def codecs_of(env: Any, masked: Sequence[bool]) -> list[Codec]:
    """One for each agent."""
    return [
        Codec(*spaces_of(env, agent), masked=m)
        for agent, m in zip(agents_of(env), masked, strict=True)
    ]


@dataclass(frozen=True)
class RoleActions:
    """What a role can do: the first columns of the batch's action arrays, and where in the mask
    their flags are."""

    continuous: list[str]
    binary: list[str]
    choices: dict[str, list[str]]
    binary_mask_at: list[int]
    choice_mask_at: list[int]

    @classmethod
    def of(cls, codec: Codec | Hello) -> RoleActions:
        flags = [
            len(codec.binary) + sum(map(len, list(codec.choices.values())[:i]))
            for i in range(len(codec.choices))
        ]
        masked = codec.num_masked > 0
        return cls(
            codec.continuous,
            codec.binary,
            codec.choices,
            [i if masked else -1 for i in range(len(codec.binary))],
            [at if masked else -1 for at in flags],
        )

    def describe(self) -> dict[str, object]:
        return {"continuous": self.continuous, "binary": self.binary, "choices": self.choices}


@dataclass(frozen=True)
class ForeignGame:
    """What is known of an env of another library: its rules are its own affair."""

    name: str
    roles: Sequence[Role]
    params: Mapping[str, Param] = field(default_factory=dict)
    rewards: Mapping[str, Term] = field(default_factory=lambda: {"reward": Term("goal", 1.0)})
    goal_metrics: Mapping[str, Goal] = field(default_factory=dict)
    step: Sequence[Phase] = ()


class ForeignLayout:
    """Roles may see differently much and act differently: arrays are as wide as the widest needs,
    and the others use a part.

    `roles`: role → its agents; `codecs`: one for each agent, in the same order.
    """

    def __init__(
        self, source: str, roles: Mapping[str, Sequence[str]], codecs: Sequence[Codec | Hello]
    ) -> None:
        agents = [agent for members in roles.values() for agent in members]
        self.seats: list[Seats] = []
        self.actions: dict[str, RoleActions] = {}
        for role, members in roles.items():
            first = agents.index(members[0])
            self.seats.append(Seats(role, first, len(members), 1))
            self.actions[role] = RoleActions.of(codecs[first])
        self.seen = codecs[0].seen
        for agent, codec in zip(agents, codecs, strict=True):
            if codec.seen != self.seen:
                raise LudusError(
                    f"{agent} of {source} sees other pictures than {agents[0]}: wrap the env so "
                    "that all see the same"
                )
        self.entries = {s.role: codecs[s.start].observation_names for s in self.seats}
        self.unlimited: dict[str, list[str]] = {
            s.role: getattr(codecs[s.start], "unlimited", []) for s in self.seats
        }
        self.observation = max(self.entries.values(), key=len)
        self.continuous = max((a.continuous for a in self.actions.values()), key=len)
        self.binary = max((a.binary for a in self.actions.values()), key=len)
        self.choices = max((a.choices for a in self.actions.values()), key=len)
        self.num_agents = len(agents)
        self.sizes = {
            "num_masked": max(codec.num_masked for codec in codecs),
            "agents": self.num_agents,
        }
        self.codecs = {s.role: codecs[s.start] for s in self.seats}
        self.spaces = spaces.describe(roles, codecs)
        self.terms: list[str] = ["reward"]
        self.goals: list[str] = []

    def actions_of(self, role: str) -> RoleActions:
        return self.actions[role]

    def codec_of(self, role: str) -> Codec:
        """Of envs in this machine's Python; those elsewhere have none."""
        codec = self.codecs[role]
        assert isinstance(codec, Codec)
        return codec

    def observation_of(self, role: str) -> list[str]:
        """The entries that are a role's own: those after them are always zero."""
        return self.entries[role]

    def describe(self) -> dict[str, object]:
        """As a game's; where roles act differently, also by role."""
        actions = {role: a.describe() for role, a in self.actions.items()}
        widest = {"continuous": self.continuous, "binary": self.binary, "choices": self.choices}
        return {
            "observation": self.observation,
            "seen": {name: seen.describe() for name, seen in self.seen.items()},
            "action": widest,
            **({} if all(a == widest for a in actions.values()) else {"actions_by_role": actions}),
            "roles": {
                s.role: {"first_agent": s.start, "count": s.count, "teams": s.teams}
                for s in self.seats
            },
            "rewards": {"reward": {"kind": "goal", "roles": None}},
            "goal_metrics": {},
        }

    def shapes(self, num_envs: int, filmed: int = 0) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The arrays of a batch: those that the trainer reads and writes, and those between the
        batch and its envs, of which the first `filmed` are drawn."""
        rows = (num_envs, self.num_agents)
        return {
            "observation": ("float32", (*rows, len(self.observation))),
            **{
                f"seen_{name}": ("uint8", (*rows, seen.height, seen.width))
                for name, seen in self.seen.items()
            },
            "continuous": ("float32", (*rows, len(self.continuous))),
            "binary": ("int8", (*rows, len(self.binary))),
            "choices": ("int32", (*rows, len(self.choices))),
            "action_mask": ("bool", (*rows, self.sizes["num_masked"])),
            "reward": ("float32", rows),
            "controller": ("int16", rows),
            "alive": ("bool", rows),
            # its mask allows nothing while others play: it takes no decision in the next step
            "idle": ("bool", rows),
            "terminated": ("bool", rows),
            "truncated": ("bool", rows),
            "episode_length": ("int32", rows),
            "resetting": ("bool", (num_envs,)),
            "lost": ("bool", (num_envs,)),  # the env went away in the middle of the episode
            # at the first env of a process: the env that it is stepping
            "busy_with": ("int32", (num_envs,)),
            "reset_seconds": ("float64", (num_envs,)),  # spent in resets, since it was last read
            # at the first env of a worker process: CPU time that it has used
            "worker_cpu": ("float64", (num_envs,)),
            "seeds": ("int64", (num_envs,)),
            **pictures.shapes(filmed),
        }
