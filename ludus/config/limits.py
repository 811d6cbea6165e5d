"""What a single setting may be, written beside its field: `episodes: Annotated[int, AtLeast(1)]`.

Of a schedule every value has to be within the limits, of a tuple every entry.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, get_type_hints

from ludus.config.schedules import parse
from ludus.errors import LudusError, nearest


@dataclasses.dataclass(frozen=True)
class AtLeast:
    least: float

    def fault(self, value: Any) -> str | None:
        return None if value >= self.least else f" cannot work: use {self.least:g} or more"


@dataclasses.dataclass(frozen=True)
class Above:
    limit: float

    def fault(self, value: Any) -> str | None:
        return None if value > self.limit else f" cannot work: use more than {self.limit:g}"


@dataclasses.dataclass(frozen=True)
class Between:
    least: float
    most: float

    def fault(self, value: Any) -> str | None:
        inside = self.least <= value <= self.most
        return None if inside else f" is outside {self.least:g} to {self.most:g}"


@dataclasses.dataclass(frozen=True)
class Below:
    """From 0 to less than this."""

    limit: float

    def fault(self, value: Any) -> str | None:
        inside = 0 <= value < self.limit
        return None if inside else f" cannot work: use 0 or more, and less than {self.limit:g}"


@dataclasses.dataclass(frozen=True)
class OneOf:
    known: tuple[str, ...]

    def fault(self, value: Any) -> str | None:
        return None if value in self.known else f": {nearest(str(value), self.known)}"


OF_PARTS = ("learner", "network_settings")
"""Fields with the settings of a part that can be exchanged: their section is called as the part."""


def name_of(section: Any, field: str) -> str:
    """What a field of a section is called in dotted names."""
    return section.section if field in OF_PARTS else field


LIMITS = (AtLeast, Above, Between, Below, OneOf)


def check_limits(section: Any, prefix: str = "") -> None:
    """Refuses the first value of a section, or of one within it, that is outside its limits."""
    limits = limits_of(type(section))
    for f in dataclasses.fields(section):
        value, full = getattr(section, f.name), prefix + name_of(section, f.name)
        if dataclasses.is_dataclass(value):
            check_limits(value, f"{full}.")
        for limit in limits.get(f.name, ()):
            _check(limit, value, full)


def limits_of(kind: type) -> dict[str, list[Any]]:
    """Field → its limits. A field that is declared again without any keeps those it had."""
    out: dict[str, list[Any]] = {}
    for base in reversed(kind.__mro__):
        for name, hint in get_type_hints(base, include_extras=True).items():
            own = [x for x in getattr(hint, "__metadata__", ()) if isinstance(x, LIMITS)]
            out |= {name: own} if own else {}
    return out


def _check(limit: Any, value: Any, name: str) -> None:
    for single in _values(limit, value, name):
        fault = limit.fault(single)
        if fault is not None:
            shown = list(value) if isinstance(value, tuple) else value
            raise LudusError(f"{name}={shown}{fault}")


def _values(limit: Any, value: Any, name: str) -> Sequence[Any]:
    if value is None:
        return ()
    if isinstance(value, tuple):
        return value
    if isinstance(value, str) and not isinstance(limit, OneOf):
        return parse(value, name).values
    return (value,)
