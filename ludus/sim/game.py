"""Declaring a game: its state, sizes, parameters, spaces, roles, reward terms, goal metrics and
phases.

Everything the machine needs to know about the rules is said here, once. `Game` checks the
declaration and the rules against each other when it is made, so a mistake is an error with a fix at
import, not a wrong number during training.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ludus.errors import LudusError, RuleError, nearest

Size = str | int

# -- state -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """An array of the simulator. `shape` is per env (sizes by name or number); a shared field has
    no env axis."""

    dtype: str
    shape: tuple[Size, ...] = ()
    shared: bool = False


def _declare(dtype: str) -> Callable[..., Field]:
    def declare(*shape: Size, shared: bool = False) -> Field:
        return Field(dtype, shape, shared)

    declare.__doc__ = f"A {dtype} field with this shape in every env."
    return declare


f32 = _declare("float32")
i8 = _declare("int8")
u8 = _declare("uint8")
i16 = _declare("int16")
i32 = _declare("int32")
flag = _declare("bool")


# -- parameters, rewards, goals, roles -------------------------------------------------------------


@dataclass(frozen=True)
class Param:
    """A number every env holds its own copy of. An int default makes it an integer in the rules, a
    float a float32."""

    default: float
    low: float
    high: float
    help: str = ""
    phrase: str = ""
    """Words to say how two games differ, with {} for the value: "altar needs {} battery|altar needs
    {} batteries" (for 1 | else)."""

    @property
    def integer(self) -> bool:
        return isinstance(self.default, int)


Roles = str | tuple[str, ...] | None
"""For which roles something is meant: one, several, or all (None). Kept as a tuple or None."""


def _as_tuple(roles: Roles) -> tuple[str, ...] | None:
    return (roles,) if isinstance(roles, str) else roles


KINDS = ("goal", "progress", "shaping", "potential", "cost")


@dataclass(frozen=True)
class Term:
    """A named part of the reward. The rules write `term_NAME[env, agent]`; the engine multiplies by
    the weight and sums.

    `least` and `most` bound what the rules write, summed over an episode of one agent: a number, or
    arithmetic over sizes and parameters such as "max_steps" or "hiders + 1".
    """

    kind: str
    weight: float
    most: float | str | None = None
    least: float | str = 0
    roles: Roles = None
    help: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", _as_tuple(self.roles))

    def concerns(self, role: str) -> bool:
        """Is it paid to this role?"""
        return self.roles is None or role in self.roles


@dataclass(frozen=True)
class Goal:
    """What success means, apart from reward. The rules write `goal_NAME[env, agent]`; its last
    value in an episode counts."""

    help: str = ""
    roles: Roles = None
    higher_is_better: bool = True
    share: bool = False
    """It lies between 0 and 1, and so does its interval."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", _as_tuple(self.roles))

    def concerns(self, role: str) -> bool:
        """Is it a goal of this role?"""
        return self.roles is None or role in self.roles


@dataclass(frozen=True)
class Headline:
    """The one number that says how well a policy plays: a goal metric, measured against an opponent
    (self or bot:NAME).

    It chooses the best checkpoint and comes first in lists and reports.
    """

    goal: str
    against: str = "self"


@dataclass(frozen=True)
class Role:
    """`count` agents (per team) that share a policy. With teams=2 the role exists once on each
    side."""

    name: str
    count: Size = 1
    teams: int = 1


# -- actions and observations ----------------------------------------------------------------------


@dataclass(frozen=True)
class Continuous:
    """`size` numbers in [-1, 1]: `action_NAME[env, agent]`, or `action_NAME[env, agent, k]` for
    size > 1."""

    size: Size | None = None


@dataclass(frozen=True)
class Binary:
    """A key that is down or not. With `masked`, the rules write `mask_NAME[env, agent]`: may it be
    pressed?"""

    masked: bool = False


@dataclass(frozen=True)
class Choice:
    """One of several options: names, or a size. With `masked`, the rules write `mask_NAME[env,
    agent, option]`."""

    options: tuple[str, ...] | Size
    masked: bool = False


Action = Continuous | Binary | Choice


@dataclass(frozen=True)
class Each:
    prefix: str
    names: tuple[str, ...]
    count: Size


def each(prefix: str, names: Sequence[str], count: Size) -> Each:
    """Observation entries repeated `count` times: each("runner", ["dx", "dy"], "runners") →
    runner0_dx, runner0_dy, …"""
    return Each(prefix, tuple(names), count)


@dataclass(frozen=True)
class Image:
    """Bytes that are seen beside the observation's numbers: `seen_NAME` is u8("agents", height,
    width), the newest picture.

    A policy gets the last `frames` of an episode; what was before its start is black.
    """

    frames: int = 1


@dataclass(frozen=True)
class Tokens:
    """Things that are seen beside the observation's numbers: `seen_NAME` is u8("agents", count, 3),
    each (cell, feature, amount).

    An amount of 0 is no token. No two tokens of an agent have the same cell and feature.
    """

    cells: int
    features: int


# -- phases ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Phase:
    """A function run for every env and every lane. Made by `@phase`; calling it calls the plain
    function."""

    function: Callable[..., None]
    lanes: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def arguments(self) -> tuple[str, ...]:
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of what it needs, after the indices."""
        return self.arguments[1 + len(self.lanes) :]

    def __call__(self, *args: Any) -> None:
        self.function(*args)


def _names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def phase(
    *, lanes: str | Sequence[str] = "env", writes: str | Sequence[str]
) -> Callable[[Callable[..., None]], Phase]:
    """Makes a function a phase: `lanes` says what it runs for ("env", "agents", ("agents",
    "rays")), `writes` what it changes."""
    lane_names = () if lanes == "env" else _names(lanes)

    def make(function: Callable[..., None]) -> Phase:
        return Phase(function, lane_names, _names(writes))

    return make


@dataclass(frozen=True)
class Bot(Phase):
    """A scripted player that is named by its import path. Made by `@bot`."""

    roles: tuple[str, ...] | None = None
    """Whom it can play; None: every role."""
    path: str = ""
    """Where it was imported from; "" for a bot that a game declares."""

    @property
    def name(self) -> str:
        return self.path or self.function.__name__


def bot(
    *, writes: str | Sequence[str], roles: Roles = None
) -> Callable[[Callable[..., None]], Bot]:
    """Makes a function a bot that can be named as bot:package.module:NAME. It runs for every agent
    that it is put in charge of and `writes` that agent's actions; `roles` says whom it can play
    (default: every role)."""

    def make(function: Callable[..., None]) -> Bot:
        return Bot(function, ("agents",), _names(writes), _as_tuple(roles))

    return make


# -- arithmetic over sizes and parameters ----------------------------------------------------------

_OPERATORS: dict[type, Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.USub: operator.neg,
}


def evaluate(expression: float | str, names: Mapping[str, float]) -> float:
    """The value of a number, a name, or + - * / // arithmetic over names."""
    if not isinstance(expression, str):
        return expression

    def value(node: ast.expr) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in names:
                raise RuleError(
                    f"'{expression}' names '{node.id}', which is no size or parameter: "
                    f"{nearest(node.id, names)}"
                )
            return names[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.operand))
        raise RuleError(
            f"'{expression}' is not arithmetic over sizes and parameters: use names, numbers and + "
            "- * / //"
        )

    return value(ast.parse(expression, mode="eval").body)


# -- the game --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Game:
    """A game: declared once, checked when made, run by `ludus.sim.Batch`."""

    name: str
    summary: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    size_limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Lowest and highest value of a size; sizes not named here are at least 1."""
    roles: Sequence[Role]
    state: Mapping[str, Field] = field(default_factory=dict)
    params: Mapping[str, Param]
    observation: Sequence[str | Each]
    seen: Mapping[str, Image | Tokens] = field(default_factory=dict)
    """What is observed as bytes, each in a state field `seen_NAME`."""
    action: Mapping[str, Action]
    rewards: Mapping[str, Term]
    goal_metrics: Mapping[str, Goal] = field(default_factory=dict)
    headline: Headline | None = None
    """Without one: the first goal metric, against the first bot that does more than stand still or
    act at random."""
    step: Sequence[Phase]
    reset: Sequence[Phase]
    bots: Mapping[str, Sequence[Phase]] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    held_out: Mapping[str, float] = field(default_factory=dict)
    """Values that evaluation uses instead, so that it plays on what was not trained on (another
    range of terrain seeds …)."""
    validation: Mapping[str, float] = field(default_factory=dict)
    """The same for evaluations during training, which choose the best checkpoint: a third range
    (default: as held_out)."""
    check: Callable[[Mapping[str, int], Mapping[str, float]], None] | None = None
    """Refuses sizes and parameters that cannot work together, by raising LudusError with both
    numbers."""
    setup: Sequence[Phase] = ()
    """Phases that fill the shared fields, run once when a batch is made, for env 0 alone and with
    its parameters."""

    def __post_init__(self) -> None:
        from ludus.sim.check import check_game

        check_game(self)

    def resolve(
        self, overrides: Mapping[str, float] | None = None, preset: str | None = None
    ) -> Settings:
        """Sizes, parameters and reward weights with overrides applied; refuses unknown names and
        values out of range."""
        values: dict[str, float] = {}
        if preset is not None:
            if preset not in self.presets:
                raise LudusError(
                    f"the game {self.name} has no preset '{preset}': "
                    f"{nearest(preset, self.presets)}"
                )
            values.update(self.presets[preset])
        values.update(overrides or {})

        sizes: dict[str, int] = dict(self.sizes)
        params: dict[str, float] = {name: p.default for name, p in self.params.items()}
        weights: dict[str, float] = {name: t.weight for name, t in self.rewards.items()}
        for name, value in values.items():
            if name in sizes:
                if value != int(value):
                    raise LudusError(f"size {name}={value} must be a whole number")
                sizes[name] = int(value)
            elif name in params:
                params[name] = (
                    int(value) if self.params[name].integer and value == int(value) else value
                )
            elif name.removeprefix("reward.") in weights:
                weights[name.removeprefix("reward.")] = float(value)
            else:
                known = [*sizes, *params, *(f"reward.{t}" for t in weights)]
                raise LudusError(
                    f"the game {self.name} has no size, parameter or reward '{name}': "
                    f"{nearest(name, known)}"
                )

        for name, size in sizes.items():
            low, high = self.size_limits.get(name, (1, 2**31 - 1))
            if not low <= size <= high:
                limit = f"at least {low}" if size < low else f"at most {high}"
                raise LudusError(f"size {name}={size} cannot work: {name} must be {limit}")
        for name, value in params.items():
            p = self.params[name]
            if not p.low <= value <= p.high:
                raise LudusError(
                    f"parameter {name}={value} is outside {p.low} to {p.high}: "
                    f"{p.help or 'use a value inside'}"
                )
            if p.integer and value != int(value):
                raise LudusError(f"parameter {name}={value} must be a whole number")
        for name, weight in weights.items():
            if not math.isfinite(weight):
                raise LudusError(
                    f"reward.{name}={weight} is no weight: use a finite number, 0 to leave the "
                    "term out"
                )
        if self.check is not None:
            self.check(sizes, params)
        return Settings(sizes, params, weights)


@dataclass(frozen=True)
class Settings:
    """The numbers one batch of a game is made with."""

    sizes: dict[str, int]
    params: dict[str, float]
    weights: dict[str, float]
