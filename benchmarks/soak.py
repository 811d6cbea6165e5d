"""Do a league in training and a viewer that is open grow with time? Memory, open files, threads of
both, and files of the run.

Trains with opponents from a full pool while a page takes every frame of its newest policies, and
other pages ask for the list of runs, the run, and films of its replays all the time. What counts is
the second half: caches fill in the first.

    python benchmarks/soak.py --minutes 30
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np
from live_view import PORT, Watcher

LEAGUE = [
    "--league.mix",
    "self 2, pool 2",
    "--league.pool-size",
    "4",
    "--league.snapshot-every",
    "20000",
    "--league.slots",
    "4",
]
ENDLESS = [
    "--train.total-agent-steps",
    "1000000000000",
    "--checkpoint.every-seconds",
    "10",
    "--eval.every-seconds",
    "60",
]
SAMPLE_SECONDS = 5.0


def state_of(process: int) -> dict[str, float]:
    """Memory, open files and threads of a process and of those it started."""
    children = [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    own = Path(f"/proc/{process}")
    resident = int((own / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    found = {
        "resident_mb": resident,
        "open_files": len(os.listdir(own / "fd")),
        "threads": len(os.listdir(own / "task")),
    }
    for child in children:
        with contextlib.suppress(OSError):
            found = {name: value + state_of(child)[name] for name, value in found.items()}
    return found


def ask(path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=60) as answer:
        return bytes(answer.read())


def look(run: Path) -> int:
    """What open pages ask for."""
    ask("/api/runs")
    ask(f"/api/run/{run.name}")
    replays = sorted((run / "replays").glob("*.safetensors"))
    for replay in replays[-2:]:
        with contextlib.suppress(urllib.error.HTTPError):  # it may have made way
            ask(f"/api/run/{run.name}/replay/{urllib.parse.quote(replay.name)}")
    return 2 + len(replays[-2:])


def files_of(run: Path) -> dict[str, float]:
    files = [path for path in run.rglob("*") if path.is_file()]
    kept = [path for path in files if path.suffix == ".safetensors"]
    return {"files": len(files), "tensors_mb": sum(path.stat().st_size for path in kept) / 2**20}


def grown(samples: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Of each figure: mean of the third quarter and of the last."""
    quarter = len(samples) // 4
    parts = {
        "third_quarter": samples[2 * quarter : 3 * quarter],
        "last_quarter": samples[3 * quarter :],
    }
    names = samples[0]
    return {
        name: {part: float(np.mean([s[name] for s in rows])) for part, rows in parts.items()}
        for name in names
    }


def soak(run: Path, minutes: float, trainer: int, viewer: int) -> dict[str, object]:
    while not (run / "config.json").exists():
        time.sleep(0.2)
    while True:
        with contextlib.suppress(OSError):
            ask("/api/runs")
            break
        time.sleep(0.5)
    watcher = Watcher(run.name)
    watcher.start()
    samples, asked, end = list[dict[str, float]](), 0, time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        asked += look(run)
        both = {
            f"{who}/{n}": v
            for who, pid in (("train", trainer), ("view", viewer))
            for n, v in state_of(pid).items()
        }
        samples.append({**both, **{f"run/{n}": v for n, v in files_of(run).items()}})
        time.sleep(SAMPLE_SECONDS)
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return {
        "minutes": minutes,
        "agent_steps": json.loads(lines[-1])["progress/agent_steps"],
        "iterations": len(lines),
        "frames": watcher.frames,
        "requests": asked,
        "watching": watcher.is_alive(),
        **grown(samples),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--recipe", default="pursuit")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "runs" / "soak"
        train = [
            sys.executable,
            "-m",
            "ludus",
            "train",
            options.recipe,
            "--run",
            str(run),
            "--quiet",
            "--train.threads",
            "1",
            *LEAGUE,
            *ENDLESS,
        ]
        view = [
            sys.executable,
            "-m",
            "ludus",
            "view",
            "--root",
            str(run.parent),
            "--port",
            str(PORT),
            "--headless",
        ]
        run.parent.mkdir()
        with (
            subprocess.Popen(train, stdout=subprocess.DEVNULL) as trainer,
            subprocess.Popen(view) as viewer,
        ):
            try:
                print(json.dumps(soak(run, options.minutes, trainer.pid, viewer.pid), indent=1))
            finally:
                trainer.terminate()
                viewer.terminate()


if __name__ == "__main__":
    main()
