"""Code of the user's own, by import path: `package.module:name`."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from ludus.errors import FAULTS, LudusError, nearest, reason

OURS = os.path.dirname(__file__) + os.sep
PYTHONS = os.path.dirname(os.__file__) + os.sep  # its standard library


def is_path(name: str) -> bool:
    """Is this an import path rather than a name that Ludus knows?"""
    return ":" in name


def path_of(given: Any) -> str:
    """The import path of a class, or a name as it is."""
    return f"{given.__module__}:{given.__qualname__}" if isinstance(given, type) else str(given)


def import_object(path: str, what: str) -> object:
    """The object at "package.module:name". `what`: what it is for, in messages."""
    module_name, _, attribute = path.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), *attribute.split("."))):
        raise LudusError(
            f"the {what} '{path}' is not an import path: write package.module:name, as after import"
        )
    if module_name == "__main__":
        raise LudusError(
            f"the {what} '{path}' is defined in the program that runs, where no other process "
            "finds it: put it into a module of its own"
        )
    module = _import_module(module_name, f"the {what} '{path}' cannot be loaded")
    if not hasattr(module, attribute):
        public = [name for name in vars(module) if not name.startswith("_")]
        raise LudusError(
            f"the module {module_name} has no '{attribute}': {nearest(attribute, public)}"
        )
    return getattr(module, attribute)


def import_class(path: str, what: str, methods: Sequence[str] = ()) -> type:
    """The class at "package.module:Class"; refuses one that lacks one of these methods."""
    if not is_path(path):
        raise LudusError(f"the {what} '{path}' is not an import path: write package.module:Class")
    found = import_object(path, what)
    if not isinstance(found, type):
        raise LudusError(
            f"the {what} '{path}' is a {type(found).__name__}, not a class: name the class itself"
        )
    for method in methods:
        if not callable(getattr(found, method, None)):
            raise LudusError(
                f"the {what} '{path}' has no method '{method}', which every {what} needs: add it"
            )
    return found


@contextlib.contextmanager
def in_one_sentence(what: str) -> Iterator[None]:
    """Around code of the user's own: what goes wrong in it becomes one sentence, with its place."""
    try:
        yield
    except LudusError:
        raise
    except FAULTS as error:
        raise LudusError(f"{what}: {where_raised(error)}") from error


def _import_module(name: str, failure: str) -> ModuleType:
    """Modules in the working folder are found too, unless it is one of ours."""
    if not name.startswith("ludus.") and os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except SystemExit:
        raise LudusError(
            f"{failure}: the module {name} calls sys.exit() when it is imported; put what runs as "
            'a program under if __name__ == "__main__"'
        ) from None
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            raise LudusError(
                f"{failure}: there is no module '{error.name}' here or installed"
            ) from None
        raise LudusError(f"{failure}: {where_raised(error)}") from error
    except LudusError:
        raise
    except Exception as error:
        raise LudusError(f"{failure}: {where_raised(error)}") from error


def where_raised(error: BaseException) -> str:
    """An error of the user's code with the last place in it, such as
    "ZeroDivisionError: division by zero (my_callbacks.py, line 12)"."""
    place, traceback = "", error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        ours = file.startswith((OURS, PYTHONS, "<")) or "site-packages" in file
        if not ours:
            place = f" ({os.path.basename(file)}, line {traceback.tb_lineno})"
        traceback = traceback.tb_next
    said = reason(error)
    return type(error).__name__ + (f": {said}" if said else "") + place


def section_name(name: str) -> str:
    """The section of the config with the settings of an algorithm or a network: its name, or of an
    import path that of its class, "my_lab.nets:MyEncoder" → "my_encoder"."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name.rpartition(":")[2])
    return words.lower()
