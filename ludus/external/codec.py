"""Values of Gymnasium spaces as the arrays that a policy reads and writes, and back.

Observations become one row of named numbers, and pictures: boxes as they are, discrete ones
one-hot, containers one part after the other; boxes of bytes that look like images are pictures, one
for each channel. Actions are built from numbers in [-1, 1], keys and choices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from ludus.errors import LudusError
from ludus.sim.game import Image
from ludus.sim.layout import Seen

MOST_ENTRIES = 2**16
LEAST_SIDE = 8  # smaller boxes of bytes are no images
ROUNDING = 1e-5  # of a limit (or of 1): an observation may be so far outside of its space
MASKED_KEYS = {"observation", "action_mask"}  # of a Dict observation that carries its mask
LARGEST = float(np.finfo(np.float32).max)  # infinity is above it
MOST_CHANNELS = 4
NO_LIMIT = 1e30  # some spaces name the largest number there is instead of infinity
ALWAYS_ZERO = "always_zero"  # the only number of an agent that sees nothing but pictures


@dataclass(frozen=True)
class Leaf:
    """A part of an observation that is no container: where it is, and which entries or which
    picture it becomes."""

    path: tuple[Any, ...]
    space: spaces.Space
    name: str
    entries: slice | None
    channels_at: int = -1

    def of(self, observation: Any) -> Any:
        for key in self.path:
            observation = observation[key]
        return observation


class Codec:
    """The observations and actions of one agent. `masked`: a mask comes with every observation (of
    a simple action space)."""

    def __init__(
        self, observation: spaces.Space, action: spaces.Space, *, masked: bool = False
    ) -> None:
        self.observation_space, self.action_space, self.masked = observation, action, masked
        self.seen: dict[str, Seen] = {}
        self.observation_names: list[str] = []
        self.unlimited: list[str] = []  # entries whose space declares no limits
        self.limits: dict[int, tuple[float, float]] = {}  # of those entries that have some
        self.leaves = [self._leaf(path, leaf) for path, leaf in _leaves(observation)]
        self._flat = (
            observation.shape
            if isinstance(observation, spaces.Box) and len(observation.shape) == 1
            else None
        )
        if not self.observation_names:
            self.observation_names = [ALWAYS_ZERO]
        if len(self.observation_names) > MOST_ENTRIES:
            raise LudusError(
                f"an observation has {len(self.observation_names):,} entries, more than "
                f"{MOST_ENTRIES:,}: wrap the env so that it "
                f"shows less"
            )
        self.continuous: list[str] = []
        self.binary: list[str] = []
        self.choices: dict[str, list[str]] = {}
        self._decode = self._decoder(action, "")
        if masked and self.continuous:
            raise LudusError(
                f"masks are understood for discrete actions, not for {action}: leave "
                "info['action_mask'] out"
            )
        self.num_masked = len(self.binary) + sum(map(len, self.choices.values())) if masked else 0

    # -- observations ------------------------------------------------------------------------------

    def _leaf(self, path: tuple[Any, ...], space: spaces.Space) -> Leaf:
        name = re.sub(r"\W", "_", "_".join(("o", *map(str, path))))
        channels_at = _channels_at(space)
        if channels_at is not None:
            height, width, channels = np.moveaxis(
                _image(np.zeros(space.shape or ())), channels_at, -1
            ).shape
            self.seen |= {f"{name}{c}": Seen(Image(), height, width) for c in range(channels)}
            return Leaf(path, space, name, None, channels_at)
        try:
            size = int(spaces.flatdim(space))
        except (ValueError, NotImplementedError):
            raise LudusError(
                f"the observation space {space} has no fixed size: wrap the env so that it has"
            ) from None
        first = len(self.observation_names)
        names = [f"{name}{i}" if not path else f"{name}_{i}" for i in range(size)]
        self.observation_names += names
        if isinstance(space, spaces.Box):
            limits = list(
                zip(space.low.ravel().astype(float), space.high.ravel().astype(float), strict=True)
            )
            self.unlimited += [
                n for n, pair in zip(names, limits, strict=True) if max(map(abs, pair)) > NO_LIMIT
            ]
            self.limits |= {
                i: pair for i, pair in enumerate(limits, first) if min(map(abs, pair)) <= NO_LIMIT
            }
        return Leaf(path, space, name, slice(first, first + size))

    def encode(self, observation: Any, out: np.ndarray, pictures: Mapping[str, np.ndarray]) -> None:
        """Writes an observation into its row. Raises ValueError for what is not in the space."""
        # most envs, most of the time
        if self._flat and type(observation) is np.ndarray and observation.shape == self._flat:
            out[: self._flat[0]] = observation
            return
        for leaf in self.leaves:
            value = leaf.of(observation) if leaf.path else observation
            if isinstance(leaf.space, spaces.Box):
                if np.shape(value) != leaf.space.shape:
                    raise ValueError(
                        f"the shape is {np.shape(value)} instead of {leaf.space.shape}"
                    )
            elif not leaf.space.contains(value):
                raise ValueError(f"{value!r} is not in {leaf.space}")
            else:
                value = spaces.flatten(leaf.space, value)
            if leaf.entries is not None:
                out[leaf.entries] = np.asarray(value).reshape(-1)
            else:
                picture = np.asarray(value)
                if picture.dtype != np.uint8 and (picture != picture.astype(np.uint8)).any():
                    raise ValueError(
                        f"its pixels are {picture.dtype} up to {picture.max():g}, not bytes from 0 "
                        "to 255"
                    )
                for c, plane in enumerate(np.moveaxis(_image(picture), leaf.channels_at, 0)):
                    pictures[f"{leaf.name}{c}"][:] = plane

    def bounds(self, entries: int) -> tuple[np.ndarray, np.ndarray]:
        """[entries]: how low and how high what is shown may be, rounding included. Without a limit,
        any number."""
        low, high = np.full(entries, -LARGEST, np.float32), np.full(entries, LARGEST, np.float32)
        for i, (least, most) in self.limits.items():
            if abs(least) <= NO_LIMIT:
                low[i] = least - ROUNDING * max(1.0, abs(least))
            if abs(most) <= NO_LIMIT:
                high[i] = most + ROUNDING * max(1.0, abs(most))
        return low, high

    def split(self, observation: Any, info: Mapping[str, Any]) -> tuple[Any, Any]:
        """What is seen, and the mask that came with it (None: none did), in `info` or inside of a
        Dict observation."""
        mask = info.get("action_mask") if self.masked else None
        if self.masked and isinstance(observation, dict) and observation.keys() == MASKED_KEYS:
            return observation["observation"], observation["action_mask"] if mask is None else mask
        return observation, mask

    def encode_mask(self, mask: Any, out: np.ndarray, over: bool = False) -> bool:
        """Writes an array, or one array for every choice; returns whether there is anything to
        choose. Where there is nothing all is shown as allowed, since whatever is chosen is ignored.
        Raises ValueError for a wrong size, and for a choice without any option beside others,
        unless the agent's episode is `over`."""
        flat = (
            np.concatenate([np.ravel(m) for m in mask])
            if isinstance(mask, tuple | list)
            else np.ravel(mask)
        )
        if flat.size != self.num_masked:
            raise ValueError(
                f"its action mask has {flat.size} entries, the action space {self.num_masked}"
            )
        out[:] = flat
        empty = fill_empty(
            out, len(self.binary), [len(options) for options in self.choices.values()]
        )
        if empty and not over and empty < len(self.choices):
            raise ValueError(
                "its action mask allows nothing in one of its choices, but something in others"
            )
        return not empty

    # -- actions -----------------------------------------------------------------------------------

    def decode(self, continuous: np.ndarray, binary: np.ndarray, choices: np.ndarray) -> Any:
        """An action of the space from a policy's numbers."""
        return self._decode(continuous, binary, choices)

    def sample(self, mask: np.ndarray) -> Any:
        """A random action that the mask allows."""
        if not self.masked:
            return self.action_space.sample()
        space, allowed = self.action_space, mask.astype(np.int8)
        if isinstance(space, spaces.MultiBinary):
            return space.sample() & allowed.reshape(space.shape)
        if isinstance(space, spaces.Discrete):
            return space.sample(allowed)
        ends = np.cumsum([len(o) for o in self.choices.values()])[:-1]
        return space.sample(tuple(np.split(allowed, ends)))

    def _decoder(self, space: spaces.Space, path: str) -> Callable[..., Any]:
        """A function that builds a value of `space`; the names of what it consumes are noted on the
        way."""
        if isinstance(space, spaces.Discrete):
            at, start = len(self.choices), np.int64(space.start)  # as the space's own samples are
            self.choices[f"action{path}"] = [str(int(start) + i) for i in range(int(space.n))]
            return lambda continuous, binary, choices: choices[at] + start
        if isinstance(space, spaces.MultiDiscrete):
            first, starts, shape = len(self.choices), space.start, space.shape
            for i, n in enumerate(space.nvec.ravel()):
                self.choices[f"action{path}{i}"] = [str(k) for k in range(int(n))]
            last = len(self.choices)
            return lambda continuous, binary, choices: (
                choices[first:last].reshape(shape) + starts
            ).astype(space.dtype)
        if isinstance(space, spaces.MultiBinary):
            first, shape = len(self.binary), space.shape
            self.binary += [f"key{path}{i}" for i in range(int(np.prod(shape)))]
            last = len(self.binary)
            return lambda continuous, binary, choices: binary[first:last].reshape(shape)
        if isinstance(space, spaces.Box):
            return self._box_decoder(space, path)
        if isinstance(space, spaces.Tuple):
            parts = [self._decoder(part, f"{path}{i}_") for i, part in enumerate(space.spaces)]
            return lambda *row: tuple(part(*row) for part in parts)
        if isinstance(space, spaces.Dict):
            named = {
                key: self._decoder(part, f"{path}_{key}") for key, part in space.spaces.items()
            }
            return lambda *row: {key: part(*row) for key, part in named.items()}
        raise LudusError(
            f"the action space {space} is not supported: use Discrete, Box, MultiDiscrete, "
            "MultiBinary, Tuple or Dict"
        )

    def _box_decoder(self, space: spaces.Box, path: str) -> Callable[..., Any]:
        if not np.isfinite(space.low).all() or not np.isfinite(space.high).all():
            raise LudusError(
                f"the action space {space} is unbounded: wrap the env so that its actions have "
                "limits"
            )
        first, shape, low = len(self.continuous), space.shape, space.low
        self.continuous += [f"a{path}{i}" for i in range(int(np.prod(shape)))]
        last, half = len(self.continuous), (space.high.astype(np.float64) - low) / 2

        def decode(continuous: np.ndarray, binary: np.ndarray, choices: np.ndarray) -> np.ndarray:
            value = low + (continuous[first:last].reshape(shape) + 1) * half
            return (np.rint(value) if np.issubdtype(space.dtype, np.integer) else value).astype(
                space.dtype
            )

        return decode


def fill_empty(mask: np.ndarray, at: int, choices: Sequence[int]) -> int:
    """Allows everything in choices (so many options each, from `at` on) that allow nothing; returns
    how many there were."""
    empty = 0
    for options in choices:
        if not mask[at : at + options].any():
            mask[at : at + options] = True
            empty += 1
        at += options
    return empty


def _leaves(
    space: spaces.Space, path: tuple[Any, ...] = ()
) -> list[tuple[tuple[Any, ...], spaces.Space]]:
    """Parts of containers, in order, with the keys that lead to them."""
    if isinstance(space, spaces.Dict):
        return [leaf for key, part in space.spaces.items() for leaf in _leaves(part, (*path, key))]
    if isinstance(space, spaces.Tuple):
        return [leaf for i, part in enumerate(space.spaces) for leaf in _leaves(part, (*path, i))]
    return [(path, space)]


def _channels_at(space: spaces.Space) -> int | None:
    """The axis of the channels in an image [height, width], [height, width, channels] or [channels,
    …]; None: no image."""
    if (
        not isinstance(space, spaces.Box)
        or space.dtype != np.uint8
        or len(space.shape) not in (2, 3)
    ):
        return None
    shape = _image(np.zeros(space.shape)).shape
    for axis in (2, 0):
        if shape[axis] <= MOST_CHANNELS and min(np.delete(shape, axis)) >= LEAST_SIDE:
            return axis
    return None


def _image(value: np.ndarray) -> np.ndarray:
    """With an axis for channels."""
    return value[..., None] if value.ndim == 2 else value
