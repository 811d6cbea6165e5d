"""Random damage to the files of compiled rules: whatever lies there, the game starts and gives the
same results.

Every start is a process of its own, forked from one that has compiled the helpers and no driver, so
that a start that compiles takes two seconds instead of seven.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = 200

SCRIPT = """
import json, os, random, shutil, signal, sys
from pathlib import Path
from ludus.games import load_game
from ludus.sim import Batch, compile, driver_cache

GAME = load_game("pursuit")[0]
chance = random.Random(1)


def play():
    batch = Batch(GAME, 8, seed=3)
    for _ in range(50):
        batch.step()
    return batch["observation"].tobytes() + batch["reward"].tobytes()


def begin(report):
    # as a new process: no driver is loaded
    for name in [n for n in sys.modules if n.startswith("ludus_driver_")]:
        del sys.modules[name]
    with open(report, "w") as stream:
        os.dup2(stream.fileno(), 2)
        return play()


def flip(data):
    for _ in range(chance.choice((1, 1, 2, 50))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def zero(data):
    at, size = chance.randrange(len(data)), chance.choice((1, 512, 4096))
    data[at : at + size] = bytes(len(data[at : at + size]))


def overwrite(data):
    at = chance.randrange(len(data))
    data[at : at + 64] = chance.randbytes(64)


def insert(data):
    at = chance.randrange(len(data))
    data[at:at] = chance.randbytes(chance.randrange(1, 5000))


def remove(data):
    at = chance.randrange(len(data))
    del data[at : at + chance.randrange(1, 5000)]


def change(edit):
    def changed(path):
        data = bytearray(path.read_bytes())
        edit(data)
        path.write_bytes(data)
    return changed


def as_folder(path):
    path.unlink()
    path.mkdir()
    (path / "driver.py").write_text("raise SystemExit(9)")


def link(target):
    def linked(path):
        path.unlink()
        path.symlink_to(target)
    return linked


KINDS = {
    "bits flipped": change(flip), "a block of zeros": change(zero), "a block of noise": change(overwrite),
    "bytes inserted": change(insert), "bytes removed": change(remove),
    "cut": lambda path: os.truncate(path, chance.randrange(path.stat().st_size)),
    "empty": lambda path: os.truncate(path, 0),
    "all noise": lambda path: path.write_bytes(chance.randbytes(path.stat().st_size)),
    "another game's file": lambda path: shutil.copy(other, path),
    "removed": lambda path: path.unlink(),
    "a folder": as_folder, "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a link to itself": link("loop"), "a link to a device": link("/dev/zero"),
}
OFTEN = ["bits flipped", "a block of zeros", "a block of noise", "bytes inserted", "bytes removed", "cut"]

wanted = begin(os.devnull)
(path,) = driver_cache.cache_root().iterdir()
good = path.read_bytes()
(other,) = [path.with_name("another-game")]
file = driver_cache.KernelFile(path)
file.path = other
file.write()

counts, failed = {}, []
for number in range(int(sys.argv[1])):
    kind = chance.choice(OFTEN) if chance.random() < 0.6 else chance.choice(list(KINDS))
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.write_bytes(good)
    KINDS[kind](path)
    statuses, reports = [], []
    for attempt in range(2):  # the second finds what the first repaired
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            os._exit(0 if begin("report") == wanted else 1)
        statuses.append(os.waitpid(child, 0)[1])
        reports.append(Path("report").read_text())
    said = "again: " in reports[0] or (kind == "removed" and "the first time" in reports[0])
    good_end = statuses == [0, 0] and said and reports[1] == ""
    count = counts.setdefault(kind, {"started": 0, "right": 0})
    count["started"] += 1
    count["right"] += good_end
    if not good_end:
        failed.append([kind, number, statuses, reports])
print(json.dumps([counts, failed]))
"""


def damage(folder: Path, count: int) -> dict[str, dict[str, int]]:
    env = {
        **os.environ,
        "LUDUS_CACHE": str(folder / "cache"),
        "NUMBA_OPT": "1",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(count)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    counts, failed = json.loads(done.stdout)
    assert not failed, failed
    return counts


@pytest.mark.slow
def test_a_game_starts_whatever_lies_in_the_cache(tmp_path):
    counts = damage(tmp_path, COUNT)
    for kind, count in sorted(counts.items()):
        print(f"| {kind} | {count['started']} | {count['right']} |")
    assert sum(count["started"] for count in counts.values()) == COUNT
