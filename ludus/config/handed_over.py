"""Envs that a program hands over as objects: a function or a class that makes one, or an env
itself.

What can be imported is kept by name, so that any process finds it again. What cannot (it is defined
in a script, a notebook or inside of a function, or it is an env) is known to this process alone,
under a name that begins with `HERE`.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable
from typing import Any

from ludus.errors import FAULTS, LudusError
from ludus.sim.game import Game

HERE = "env:__main__:"
_known: dict[str, Any] = {}  # name → what was handed over


def source_of(given: Any) -> str:
    """The name under which `make_env` finds it: "env:MODULE:NAME" where it can be imported."""
    if isinstance(given, Game):
        raise LudusError(
            f"the game {given.name} is trained on by its name: game='my_module:GAME', where "
            "my_module has it as GAME"
        )
    if not callable(given) and not _is_env(given):
        raise LudusError(
            f"a {type(given).__name__} is nothing to train on: use a recipe's name, a Config, an "
            "env, or a function that makes one"
        )
    named = type(getattr(given, "unwrapped", given)) if _is_env(given) else given
    module, name = (
        getattr(named, "__module__", "__main__"),
        getattr(named, "__qualname__", type(named).__name__),
    )
    if (
        named is given
        and module != "__main__"
        and getattr(sys.modules.get(module), name, None) is given
    ):
        return f"env:{module}:{name}"
    return _remember(re.sub(r"\W+", "_", name.rpartition(".<locals>.")[2]).strip("_"), given)


def _is_env(given: Any) -> bool:
    return not isinstance(given, type) and all(
        callable(getattr(given, name, None)) for name in ("reset", "step")
    )


def _remember(name: str, given: Any) -> str:
    """Under a name of its own: another object of the same name gets a number."""
    number = 1
    while (
        _known.setdefault(source := HERE + name + (f"_{number}" if number > 1 else ""), given)
        is not given
    ):
        number += 1
    return source


def hand_over(source: str, given: Any) -> None:
    """Makes the env of a run known again, under the name that the run has for it."""
    if not source.startswith(HERE):
        raise LudusError(f"this run finds its env by its name, {source}: leave env= out")
    source_of(given)  # refuses what is no env
    _known[source] = given


def maker_of(source: str) -> Callable[..., Any]:
    """What makes the envs of a source that begins with `HERE`."""
    if source not in _known:
        raise LudusError(
            f"the env {source.removeprefix(HERE)} was handed over by a program, and this one does "
            "not have it: hand it over again, in "
            "Python with ludus.resume(RUN, env=…), or write a function that makes it in a module, "
            "and train on module:function"
        )
    given = _known[source]

    def copied() -> Any:
        try:
            return copy.deepcopy(given)
        except FAULTS as error:
            raise LudusError(
                f"this {type(given).__name__} cannot be copied ({type(error).__name__}: {error}), "
                "and training needs several: hand "
                f"over a function that makes one"
            ) from None

    return copied if _is_env(given) else given
