"""Gymnasium spaces as JSON and back: a run keeps those of its env, so that its policy can act where
the env is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from ludus.external.codec import Codec


def describe(roles: Mapping[str, Sequence[str]], codecs: Sequence[Any]) -> dict[str, Any] | None:
    """What the agents of each role see and do; None where there are no spaces (remote envs), or of
    a kind that is not known here."""
    out, at = {}, 0
    for role, agents in roles.items():
        codec = codecs[at]
        at += len(agents)
        try:
            seen, does = to_json(codec.observation_space), to_json(codec.action_space)
        except ValueError:
            return None
        out[role] = {
            "agents": list(agents),
            "observation": seen,
            "action": does,
            "masked": codec.masked,
        }
    return out


def codecs_of(described: Mapping[str, Any]) -> dict[str, Codec]:
    """By role."""
    return {
        role: Codec(
            from_json(kept["observation"]), from_json(kept["action"]), masked=kept["masked"]
        )
        for role, kept in described.items()
    }


def to_json(space: Any) -> dict[str, Any]:
    """Raises ValueError for what is not a space, or not of a kind that Ludus trains on."""
    if isinstance(space, spaces.Box):
        shape = list(space.shape)
        return {
            "box": shape,
            "low": _limits(space.low),
            "high": _limits(space.high),
            "dtype": str(space.dtype),
        }
    if isinstance(space, spaces.Discrete):
        return {"discrete": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {
            "multi_discrete": space.nvec.tolist(),
            "start": space.start.tolist(),
            "dtype": str(space.dtype),
        }
    if isinstance(space, spaces.MultiBinary):
        return {"multi_binary": space.shape[0] if np.ndim(space.n) == 0 else list(space.shape)}
    if isinstance(space, spaces.Tuple):
        return {"tuple": [to_json(part) for part in space.spaces]}
    if isinstance(space, spaces.Dict) and all(isinstance(key, str | int) for key in space.spaces):
        return {"dict": [[key, to_json(part)] for key, part in space.spaces.items()]}
    raise ValueError(f"{space} is not kept")


def from_json(kept: Mapping[str, Any]) -> spaces.Space:
    match kept:
        case {"box": shape, "low": low, "high": high, "dtype": dtype}:
            return spaces.Box(
                _array(low, shape, dtype), _array(high, shape, dtype), dtype=np.dtype(dtype).type
            )
        case {"discrete": n, "start": start}:
            return spaces.Discrete(n, start=start)
        case {"multi_discrete": options, "start": start, "dtype": dtype}:
            return spaces.MultiDiscrete(
                np.array(options), np.dtype(dtype).type, start=np.array(start)
            )
        case {"multi_binary": shape}:
            return spaces.MultiBinary(shape)
        case {"tuple": parts}:
            return spaces.Tuple([from_json(part) for part in parts])
        case {"dict": parts}:
            return spaces.Dict([(key, from_json(part)) for key, part in parts])
    raise ValueError(f"{kept} is not a space")


def _limits(values: np.ndarray) -> Any:
    """One number where all are the same; infinity, which JSON does not have, as text."""
    flat = [v if np.isfinite(v) else str(v) for v in values.ravel().tolist()]
    return flat[0] if len(set(flat)) == 1 else flat


def _array(limits: Any, shape: Sequence[int], dtype: str) -> np.ndarray:
    parsed = [
        float(v) if isinstance(v, str) else v
        for v in (limits if isinstance(limits, list) else [limits])
    ]
    return np.broadcast_to(
        np.array(parsed, dtype).reshape(shape if len(parsed) > 1 else ()), shape
    ).copy()
