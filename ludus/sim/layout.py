"""The arrays a batch of a game consists of: the game's own, and those the engine keeps for every
game.

Things of one kind (all reward terms, all float parameters, all binary actions …) are packed in one
array, so that the trainer and the engine handle them at once; the rules see each under its own
name, as a view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from ludus.errors import LudusError
from ludus.sim.game import (
    Binary,
    Choice,
    Continuous,
    Each,
    Field,
    Game,
    Image,
    Settings,
    Size,
    Tokens,
    f32,
    flag,
    i8,
    i16,
    i32,
)

LINEUPS = 32  # most lineups of a batch: who may sit where, drawn anew by every env in its reset row

# Written by the engine, readable by rules: `step` counts from 1 inside an episode, 0 in the reset
# row.
ENGINE_FIELDS: dict[str, Field] = {
    "seed": Field("int64"),
    "env_id": i32(),
    "episode": i32(),
    "step": i32(),
    "key": Field("uint64"),
    "resetting": flag(),
    "finished": flag(),
    "counted": flag(),
    "current_stage": i32(1, shared=True),
    "episode_stage": i32(),
    "first_length": i32(),
    "valid_steps": Field("int64"),
    "controller": i16("agents"),
    "controller_next": i16("agents"),
    "lineup": i16(),
    "slot_open": flag(),
    "lineup_results": f32(LINEUPS, 4),
    "num_lineups": i32(1, shared=True),
    "lineup_controller": i16(LINEUPS, "agents", shared=True),
    "lineup_until": f32(2, LINEUPS, shared=True),
    "task": i32(),
    "task_next": i32(),
    "task_results": f32(2, 2),
    "task_goal": i32(1, shared=True),
    "task_scored": flag("agents", shared=True),
    "was_alive": flag("agents"),
    "valid": flag("agents"),
    "reward": f32("agents"),
    "agent_terminated": flag("agents"),
    "agent_truncated": flag("agents"),
    "episode_return": f32("agents"),
    "episode_length": i32("agents"),
    "float_params": f32("num_float_params"),
    "float_params_next": f32("num_float_params"),
    "int_params": i32("num_int_params"),
    "int_params_next": i32("num_int_params"),
    "weights": f32("num_terms"),
    "weights_next": f32("num_terms"),
    "terms": f32("agents", "num_terms"),
    "term_totals": f32("agents", "num_terms"),
    "term_applies": flag("agents", "num_terms", shared=True),
    "goals": f32("agents", "num_goals"),
    "statistics": f32("agents", "num_statistics"),
    "continuous": f32("agents", "num_continuous"),
    "binary": i8("agents", "num_binary"),
    "choices": i32("agents", "num_choices"),
    "action_mask": flag("agents", "num_masked"),
    "binary_mask_at": i32("num_binary", shared=True),
    "choice_mask_at": i32("num_choices", shared=True),
    "choice_options": i32("num_choices", shared=True),
}

# Written by the rules, for the engine and the trainer.
RULE_FIELDS: dict[str, Field] = {
    "alive": flag("agents"),
    "idle": flag("agents"),
    "outcome": i8("agents"),
    "terminated": flag(),
    "truncated": flag(),
    "observation": f32("agents", "entries"),
}

# Per agent, over the episodes finished since they were last read. Reward terms and goal metrics
# follow.
STATISTICS = (
    "episodes",
    "return",
    "return_squared",
    "return_min",
    "return_max",
    "length",
    "won",
    "lost",
    "drawn",
    "truncated",
)


@dataclass(frozen=True)
class Slot:
    """A named part of a packed array: one entry, or `size` of them."""

    packed: str
    start: int
    size: int | None = None


def expand(
    observation: list[str | Each] | tuple[str | Each, ...], sizes: Mapping[str, int]
) -> list[str]:
    """The names of all observation entries: each("other", ["alive"], 2) is other0_alive,
    other1_alive."""
    names: list[str] = []
    for entry in observation:
        if isinstance(entry, Each):
            count = number(entry.count, sizes)
            names += [f"{entry.prefix}{i}_{name}" for i in range(count) for name in entry.names]
        else:
            names.append(entry)
    return names


def number(size: Size, sizes: Mapping[str, int]) -> int:
    return sizes[size] if isinstance(size, str) else size


def accessible(game: Game) -> dict[str, Field]:
    """Everything a phase of this game may name, with symbolic shapes. Sizes and indices come on
    top."""
    fields = {**game.state, **ENGINE_FIELDS, **RULE_FIELDS}
    for name, param in game.params.items():
        fields[name] = i32() if param.integer else f32()
    for name in game.rewards:
        fields[f"term_{name}"] = f32("agents")
    for name in game.goal_metrics:
        fields[f"goal_{name}"] = f32("agents")
    for name, action in game.action.items():
        match action:
            case Continuous(size=None):
                fields[f"action_{name}"] = f32("agents")
            case Continuous(size=size) if size is not None:
                fields[f"action_{name}"] = f32("agents", size)
            case Binary(masked=masked):
                fields[f"action_{name}"] = i8("agents")
                if masked:
                    fields[f"mask_{name}"] = flag("agents")
            case Choice(options=options, masked=masked):
                fields[f"action_{name}"] = i32("agents")
                if masked:
                    fields[f"mask_{name}"] = flag(
                        "agents", options if isinstance(options, str | int) else len(options)
                    )
    return fields


@dataclass(frozen=True)
class Seats:
    """The agents of one role: a contiguous block, team after team."""

    role: str
    start: int
    count: int
    teams: int

    @property
    def stop(self) -> int:
        return self.start + self.count * self.teams

    @property
    def agents(self) -> slice:
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class Seen:
    """Bytes an agent sees: pictures of height × width, or tokens (height of them)."""

    kind: Image | Tokens
    height: int
    width: int

    @property
    def frames(self) -> int:
        return self.kind.frames if isinstance(self.kind, Image) else 1

    def describe(self) -> dict[str, object]:
        return {
            "kind": type(self.kind).__name__.lower(),
            **asdict(self.kind),
            "height": self.height,
            "width": self.width,
        }


class Layout:
    """Names and shapes of everything, for one game and one choice of sizes."""

    def __init__(self, game: Game, settings: Settings) -> None:
        self.game = game
        sizes = dict(settings.sizes)
        self._seat_agents(settings, sizes)
        self.observation = expand(list(game.observation), sizes)
        self.seen = {
            name: Seen(kind, *(number(s, sizes) for s in game.state[f"seen_{name}"].shape[1:]))
            for name, kind in game.seen.items()
        }
        self.float_params = [n for n, p in game.params.items() if not p.integer]
        self.int_params = [n for n, p in game.params.items() if p.integer]
        self.terms, self.goals = list(game.rewards), list(game.goal_metrics)
        self.slots: dict[str, Slot] = {}
        self._pack("float_params", self.float_params)
        self._pack("int_params", self.int_params)
        self._pack("terms", [f"term_{name}" for name in self.terms])
        self._pack("goals", [f"goal_{name}" for name in self.goals])
        masked = self._pack_actions(sizes)
        sizes |= dict(
            entries=len(self.observation),
            num_float_params=len(self.float_params),
            num_int_params=len(self.int_params),
            num_terms=len(self.terms),
            num_goals=len(self.goals),
            num_statistics=len(STATISTICS) + len(self.terms) + len(self.goals),
            num_continuous=len(self.continuous),
            num_binary=len(self.binary),
            num_choices=len(self.choices),
            num_masked=masked,
        )
        self.sizes = sizes
        self.arrays: dict[str, Field] = {**game.state, **ENGINE_FIELDS, **RULE_FIELDS}

    def _seat_agents(self, settings: Settings, sizes: dict[str, int]) -> None:
        """The agents of each role in a row, those of a team together."""
        self.seats: list[Seats] = []
        at = 0
        for role in self.game.roles:
            count = number(role.count, sizes)
            self.seats.append(Seats(role.name, at, count, role.teams))
            at += count * role.teams
        if at < 1:
            raise LudusError(
                f"the game {self.game.name} has {at} agents with {settings.sizes}: it needs at "
                "least 1"
            )
        sizes["agents"] = at
        self.num_agents = at

    def _pack(self, packed: str, names: list[str]) -> None:
        for i, name in enumerate(names):
            self.slots[name] = Slot(packed, i)

    def _pack_actions(self, sizes: Mapping[str, int]) -> int:
        """Places of actions and of their masks; returns how many entries `action_mask` has."""
        self.continuous: list[str] = []
        self.binary: list[str] = []
        self.choices: dict[str, list[str]] = {}
        self.binary_mask_at: list[int] = []
        self.choice_mask_at: list[int] = []
        masked = 0
        for name, action in self.game.action.items():
            match action:
                case Continuous(size=None):
                    self.slots[f"action_{name}"] = Slot("continuous", len(self.continuous))
                    self.continuous.append(name)
                case Continuous(size=size) if size is not None:
                    count = number(size, sizes)
                    self.slots[f"action_{name}"] = Slot("continuous", len(self.continuous), count)
                    self.continuous += [f"{name}{i}" for i in range(count)]
                case Binary():
                    self.slots[f"action_{name}"] = Slot("binary", len(self.binary))
                    self.binary.append(name)
                    self.binary_mask_at.append(masked if action.masked else -1)
                    if action.masked:
                        self.slots[f"mask_{name}"] = Slot("action_mask", masked)
                        masked += 1
                case Choice(options=options):
                    names = (
                        list(options)
                        if isinstance(options, tuple)
                        else [str(i) for i in range(number(options, sizes))]
                    )
                    self.slots[f"action_{name}"] = Slot("choices", len(self.choices))
                    self.choices[name] = names
                    self.choice_mask_at.append(masked if action.masked else -1)
                    if action.masked:
                        self.slots[f"mask_{name}"] = Slot("action_mask", masked, len(names))
                        masked += len(names)
        return masked

    def actions_of(self, role: str) -> Layout:
        """What a role can do: in a game all roles have the same actions (those of other libraries
        may not)."""
        return self

    def observation_of(self, role: str) -> list[str]:
        """The entries that are a role's own: here, all."""
        return self.observation

    def shape(self, name: str, num_envs: int) -> tuple[int, ...]:
        """The full shape of a stored array."""
        field = self.arrays[name]
        inner = tuple(number(s, self.sizes) for s in field.shape)
        return inner if field.shared else (num_envs, *inner)

    def bytes_per_env(self) -> int:
        return sum(
            int(np.prod(self.shape(name, 1))) * np.dtype(field.dtype).itemsize
            for name, field in self.arrays.items()
            if not field.shared
        )

    def applies(self) -> np.ndarray:
        """[agents, terms]: does this reward term count for this agent?"""
        out = np.zeros((self.num_agents, len(self.terms)), bool)
        for i, term in enumerate(self.game.rewards.values()):
            for seats in self.seats:
                if term.concerns(seats.role):
                    out[seats.agents, i] = True
        return out

    def describe(self) -> dict[str, object]:
        """Named layouts, as `game.json` and checkpoints keep them."""
        return {
            "observation": self.observation,
            "seen": {name: seen.describe() for name, seen in self.seen.items()},
            "action": {
                "continuous": self.continuous,
                "binary": self.binary,
                "choices": self.choices,
            },
            "roles": {
                s.role: {"first_agent": s.start, "count": s.count, "teams": s.teams}
                for s in self.seats
            },
            "rewards": {
                n: {"kind": t.kind, "roles": t.roles} for n, t in self.game.rewards.items()
            },
            "goal_metrics": {
                n: {"roles": g.roles, "higher_is_better": g.higher_is_better}
                for n, g in self.game.goal_metrics.items()
            },
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)
