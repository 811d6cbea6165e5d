"""The history of an episode as something a policy sees: some entries of the last observations.

What keeps histories (the rollout while learning, `Frames` while acting) puts zeros where a step
belongs to an earlier episode. The last number of every step is 1, so that it tells which steps
there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HISTORY = "history"  # its name among the things a policy sees


@dataclass(frozen=True)
class History:
    """What a network looks back at: `entries` of the observation by index, of `frames` steps with
    the newest one, and of these every `stride`th. As a tensor it is [steps, rows, tokens, 1,
    entries + 1], oldest token first."""

    entries: tuple[int, ...]
    frames: int
    stride: int = 1

    height = 1

    @property
    def width(self) -> int:
        return len(self.entries) + 1

    @property
    def steps_back(self) -> range:
        """How long ago each token was, oldest first."""
        return range((self.frames - 1) // self.stride * self.stride, -1, -self.stride)

    @classmethod
    def of(cls, names: Sequence[str], prefix: str, frames: int, stride: int = 1) -> History:
        """Of the entries whose name begins with `prefix`, in the order of their names: weights do
        not depend on the order of a game's entries."""
        found = sorted(name for name in names if name.startswith(prefix))
        return cls(tuple(names.index(name) for name in found), frames, stride)
