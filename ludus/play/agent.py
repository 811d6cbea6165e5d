"""A trained policy to play with: numpy in, numpy out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ludus.errors import LudusError
from ludus.networks.encoders import Frames
from ludus.networks.history import HISTORY
from ludus.protocols import ActingPolicy

if TYPE_CHECKING:
    import torch

NUMBERS = "numbers"  # the key of the named entries in a Dict observation, as in ludus.envs


class Agent:
    """A trained policy of one role: `action, state = agent.act(observation, state)`."""

    def __init__(self, policy: ActingPolicy, layout: Mapping[str, Any], role: str) -> None:
        self.policy, self.layout, self.role = policy, layout, role
        policy.eval()

    def act(
        self,
        observation: Any,
        state: np.ndarray | None = None,
        *,
        mask: np.ndarray | None = None,
        greedy: bool = False,
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Actions by kind, and the state for the next call (None: a new episode).

        The observation is an array [entries] or, for many agents at once, [rows, entries]. Where
        the game also shows pictures or tokens it is a dict, as `ludus.envs` gives it: `numbers`,
        and the rest by name, each [height, width] or [rows, …]. Only the newest picture: earlier
        frames, and what a network looks back at, are part of the state [rows, …].
        """
        import torch

        given: Mapping[str, Any] = (
            observation if isinstance(observation, Mapping) else {NUMBERS: observation}
        )
        single = np.ndim(given.get(NUMBERS, ())) == 1
        parts = self._checked(given, single)
        numbers = torch.as_tensor(parts[NUMBERS], dtype=torch.float32)
        rows = len(numbers)
        frames = Frames(self.policy.seen, rows, "cpu")
        memory = self._recall(state, frames, rows)
        with torch.no_grad():
            newest = {n: torch.as_tensor(part) for n, part in parts.items() if n != NUMBERS}
            if HISTORY in self.policy.seen:
                newest[HISTORY] = self.policy.remembered(numbers)
            seen = frames.push(newest, torch.full((rows,), state is None))
            allowed = (
                torch.as_tensor(np.atleast_2d(mask), dtype=torch.bool).unsqueeze(0)
                if mask is not None
                else None
            )
            output = self.policy(
                numbers.unsqueeze(0), memory, torch.zeros(1, rows, dtype=torch.bool), allowed, seen
            )
            chosen = output.distribution.greedy() if greedy else output.distribution.sample()
        actions = {
            "continuous": chosen.continuous[0],
            "binary": chosen.binary[0],
            "choices": chosen.choices[0],
        }
        kept = [frames.kept[name].flatten(1).float() for name in self._longer()]
        out = {name: (x[0] if single else x).numpy() for name, x in actions.items() if x.shape[-1]}
        return out, torch.cat([output.state, *kept], 1).numpy()

    def _longer(self) -> list[str]:
        """What is seen of more than one step."""
        return [name for name, part in self.policy.seen.items() if part.frames > 1]

    def _recall(self, state: np.ndarray | None, frames: Frames, rows: int) -> torch.Tensor:
        """The policy's memory out of a state; frames go back to where they were kept."""
        import torch

        if state is None:
            return self.policy.initial_state(rows)
        sizes = [self.policy.state_size, *(frames.kept[name][0].numel() for name in self._longer())]
        if np.shape(state) != (rows, sum(sizes)):
            raise LudusError(
                f"the state has the shape {list(np.shape(state))}, {rows} rows of {self.role} need "
                f"{[rows, sum(sizes)]}: "
                f"hand back what act returned, and None at the start of an episode"
            )
        memory, *kept = torch.tensor(state, dtype=torch.float32).split(sizes, 1)
        for name, part in zip(self._longer(), kept, strict=True):
            frames.kept[name].copy_(part.view_as(frames.kept[name]))
        return memory

    def _checked(self, given: Mapping[str, Any], single: bool) -> dict[str, np.ndarray]:
        """What the policy is shown, by name, each [rows, …]."""
        shapes: dict[str, tuple[int, ...]] = {NUMBERS: (self.policy.entries,)}
        shapes |= {
            name: (part.height, part.width)
            for name, part in self.policy.seen.items()
            if name != HISTORY
        }
        missing = [name for name in shapes if name not in given]
        if missing:
            raise LudusError(
                f"the observation of {self.role} must have {', '.join(shapes)}: "
                f"{', '.join(missing)} is missing"
            )
        parts = {
            name: np.asarray(given[name])[None] if single else np.asarray(given[name])
            for name in shapes
        }
        rows = len(parts[NUMBERS])
        for name, shape in shapes.items():
            if parts[name].shape != (rows, *shape):
                got, want = list(parts[name].shape[single:]), [*([] if single else [rows]), *shape]
                raise LudusError(
                    f"'{name}' in the observation of {self.role} has the shape {got}, its policy "
                    f"needs {want}"
                )
        return parts
