"""Messages between the trainer and remote envs: JSON texts over WebSocket, protocol version 1
(docs/remote.md).

Axes: E envs of a client, A agents of an env. Whatever a client sends is checked here; what is wrong
is a Fault, in words.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ludus.external.roles import roles_by_name, why_unusable

PROTOCOL = 1
MOST_ENVS, MOST_AGENTS = 4096, 64
MOST_ENTRIES = 65_536  # of an observation
MOST_ACTIONS = 4096  # continuous ones, keys and options of an agent together
MOST_OF_AN_ENV = 2**17  # numbers for all agents of an env: the trainer keeps a rollout of them
MOST_OF_A_STEP = 2**19  # numbers for all envs of a client: one message holds them
MOST_LETTERS = 64  # of a name
MOST_VALUE = 1e9  # of a number in a result: its square must fit as well
MOST_SHOWN = 80  # characters of what a client sent, in a message about it
HELLO_BYTES = 2**21
# a result may take so many, and so many more for each of its numbers
RESULT_BYTES, NUMBER_BYTES = 4096, 32
MOST_BYTES = RESULT_BYTES + NUMBER_BYTES * MOST_OF_A_STEP


class Fault(Exception):
    """What a client did wrong. Its connection ends; training goes on."""


@dataclass(frozen=True)
class Hello:
    """What a client offers: so many envs of one game, with named observation and action entries.
    Stands in for a Codec."""

    game: str
    envs: int
    agents: tuple[str, ...]
    observation: tuple[str, ...]
    continuous_names: tuple[str, ...]
    binary_names: tuple[str, ...]
    options: tuple[tuple[str, tuple[str, ...]], ...]
    masked: bool

    @property
    def layout(self) -> tuple[Any, ...]:
        """What must be the same in all clients of a run."""
        return (
            self.agents,
            self.observation,
            self.continuous_names,
            self.binary_names,
            self.options,
            self.masked,
        )

    @property
    def numbers(self) -> int:
        """In a result, for one env."""
        return len(self.agents) * (len(self.observation) + 3 + self.num_masked)

    @property
    def result_bytes(self) -> int:
        """The longest that a result may be."""
        return RESULT_BYTES + NUMBER_BYTES * self.envs * self.numbers

    # -- as a Codec: what a layout is made from ----------------------------------------------------

    seen: ClassVar[dict[str, Any]] = {}  # pictures are not part of protocol 1
    action_space: ClassVar[None] = None  # the same for all agents
    observation_space: ClassVar[None] = None

    @property
    def observation_names(self) -> list[str]:
        return list(self.observation)

    @property
    def continuous(self) -> list[str]:
        return list(self.continuous_names)

    @property
    def binary(self) -> list[str]:
        return list(self.binary_names)

    @property
    def choices(self) -> dict[str, list[str]]:
        return {name: list(options) for name, options in self.options}

    @property
    def num_masked(self) -> int:
        return (
            len(self.binary_names) + sum(len(options) for _, options in self.options)
            if self.masked
            else 0
        )


class Result(NamedTuple):
    """Observation [E, A, entries], reward, terminated and truncated [E, A], with masks also mask
    [E, A, flags]."""

    arrays: dict[str, np.ndarray]
    memory_mb: float | None


def read(message: Any, kind: str, most_bytes: int) -> dict[str, Any]:
    """A message of a kind, or a Fault."""
    if not isinstance(message, str):
        raise Fault(f"a {kind} message must be text, not {type(message).__name__}")
    # before it is parsed: a list takes twenty times the memory of its brackets
    if len(message) > most_bytes:
        raise Fault(
            f"this {kind} message has {len(message):,} characters, at most {most_bytes:,} are "
            "possible here"
        )
    try:
        data = json.loads(message)
    except (ValueError, RecursionError):  # ValueError: no JSON, or a number of thousands of digits
        raise Fault(f"this is no JSON: {_short(message)}") from None
    if not isinstance(data, dict):
        raise Fault(f"expected a message of type '{kind}', got {_short(message)}")
    if data.get("type") == "error":
        message = data.get("message")
        raise Fault(
            "the client reports: "
            f"{_short(message) if isinstance(message, str) else _shown(message)}"
        )
    if data.get("type") != kind:
        raise Fault(f"expected a message of type '{kind}', got {_short(message)}")
    return data


def read_hello(message: Any) -> Hello:
    data = read(message, "hello", HELLO_BYTES)
    protocol = data.get("protocol")
    if type(protocol) is not int or protocol != PROTOCOL:
        raise Fault(
            f"the client speaks protocol {_shown(protocol)}, this is {PROTOCOL}: update the older "
            "one"
        )
    action = data.get("action")
    if not isinstance(action, dict):
        raise Fault("hello needs an 'action' with continuous, binary or choices")
    choices = action.get("choices", {})
    if not isinstance(choices, dict):
        raise Fault("action.choices must be an object: name → list of options")
    masks = data.get("masks", False)
    if not isinstance(masks, bool):
        raise Fault(f"'masks' is {_shown(masks)}: it must be true or false")
    hello = Hello(
        game=_names([data.get("game", "nameless")], "game", 1)[0],
        envs=_number(data, "envs", MOST_ENVS),
        agents=_names(data.get("agents", ["agent"]), "agents", MOST_AGENTS),
        observation=_names(data.get("observation"), "observation", MOST_ENTRIES),
        continuous_names=_names(
            action.get("continuous", []), "action.continuous", MOST_ACTIONS, least=0
        ),
        binary_names=_names(action.get("binary", []), "action.binary", MOST_ACTIONS, least=0),
        options=tuple(
            (name, _names(choices[name], f"action.choices.{name}", MOST_ACTIONS))
            for name in _names(list(choices), "action.choices", MOST_ACTIONS, least=0)
        ),
        masked=masks,
    )
    if not (hello.continuous_names or hello.binary_names or hello.options):
        raise Fault(
            "hello offers no action: name some in action.continuous, action.binary or "
            "action.choices"
        )
    for agent in hello.agents:
        if why := why_unusable(agent):
            raise Fault(f"the agent {agent!r} {why}")
    by_role = [agent for members in roles_by_name(hello.agents).values() for agent in members]
    if by_role != list(hello.agents):
        raise Fault(
            f"the agents are {_short(', '.join(hello.agents))}: those of one role must stand side "
            "by side"
        )
    if hello.masked and hello.continuous_names:
        raise Fault(
            "masks are for keys and choices: leave them out where there are continuous actions"
        )
    _refuse_sizes(hello)
    return hello


def _refuse_sizes(hello: Hello) -> None:
    """What a client offers is memory of the trainer."""
    actions = (
        len(hello.continuous_names)
        + len(hello.binary_names)
        + sum(len(options) for _, options in hello.options)
    )
    if actions > MOST_ACTIONS:
        raise Fault(
            f"an agent has {actions:,} actions (numbers, keys and options together): at most "
            f"{MOST_ACTIONS:,} are possible"
        )
    of_env = len(hello.agents) * (len(hello.observation) + actions)
    if of_env > MOST_OF_AN_ENV:
        raise Fault(
            f"the {len(hello.agents)} agents of an env have {of_env:,} observation entries and "
            "actions: "
            f"at most {MOST_OF_AN_ENV:,} are possible"
        )
    of_step = hello.envs * max(hello.numbers, len(hello.agents) * actions)
    if of_step > MOST_OF_A_STEP:
        raise Fault(
            f"a step of {hello.envs:,} envs has {of_step:,} numbers, at most {MOST_OF_A_STEP:,} "
            "are possible: "
            f"offer {max(1, hello.envs * MOST_OF_A_STEP // of_step):,} envs, and more in other "
            "clients"
        )


def _number(data: Mapping[str, Any], name: str, most: int) -> int:
    value = data.get(name)
    if type(value) is not int or not 1 <= value <= most:
        raise Fault(f"'{name}' is {_shown(value)}: it must be a whole number from 1 to {most:,}")
    return value


def _names(value: Any, where: str, most: int, least: int = 1) -> tuple[str, ...]:
    where = _short(where)
    if not isinstance(value, list) or not least <= len(value) <= most:
        has = f"has {len(value):,}" if isinstance(value, list) else f"is {_shown(value)}"
        raise Fault(f"'{where}' {has}: it must be a list of {least} to {most:,} names")
    known: set[str] = set()
    for name in value:
        if (
            not isinstance(name, str)
            or not 1 <= len(name) <= MOST_LETTERS
            or not name.isprintable()
            or name.isspace()
        ):
            raise Fault(
                f"'{where}' has {_shown(name)}: a name has 1 to {MOST_LETTERS} printable characters"
            )
        if name in known:
            raise Fault(f"'{where}' has '{name}' twice: names must be different")
        known.add(name)
    return tuple(value)


def read_result(message: Any, hello: Hello, step: int) -> Result:
    """What envs answered to this step."""
    data = read(message, "result", hello.result_bytes)
    answered = data.get("step")
    if type(answered) is not int or answered != step:
        raise Fault(f"this is the result of step {_shown(answered)}, expected that of step {step}")
    rows = (hello.envs, len(hello.agents))
    arrays = {
        "observation": _array(data, "observation", (*rows, len(hello.observation))),
        "reward": _array(data, "reward", rows),
        "terminated": _array(data, "terminated", rows, flags=True),
        "truncated": _array(data, "truncated", rows, flags=True),
    }
    if hello.masked:
        arrays["mask"] = _array(data, "mask", (*rows, hello.num_masked), flags=True)
    memory_mb = data.get("memory_mb")
    if memory_mb is not None and not (
        type(memory_mb) in (int, float) and 0 <= memory_mb <= MOST_VALUE
    ):
        raise Fault(
            f"'memory_mb' is {_shown(memory_mb)}: it must be a number from 0 to {MOST_VALUE:,.0f}, "
            "or be left out"
        )
    return Result(arrays, None if memory_mb is None else float(memory_mb))


def _array(
    data: Mapping[str, Any], name: str, shape: tuple[int, ...], flags: bool = False
) -> np.ndarray:
    value: Any = data.get(name)
    try:
        array = np.array(value, np.float64)
    except (ValueError, TypeError, OverflowError):
        raise Fault(f"'{name}' is not an array of numbers of the shape {list(shape)}") from None
    if array.shape != shape:
        raise Fault(f"'{name}' has the shape {list(array.shape)}, expected {list(shape)}")
    wrong = ~((array == 0) | (array == 1)) if flags else ~(np.abs(array) <= MOST_VALUE)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise Fault(f"'{name}' of its env {at[0]} {_why_wrong(array[at], flags)}")
    leaves: Iterable[Any] = value
    for _ in shape[1:]:
        leaves = chain.from_iterable(leaves)
    if not set(map(type, leaves)) <= {int, float, bool}:  # text that looks like a number
        raise Fault(f"'{name}' is not an array of numbers of the shape {list(shape)}")
    return array.astype(np.float32)


def _why_wrong(value: float, flag: bool) -> str:
    if not np.isfinite(value):
        return "is not a number (NaN, null or infinite)"
    if flag:
        return f"is {value:g}: it must be true or false, 0 or 1"
    return f"is {value:g}: numbers from {-MOST_VALUE:g} to {MOST_VALUE:g} are possible"


def write(kind: str, **content: Any) -> str:
    return json.dumps({"type": kind, **content})


def _short(text: str) -> str:
    """For a message that people read in a terminal: no control characters, not long."""
    shown = "".join(c if c.isprintable() else "�" for c in text[:MOST_SHOWN])
    return shown if len(text) <= MOST_SHOWN else f"{shown} …"


def _shown(value: Any) -> str:
    """A value of a message, however large or deep it is."""
    return _short(reprlib.repr(value))
