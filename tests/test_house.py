"""The house has one direction: a part of the package imports only parts above it in this list."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ludus
from ludus.registry import ALGORITHMS, NETWORKS

ORDER = (
    "errors",
    "imports",
    "registry",
    "intervals",
    "machine",
    "who",
    "files",
    "protocols",
    "sim",
    "games",
    "config",
    "external",
    "batches",
    "networks",
    "algorithms",
    "runs",
    "play",
    "league",
    "curriculum",
    "recipes",
    "doctor",
    "evidence",
    "training",
    "api",
    "__init__",
    "examine",
    "films",
    "export",
    "viewer",
    "envs",
    "bench",
    "commands",
    "cli",
    "__main__",
)
NUMBA = {"sim/compile.py"}
"""Compilation changes hands one day: one file knows who does it."""
ROOT = Path(ludus.__file__).parent


def part(path: Path) -> str:
    """errors.py → errors, sim/batch.py → sim."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a file imports, inside functions too: absolute, relative,
    and through importlib."""
    package = ("ludus", *path.relative_to(ROOT).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join((*above, *([node.module] if node.module else [])))
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0]  # of importlib, or of a table of modules
            known = name.startswith("ludus.") and name.replace(".", "").isidentifier()
            if known and (ROOT.parent / name.replace(".", "/")).with_suffix(".py").exists():
                yield node.lineno, name


def without_types(tree: ast.AST) -> ast.AST:
    """Without what is imported for annotations only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = [ast.Pass()]
    return tree


def wrong_imports(path: Path, tree: ast.AST) -> list[str]:
    mine, found = part(path), []
    for line, name in imported(path, tree):
        top, _, rest = name.partition(".")
        theirs = rest.partition(".")[0]
        if top != "ludus" or theirs not in ORDER:
            continue
        if ORDER.index(theirs) > ORDER.index(mine):
            found.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    return found


def test_every_part_has_its_place():
    assert {part(path) for path in ROOT.rglob("*.py")} == set(ORDER)


def test_imports_go_one_way():
    found = [
        text
        for path in sorted(ROOT.rglob("*.py"))
        for text in wrong_imports(path, without_types(ast.parse(path.read_text())))
    ]
    assert not found, "\n".join(found)


def test_the_reader_of_imports_sees_all_kinds():
    path = ROOT / "sim" / "batch.py"
    for text in (
        "import ludus.training.loop",
        "from ludus.training import loop",
        "from ludus import training",
        "from .. import training",
        "from ..training.loop import Trainer",
        "def f():\n    from ludus.training.loop import Trainer",
        "import_module('ludus.training.loop')",
        "WHERE = 'ludus.training.loop:Trainer'",
    ):
        assert wrong_imports(path, ast.parse(text)), text
    for text in ("from ludus.errors import LudusError", "from . import game", "import numpy"):
        assert not wrong_imports(path, ast.parse(text)), text


def test_only_one_file_imports_numba():
    found = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if any(
            name.partition(".")[0] in ("numba", "numba_cuda")
            for _, name in imported(path, ast.parse(path.read_text()))
        )
    }
    assert found == NUMBA


def test_help_needs_no_torch():
    script = (
        "import sys, ludus.cli\n"
        "try:\n    ludus.cli.main(['train', '--help'])\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "heavy = {'torch', 'numba', 'matplotlib', 'tensorboard'} & set(sys.modules)\n"
        "print('loaded', sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "--train.total-agent-steps" in done.stdout, done.stderr
    assert done.stderr.splitlines()[-1] == "loaded []", done.stderr


def test_no_algorithm_or_network_is_compared_by_name():
    """What differs between them is a method of theirs, so that another one needs no edit."""
    names = {*ALGORITHMS, *NETWORKS}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare | ast.match_case)
        and any(isinstance(n, ast.Constant) and n.value in names for n in ast.walk(node))
    ]
    assert not found, "\n".join(found)
