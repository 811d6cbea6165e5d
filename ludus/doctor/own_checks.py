"""Checks of the user's own, by import path."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from ludus.doctor.checks import Check, declared
from ludus.errors import LudusError
from ludus.imports import import_object, is_path

DECORATE = "write @check(family=...) above it, from ludus.doctor.checks"


def load_checks(paths: Sequence[str]) -> tuple[Check, ...]:
    """The checks at "package.module:function". Refuses what cannot be used as one."""
    known = dict.fromkeys(declared(), "Ludus")
    found = []
    for path in paths:
        one = _load(path)
        if one.name in known:
            raise LudusError(
                f"the check '{path}' has the name of one of {known[one.name]}, '{one.name}': "
                "rename the function"
            )
        known[one.name] = f"'{path}'"
        found.append(one)
    return tuple(found)


def _load(path: str) -> Check:
    if not is_path(path) or not path.rpartition(":")[2]:
        raise LudusError(
            f"'{path}' is not the import path of a check: write package.module:function"
        )
    found = import_object(path, "check")
    if not callable(found):
        raise LudusError(
            f"the check '{path}' is a {type(found).__name__}, not a function: name a function of "
            "one argument, the log"
        )
    if not isinstance(found, Check):
        raise LudusError(f"the check '{path}' is not declared as a check: {DECORATE}")
    try:
        inspect.signature(found.find).bind(None)
    except TypeError:
        taken = len(inspect.signature(found.find).parameters)
        raise LudusError(
            f"the check '{path}' takes {taken} arguments, but is called with one, the log: give it "
            "one"
        ) from None
    return found
