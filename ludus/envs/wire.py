"""Messages between the trainer and remote envs: JSON texts over WebSocket, protocol version 1 (docs/remote.md).

Axes: E envs of a client, A agents of an env. Whatever a client sends is checked here; what is wrong is a Fault, in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ludus.envs.roles import roles_by_name

PROTOCOL = 1
MOST_ENVS, MOST_AGENTS, MOST_ENTRIES, MOST_OPTIONS = 4096, 64, 65_536, 1024
MOST_SHOWN = 80  # characters of what a client sent, in a message about it


class Fault(Exception):
    """What a client did wrong. Its connection ends; training goes on."""


@dataclass(frozen=True)
class Hello:
    """What a client offers: so many envs of one game, with named observation and action entries. Stands in for a Codec."""

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
        return (self.agents, self.observation, self.continuous_names, self.binary_names, self.options, self.masked)

    # -- as a Codec: what a layout is made from ------------------------------------------------------------------------

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
        return len(self.binary_names) + sum(len(options) for _, options in self.options) if self.masked else 0


def read(message: Any, kind: str) -> dict[str, Any]:
    """A message of a kind, or a Fault."""
    if not isinstance(message, str):
        raise Fault(f"a {kind} message must be text, not {type(message).__name__}")
    try:
        data = json.loads(message)
    except (json.JSONDecodeError, RecursionError):
        raise Fault(f"this is no JSON: {_short(message)}") from None
    if isinstance(data, dict) and data.get("type") == "error":
        raise Fault(f"the client reports: {_short(str(data.get('message')))}")
    if not isinstance(data, dict) or data.get("type") != kind:
        raise Fault(f"expected a message of type '{kind}', got {_short(message)}")
    return data


def read_hello(message: Any) -> Hello:
    data = read(message, "hello")
    if data.get("protocol") != PROTOCOL:
        raise Fault(f"the client speaks protocol {data.get('protocol')!r}, this is {PROTOCOL}: update the older one")
    action = data.get("action")
    if not isinstance(action, dict):
        raise Fault("hello needs an 'action' with continuous, binary or choices")
    choices = action.get("choices", {})
    if not isinstance(choices, dict):
        raise Fault("action.choices must be an object: name → list of options")
    hello = Hello(
        game=str(data.get("game", "nameless")),
        envs=_number(data, "envs", MOST_ENVS),
        agents=_names(data.get("agents", ["agent"]), "agents", MOST_AGENTS),
        observation=_names(data.get("observation"), "observation", MOST_ENTRIES),
        continuous_names=_names(action.get("continuous", []), "action.continuous", MOST_ENTRIES, least=0),
        binary_names=_names(action.get("binary", []), "action.binary", MOST_ENTRIES, least=0),
        options=tuple((str(name), _names(o, f"action.choices.{name}", MOST_OPTIONS)) for name, o in choices.items()),
        masked=bool(data.get("masks", False)),
    )
    if not (hello.continuous_names or hello.binary_names or hello.options):
        raise Fault("hello offers no action: name some in action.continuous, action.binary or action.choices")
    by_role = [agent for members in roles_by_name(hello.agents).values() for agent in members]
    if by_role != list(hello.agents):
        raise Fault(f"the agents are {', '.join(hello.agents)}: those of one role must stand side by side")
    if hello.masked and hello.continuous_names:
        raise Fault("masks are for keys and choices: leave them out where there are continuous actions")
    return hello


def _number(data: Mapping[str, Any], name: str, most: int) -> int:
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise Fault(f"'{name}' is {_short(repr(value))}: it must be a whole number from 1 to {most}")
    return value


def _names(value: Any, where: str, most: int, least: int = 1) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise Fault(f"'{where}' must be a list of names")
    if not least <= len(value) <= most or len(set(value)) != len(value):
        raise Fault(f"'{where}' has {len(value)} names: it must have {least} to {most}, all different")
    return tuple(value)


def read_result(message: Any, hello: Hello, step: int) -> dict[str, np.ndarray]:
    """Observation [E, A, entries], reward, terminated and truncated [E, A], with masks also mask [E, A, flags]."""
    data = read(message, "result")
    if data.get("step") != step:
        raise Fault(f"this is the result of step {data.get('step')!r}, expected that of step {step}")
    rows = (hello.envs, len(hello.agents))
    shapes = {"observation": (*rows, len(hello.observation)), "reward": rows, "terminated": rows, "truncated": rows}
    if hello.masked:
        shapes["mask"] = (*rows, hello.num_masked)
    return {name: _array(data, name, shape) for name, shape in shapes.items()}


def _array(data: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.array(data.get(name), np.float32)
    except (ValueError, TypeError, OverflowError):
        raise Fault(f"'{name}' is not an array of numbers of the shape {list(shape)}") from None
    if array.shape != shape:
        raise Fault(f"'{name}' has the shape {list(array.shape)}, expected {list(shape)}")
    if not np.isfinite(array).all():
        env = int(np.argwhere(~np.isfinite(array))[0][0])
        raise Fault(f"'{name}' of its env {env} is not a number (NaN, null or infinite)")
    return array


def memory_mb(message: str) -> float | None:
    """What a client says about its memory, if it does."""
    value = json.loads(message).get("memory_mb")
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else None


def write(kind: str, **content: Any) -> str:
    return json.dumps({"type": kind, **content})


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + " …"
