"""Compilation: announced once, cached across processes, never stale, and a game from outside the
package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import ludus

RUN = """
from ludus.games import load_game
from ludus.sim import Batch
batch = Batch(load_game("mygame.spec:GAME")[0], 4, seed=1)
batch["action_go"][...] = 1
for _ in range(5):
    batch.step()
print("moved", float(abs(batch["position"] - 5).sum()))
"""


def run(folder: Path, **environment: str) -> tuple[str, str]:
    env = {**os.environ, "LUDUS_CACHE": str(folder / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_a_game_outside_the_package_is_cached_and_never_stale(tmp_path):
    """The example copied elsewhere runs by import path. Then one constant of a helper's file is
    edited."""
    source = Path(ludus.__file__).parent / "games" / "pursuit"
    game = tmp_path / "mygame"
    shutil.copytree(source, game, ignore=shutil.ignore_patterns("__pycache__"))
    for file in game.glob("*.py"):
        file.write_text(file.read_text().replace("ludus.games.pursuit", "mygame"))

    first, announced = run(tmp_path)
    assert "compiling pursuit for cpu" in announced and "compiled pursuit for cpu in" in announced
    second, quiet = run(tmp_path)
    assert second == first and "compil" not in quiet

    rules = game / "rules.py"
    constants = game / "constants.py"
    constants.write_text("WORLD = 10.0\n")
    rules.write_text(
        rules.read_text().replace("WORLD = 10.0", "from mygame.constants import WORLD")
    )
    moved, quiet = run(tmp_path)
    # where a constant comes from does not matter, its value does
    assert moved == first and "compil" not in quiet

    constants.write_text("WORLD = 20.0\n")
    changed, announced = run(tmp_path)
    assert changed != first and "compiling" in announced
    interpreted, quiet = run(tmp_path, LUDUS_JIT="0")
    assert interpreted == changed and "compil" not in quiet


def test_an_unwritable_cache_is_said_and_survived(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    env = {**os.environ, "LUDUS_CACHE": str(blocked)}
    code = (
        "from ludus.games import load_game; from ludus.sim import Batch; "
        "Batch(load_game('pursuit')[0], 2); print('ok')"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == "ok\n" and "set LUDUS_CACHE" in done.stderr


def test_importing_is_light():
    code = (
        "import sys, ludus, ludus.cli; from ludus.games import load_game; load_game('pursuit'); "
        "print([m for m in ('numba', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_numba_is_imported_in_one_file():
    package = Path(ludus.__file__).parent
    importers = [
        p.name
        for p in package.rglob("*.py")
        if any(w in p.read_text() for w in ("import numba", "from numba"))
    ]
    assert importers == ["compile.py"]
