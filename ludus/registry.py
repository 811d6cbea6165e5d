"""Parts that can be exchanged: algorithms and networks, by a name that Ludus knows or by the import
path of the user's own class.

What Ludus has is registered with two import paths, that of its settings and that of the class
itself, so that `--help` can show the settings without loading torch. A class of the user's own
names its settings in the attribute `settings`. Settings are the section of the configuration that
`section_name` says: `ppo`, or `my_ppo` for `my_lab.algorithms:MyPPO`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterator
from typing import TypeVar

from ludus.errors import LudusError, nearest
from ludus.imports import import_class, import_object, is_path, section_name

Settings = TypeVar("Settings")


class Registry:
    """All algorithms, or all networks. `kind` is what messages call one of them."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._paths: dict[str, tuple[str, str]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def register(self, name: str, settings: str, path: str) -> None:
        """Adds one: the import paths of its settings, which need no torch, and of its class."""
        if name in self._paths:
            raise LudusError(f"there are two {self.kind}s with the name '{name}': rename one")
        self._paths[name] = settings, path

    def settings_of(self, name: str, base: type[Settings]) -> type[Settings]:
        """The dataclass of its settings, which inherits `base`; `base` itself where a class of the
        user's own names none."""
        if name in self._paths:
            found = import_object(self._paths[name][0], f"settings of the {self.kind}")
        else:
            found = getattr(self._own(name), "settings", base)
        if not (isinstance(found, type) and issubclass(found, base)):
            told = found.__name__ if isinstance(found, type) else repr(found)
            raise LudusError(
                f"`settings` of the {self.kind} '{name}' is {told}: it has to be a dataclass that "
                f"inherits ludus.{base.__name__}"
            )
        for f in dataclasses.fields(found):  # type: ignore[arg-type]
            if f.name not in base.__annotations__ and hasattr(base, f.name):
                raise LudusError(
                    f"the setting '{f.name}' of the {self.kind} '{name}' has the name of a method "
                    f"of ludus.{base.__name__}: rename it"
                )
        return found

    def find(self, name: str) -> type:
        """The class."""
        if name in self._paths:
            return import_class(self._paths[name][1], self.kind)
        return self._own(name)

    def _own(self, name: str) -> type:
        """A class of the user's own; refuses one whose settings would not have a section of their
        own."""
        if not is_path(name):
            raise LudusError(
                f"unknown {self.kind} '{name}': {nearest(name, self._paths)} (your own: "
                "package.module:Class)"
            )
        self.refuse_taken(name, self._paths, f"that of the {self.kind}")
        return import_class(name, self.kind)

    def refuse_taken(self, name: str, taken: Container[str], whose: str) -> None:
        """Refuses a class of the user's own whose settings would be a section that is something
        else's."""
        section = section_name(name)
        if is_path(name) and section in taken:
            raise LudusError(
                f"the settings of the {self.kind} '{name}' would be the section '{section}', which "
                f"is {whose} {section}: give the class another name"
            )


ALGORITHMS = Registry("algorithm")
NETWORKS = Registry("network")
