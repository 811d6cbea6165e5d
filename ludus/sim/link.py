"""Makes rule functions runnable as they are written: plain Python, float32 arithmetic, no
decorators on helpers.

`Linker` copies a function with its float constants turned into float32 and with everything it names
turned the same way:
called functions are linked too, modules are replaced by the few names used from them. `fingerprint`
hashes all of that, so a compiled result is never served for rules that have changed, in a helper or
a constant of another file included.
"""

from __future__ import annotations

import builtins
import dis
import functools
import hashlib
import math
import types
from collections.abc import Callable, Set
from typing import Any

import numpy as np

from ludus.errors import RuleError


@functools.cache  # every batch that is made asks for it, of every rule
def names_in(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Global names and attribute names used by a function, nested code included."""
    used: set[str] = set()
    attributes: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            used.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner, inner_attributes = names_in(constant)
            used |= inner
            attributes |= inner_attributes
    return frozenset(used), frozenset(attributes)


def single(value: Any) -> Any:
    """A constant in single precision."""
    if type(value) is float:
        return np.float32(value)
    if isinstance(value, np.float64):
        return np.float32(value)
    if isinstance(value, tuple):
        return tuple(single(v) for v in value)
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value.astype(np.float32)
    if isinstance(value, types.CodeType):
        return value.replace(co_consts=tuple(single(c) for c in value.co_consts))
    return value


def _single_math() -> types.ModuleType:
    """The math module on float32, for rules that run uncompiled."""
    module = types.ModuleType("math")
    whole = {"floor", "ceil", "trunc"}
    for name in dir(math):
        value = getattr(math, name)
        if callable(value) and name not in whole and not name.startswith("is"):

            def rounded(*args: float, _f: Callable = value) -> np.float32:
                return np.float32(_f(*args))

            setattr(module, name, rounded)
        else:
            setattr(module, name, single(value))
    return module


class Linker:
    """Links functions. `wrap` and `wrap_phase` are applied to linked helpers and phases: a JIT
    compiler, or nothing."""

    def __init__(
        self, wrap: Callable[[Callable], Any], wrap_phase: Callable[[Callable], Any], compiled: bool
    ) -> None:
        self.wrap, self.wrap_phase = wrap, wrap_phase
        self.done: dict[tuple[Callable, str], Any] = {}
        self.math = self._module(math, set(dir(math))) if compiled else _single_math()

    def link(self, function: Callable, phase: bool = False) -> Any:
        # a constant may have changed since it was last linked
        key = (function, fingerprint([function]))
        if key not in self.done:
            _refuse(function)
            self.done[key] = None
            names, attributes = names_in(function.__code__)
            scope: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
            for name in sorted(names & function.__globals__.keys()):
                scope[name] = self._convert(function.__globals__[name], attributes)
            linked = types.FunctionType(single(function.__code__), scope, function.__name__)
            self.done[key] = self.wrap_phase(linked) if phase else self.wrap(linked)
        if self.done[key] is None:
            raise RuleError(
                f"the rule function {function.__name__} calls itself: write it as a loop"
            )
        return self.done[key]

    def _convert(self, value: Any, attributes: Set[str]) -> Any:
        if value is math:
            return self.math
        if isinstance(value, types.FunctionType):
            return self.link(value)
        if isinstance(value, types.ModuleType) and value is not np:
            return self._module(value, attributes)
        return single(value)

    def _module(self, module: types.ModuleType, attributes: Set[str]) -> types.ModuleType:
        proxy = types.ModuleType(module.__name__)
        for name in attributes & vars(module).keys():
            setattr(proxy, name, self._convert(getattr(module, name), attributes))
        return proxy


def _refuse(function: Callable) -> None:
    if function.__closure__:
        raise RuleError(
            f"the rule function {function.__name__} uses variables of an enclosing function: make "
            "it top-level"
        )
    if function.__defaults__ or function.__kwdefaults__:
        raise RuleError(
            f"the rule function {function.__name__} has default arguments: hand every argument over"
        )


def reachable(functions: list[Callable]) -> set[Callable]:
    """These functions and all they call, transitively."""
    found: set[Callable] = set()
    waiting = list(functions)
    while waiting:
        function = waiting.pop()
        if function in found:
            continue
        found.add(function)
        names, attributes = names_in(function.__code__)
        values = [function.__globals__[n] for n in names & function.__globals__.keys()]
        for module in [
            v for v in values if isinstance(v, types.ModuleType) and v not in (math, np)
        ]:
            values += [getattr(module, n) for n in attributes & vars(module).keys()]
        waiting += [v for v in values if isinstance(v, types.FunctionType)]
    return found


def fingerprint(functions: list[Callable]) -> str:
    """A hash of the code of these functions and of everything they use, transitively."""
    digest = hashlib.sha256()
    seen: set[Callable] = set()

    def feed(*parts: object) -> None:
        for part in parts:
            digest.update(part if isinstance(part, bytes) else repr(part).encode())
            digest.update(b"\0")

    def feed_code(code: types.CodeType) -> None:
        feed(code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_argcount)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                feed_code(constant)
            else:
                feed(type(constant).__name__, constant)

    def feed_value(name: str, value: Any, attributes: Set[str]) -> None:
        if isinstance(value, types.FunctionType):
            feed(name)
            feed_function(value)
        elif isinstance(value, types.ModuleType):
            if value not in (math, np):
                for inner in sorted(attributes & vars(value).keys()):
                    feed_value(f"{name}.{inner}", getattr(value, inner), attributes)
        elif isinstance(value, np.ndarray):
            feed(name, value.dtype, value.shape, value.tobytes())
        elif isinstance(value, type):
            feed(
                name,
                value.__name__,
                {n: m.value for n, m in getattr(value, "__members__", {}).items()},
            )
        else:
            feed(name, type(value).__name__, value)

    def feed_function(function: Callable) -> None:
        if function in seen:
            feed("again", function.__name__)
            return
        seen.add(function)
        feed_code(function.__code__)
        names, attributes = names_in(function.__code__)
        for name in sorted(names & function.__globals__.keys()):
            feed_value(name, function.__globals__[name], attributes)

    for function in functions:
        feed_function(function)
    return digest.hexdigest()
