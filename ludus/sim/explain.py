"""Why a rule cannot be compiled, in one sentence: the function, the line, and what to write
instead.

The compiler tells how it failed, in some fifty lines of its own insides. What it says is used for
the place; what stands there is then looked for among the things that rules cannot do.
"""

from __future__ import annotations

import ast
import inspect
import random as python_random
import re
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

FIXED = (
    "rules allocate nothing: keep it in the state, as a field of fixed size such as "
    'f32("agents", 8), or in single variables'
)
LOOP = "write a loop"
NUMBER = "number the kinds, with names for the numbers"
OWN_RANDOM = "use ludus.sim.random, as in random.uniform(key[env], STREAM, agent)"
DISPLAYS = {
    ast.List: "a list",
    ast.ListComp: "a list",
    ast.Dict: "a dict",
    ast.DictComp: "a dict",
    ast.Set: "a set",
    ast.SetComp: "a set",
    ast.GeneratorExp: "a generator",
    ast.Lambda: "a lambda",
    ast.FunctionDef: "a function inside of a function",
}
# what is called → what to write; functions of numpy, methods of arrays and built-in functions
ADVICE = {
    "clip": "write min(max(value, low), high)",
    "where": "write a if condition else b",
    **dict.fromkeys(("minimum", "maximum", "fmin", "fmax"), "write min(a, b) or max(a, b)"),
    **dict.fromkeys(("norm", "hypot", "linalg"), "write math.sqrt(dx * dx + dy * dy)"),
    **dict.fromkeys(
        (
            "array",
            "asarray",
            "zeros",
            "ones",
            "full",
            "empty",
            "arange",
            "linspace",
            "stack",
            "concatenate",
            "append",
        ),
        FIXED,
    ),
    **dict.fromkeys(("list", "dict", "set", "bytearray"), FIXED),
    **dict.fromkeys(
        (
            "sum",
            "mean",
            "prod",
            "std",
            "any",
            "all",
            "argmax",
            "argmin",
            "argsort",
            "sort",
            "dot",
            "cumsum",
        ),
        LOOP,
    ),
    **dict.fromkeys(("sorted", "enumerate", "zip", "map", "filter", "reversed"), LOOP),
    **dict.fromkeys(("str", "format"), NUMBER),
    "random": OWN_RANDOM,
    "print": "print under LUDUS_JIT=0, which runs the rules uncompiled",
    "len": "use the size by its name, as an argument of the phase",
}


class Suspect(NamedTuple):
    """Something in a rule that may be what the compiler did not take."""

    line: int
    what: str
    advice: str


def explain(game: str, rules: Sequence[Callable], text: str) -> str:
    """`rules`: every function of the program. `text`: what the compiler said."""
    rule, line = _place(rules, text)
    s = next((s for s in _suspects(rule) if s.line == line), None) if rule is not None else None
    if rule is not None and s is not None:
        return (
            f"{game}: {rule.__name__} uses {s.what}, which cannot be compiled "
            f"({_file(rule)}:{line}): {s.advice}"
        )
    where = (
        f"{rule.__name__} cannot be compiled ({_file(rule)}:{line})"
        if rule is not None
        else "its rules cannot be compiled"
    )
    return (
        f"{game}: {where}: {_reason(text)}; rules do arithmetic on numbers and on entries of "
        "fields (LUDUS_JIT=0 runs them uncompiled, "
        f"in a debugger)"
    )


def _file(rule: Callable) -> str:
    return rule.__code__.co_filename


def _place(rules: Sequence[Callable], text: str) -> tuple[Callable | None, int | None]:
    """The rule and the line that the compiler names first: the innermost."""
    for file, number in re.findall(r"(?:at|from) (\S+) \((\d+)\)", text):
        for rule in rules:
            lines = [line for _, _, line in rule.__code__.co_lines() if line is not None]
            if file == _file(rule) and min(lines) <= int(number) <= max(lines):
                return rule, int(number)
    unknown = re.search(r"name '(\w+)' is not defined", text)
    for rule in rules if unknown is not None else ():
        for node, line in _nodes(rule):
            if unknown is not None and isinstance(node, ast.Name) and node.id == unknown[1]:
                return rule, line
    return None, None


def _reason(text: str) -> str:
    """The first thing that the compiler says about the matter."""
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.startswith("Failed in nopython")
    ]
    call = next((line for line in lines if line.startswith(">>>")), "")
    return (
        f"{lines[0].rstrip(':.')} {call.removeprefix('>>>')}".strip()
        if lines
        else "the compiler does not say why"
    )


def _nodes(rule: Callable) -> Iterator[tuple[ast.AST, int]]:
    """Everything in the body of a rule, with its line; text that stands alone is a comment."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(rule))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    first = rule.__code__.co_firstlineno
    for statement in tree.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        for node in ast.walk(statement):
            yield node, first + getattr(node, "lineno", 1) - 1


def _suspects(rule: Callable) -> list[Suspect]:
    """What is never possible comes before what may be."""
    found: list[tuple[int, Suspect]] = []
    for node, line in _nodes(rule):
        if type(node) in DISPLAYS:
            advice = (
                "make it a function at the top of the file"
                if isinstance(node, ast.Lambda | ast.FunctionDef)
                else FIXED
            )
            found.append((0, Suspect(line, DISPLAYS[type(node)], advice)))
        elif isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        ):
            found.append((0, Suspect(line, "text", NUMBER)))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.append((0, Suspect(line, "an import", "write it at the top of the file")))
        elif isinstance(node, ast.Try | ast.With | ast.Yield | ast.Await):
            what = {ast.Try: "try", ast.With: "with", ast.Yield: "yield"}.get(type(node), "await")
            found.append((0, Suspect(line, what, "write it without")))
        elif isinstance(node, ast.Call):
            found += [
                (1, Suspect(line, f"{ast.unparse(node.func)}()", advice))
                for advice in _advice(rule, node.func)
            ]
    return [suspect for _, suspect in sorted(found, key=lambda pair: pair[0])]


def _advice(rule: Callable, called: ast.expr) -> list[str]:
    """What to write instead of a call, if it is one of numpy, of Python's random or of what is
    built in."""
    names = ast.unparse(called).split(".")
    root = rule.__globals__.get(names[0])
    if root is python_random:
        return [OWN_RANDOM]
    if root is np:
        return [
            next(
                (ADVICE[n] for n in names if n in ADVICE),
                "use the functions of math, and min, max and abs",
            )
        ]
    if isinstance(root, types.ModuleType) or (len(names) == 1 and root is not None):
        return []
    return [ADVICE[names[-1]]] if names[-1] in ADVICE else []
