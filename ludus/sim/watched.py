"""Arrays that say which rule leaves them, and where: for rules that run uncompiled."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.errors import RuleError


class Watched:
    """A field. Rules only ever read and write entries of it."""

    __slots__ = ("array", "game", "name", "whole")

    def __init__(self, game: str, name: str, array: np.ndarray) -> None:
        self.game, self.name, self.array = game, name, array
        self.whole = array.dtype.kind in "iub"

    def __getitem__(self, at: Any) -> Any:
        try:
            return self.array[at]
        except IndexError:
            raise self._outside("reads", at) from None

    def __setitem__(self, at: Any, value: Any) -> None:
        if self.whole and isinstance(value, float | np.floating):
            raise RuleError(
                f"{self.game}: {_rule()} stores a float in '{self.name}', which is "
                f"{self.array.dtype} ({_line()}): its fraction would "
                f"be lost; declare the field as f32, or write int32(…) to cut it off"
            )
        try:
            self.array[at] = value
        except IndexError:
            raise self._outside("writes", at) from None

    def _outside(self, does: str, at: Any) -> RuleError:
        indices, shape = at if isinstance(at, tuple) else (at,), self.array.shape
        axis = next(
            i
            for i, (index, size) in enumerate(zip(indices, shape, strict=False))
            if not -size <= index < size
        )
        more = (
            "declare it in observation="
            if self.name == "observation"
            else "declare the field larger"
        )
        return RuleError(
            f"{self.game}: {_rule()} {does} {self.name}[{', '.join(map(str, indices))}] "
            f"({_line()}): index {indices[axis]} is out of "
            f"range, that axis has {shape[axis]} entries (0 to {shape[axis] - 1}); {more}, or use "
            "a smaller index"
        )


def _frame() -> Any:
    """Of the rule."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        assert frame.f_back is not None
        frame = frame.f_back
    return frame


def _rule() -> str:
    return str(_frame().f_code.co_name)


def _line() -> str:
    return f"{_frame().f_code.co_filename}:{_frame().f_lineno}"


def watched(game: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays and sizes by name, the arrays watched."""
    return {
        name: Watched(game, name, value) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }
