"""Every command that a message, a finding or an example quotes can be typed: it exists, and so do
its options."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import ludus
from ludus.cli import find
from ludus.commands import COMMANDS
from ludus.errors import LudusError
from ludus.recipes import load_recipe
from ludus.training import start

HERE = Path(ludus.__file__).parent
QUOTED = re.compile(r"`ludus ([^`\n]+)`")
WRITTEN = {
    "RECIPE": "pursuit",
    "GAME": "pursuit",
    "NAME": "pursuit",
    "N": "1",
    "VALUE": "pursuit",
    "remote:PORT": "pursuit",
}


class Understood(Exception):
    """The command line was read; nothing is run."""


def texts(path: Path) -> list[str]:
    """Every string of a module, docstrings too; what a formatted one puts in is written VALUE."""
    if path.suffix == ".js":
        return [
            text
            for text in re.findall(r'"([^"\n]+)"|$', path.read_text())
            if text.startswith("ludus ") or "`" in text
        ]
    found, within = [], set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            within |= {id(part) for part in node.values}
            found.append(
                "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "VALUE"
                    for part in node.values
                )
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in within
        ):
            found.append(node.value)
    return found


def quoted() -> list[str]:
    found = set()
    for path in sorted([*HERE.rglob("*.py"), *HERE.glob("*/static/*.js")]):
        for text in texts(path):
            for line in [
                *QUOTED.findall(text),
                *(text.split("  ·  ") if text.startswith("ludus ") else ()),
            ]:
                found.add(line.strip().removeprefix("ludus "))
    return sorted(line for line in found if line not in (*COMMANDS, "VALUE"))


def call(words):
    command, rest = find(words)
    command(rest)


@pytest.fixture
def only_read(monkeypatch):
    """Commands read their options, and stop there."""

    def reading(function):
        def read(*arguments, **named):
            function(*arguments, **named)
            raise Understood

        return read

    for module in {name for name, _ in COMMANDS.values()}:
        imported = importlib.import_module(module)
        for name in ("parse", "parse_config"):
            if hasattr(imported, name):
                monkeypatch.setattr(imported, name, reading(getattr(imported, name)))
    monkeypatch.setattr(start, "forkable", lambda reference: load_recipe("pursuit"))


@pytest.mark.parametrize("line", quoted())
def test_a_quoted_command_can_be_typed(line, only_read):
    # an option that is put in, and its value
    typed = re.sub(r"--VALUE.*", "", line).replace("VALUEVALUE", "VALUE").replace("…", "")
    words = [WRITTEN.get(word, word) for word in typed.split()]
    try:
        with pytest.raises(Understood):
            call(words)
    except (LudusError, SystemExit) as error:
        assert "--help" in words and error.code == 0, f"ludus {line}: {error}"


def test_a_command_that_does_not_exist_is_noticed(only_read):
    with pytest.raises(SystemExit):
        call(["games", "show", "pursuit"])
