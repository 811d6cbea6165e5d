"""The doctor reads files with numpy and the standard library: it must run where nothing else of
Ludus is installed but what errors and damaged files need."""

import ast
import sys
from pathlib import Path

import ludus.doctor

ALLOWED = {
    "numpy",
    "ludus.doctor",
    "ludus.errors",
    "ludus.files",
    "ludus.imports",
    "ludus.intervals",
    *sys.stdlib_module_names,
}


def test_imports():
    for path in Path(ludus.doctor.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                allowed = any(name == a or name.startswith(f"{a}.") for a in ALLOWED)
                assert allowed, f"{path.name} imports {name}"
