"""A value of the wrong type is refused by its name, before anything computes with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ludus.config.algorithm import RoleConfig
from ludus.config.limits import name_of
from ludus.errors import LudusError

WORDS: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "None",
}
SCHEDULE = "a number, or a schedule such as '1e-3 -> 0'"


def check_types(section: Any, prefix: str = "") -> None:
    """Every value has the type of its field; whole floats become the integers they stand for
    (total_agent_steps=5e6)."""
    for name, kind in _kinds(type(section)).items():
        full = prefix + name_of(section, name)
        value = _fitted(getattr(section, name), kind, full)
        if name == "roles" and isinstance(section, RoleConfig):
            known = _kinds(type(section))
            value = {
                role: {
                    key: _fitted(v, known.get(key, Any), f"{full}.{role}.{key}")
                    for key, v in keys.items()
                }
                for role, keys in value.items()
            }
        setattr(section, name, value)


def _kinds(section: Any) -> dict[str, Any]:
    """Field → type of a dataclass."""
    hints = get_type_hints(section)
    return {f.name: hints[f.name] for f in dataclasses.fields(section)}


def _fitted(value: Any, kind: Any, name: str) -> Any:
    """The value as this type, or an error that says what it must be."""
    if kind is Any:
        return value
    options = get_args(kind) if get_origin(kind) in (UnionType, Union) else (kind,)
    for option in options:
        container = get_origin(option)
        if container is tuple and isinstance(value, list | tuple):
            return tuple(
                _fitted(v, get_args(option)[0], f"{name}[{i}]") for i, v in enumerate(value)
            )
        if container is dict and isinstance(value, Mapping):
            return {
                key: _fitted(v, get_args(option)[1], f"{name}.{key}") for key, v in value.items()
            }
        if dataclasses.is_dataclass(option) and isinstance(value, option):  # type: ignore[arg-type]
            check_types(value, f"{name}.")
            return value
        if container is None and not dataclasses.is_dataclass(option) and _is(value, option):
            return int(value) if option is int else value
    raise LudusError(
        f"{name.replace('game_values.', 'game.')}={value!r} is of type {type(value).__name__}: use "
        f"{_words(options)}"
    )


def _is(value: Any, kind: type) -> bool:
    if kind is int:
        return not isinstance(value, bool) and (
            isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
        )
    if kind is float:
        return not isinstance(value, bool) and isinstance(value, Real)
    return isinstance(value, kind)


def _words(options: tuple[Any, ...]) -> str:
    """What a field takes."""
    if float in options and str in options:
        return SCHEDULE + (" (or None)" if NoneType in options else "")
    return " or ".join(_word(option) for option in options)


def _word(option: Any) -> str:
    if get_origin(option) is tuple:
        return f"a list of which each is {_word(get_args(option)[0])}"
    if get_origin(option) is dict:
        return f"a dict of which each value is {_word(get_args(option)[1])}"
    return WORDS.get(option) or f"a {option.__name__}"
