"""How much does watching a run slow its training?

Trains a recipe in one process and lets `ludus view` play its newest policies in another, for a
client that takes every frame. Watching is switched on and off every few seconds, so that other work
on the machine falls on both alike. Speed is told per second, and per second of CPU time the trainer
had: the second says what watching costs where cores are not shared.

    python benchmarks/live_view.py --seconds 120
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

PORT = 8641


class Watcher(threading.Thread):
    """A page without a screen: takes frames while it watches; otherwise the game is paused."""

    def __init__(self, run: str) -> None:
        super().__init__(daemon=True)
        address = f"ws://127.0.0.1:{PORT}/ws/stage?run={run}"
        self.socket = connect(address, origin=f"http://127.0.0.1:{PORT}", max_size=None)  # type: ignore[arg-type]
        self.watching, self.frames = True, 0

    def run(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            for _ in self.socket:
                self.frames += 1

    def switch(self, watching: bool) -> None:
        self.watching = watching
        self.socket.send(json.dumps({"paused": not watching}))


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--every", type=float, default=6, help="seconds between switching")
    parser.add_argument("--recipe", default="hide_and_seek")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "runs" / "live"
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
            "--train.total-seconds",
            str(options.seconds + 600),
            "--checkpoint.every-seconds",
            "20",
            "--train.total-agent-steps",
            "1000000000000",
            "--eval.every-agent-steps",
            "1000000000000",
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
        with (
            subprocess.Popen(train, stdout=subprocess.DEVNULL) as trainer,
            subprocess.Popen(view) as viewer,
        ):
            try:
                print(json.dumps(compare(run, options, trainer.pid, viewer.pid)))
            finally:
                trainer.terminate()
                viewer.terminate()


def compare(run: Path, options: argparse.Namespace, trainer: int, viewer: int) -> dict[str, float]:
    log = run / "metrics.jsonl"
    while not log.exists() or log.read_text().count("\n") < 3:
        time.sleep(0.5)
    watcher = Watcher(run.name)
    watcher.start()
    while watcher.frames < 20:  # the viewer has loaded everything
        time.sleep(0.1)
    speeds: dict[bool, list[float]] = {True: [], False: []}
    steps, trained, viewed, seconds = ({True: 0.0, False: 0.0} for _ in range(4))
    taken = 0
    began = time.monotonic()
    while time.monotonic() - began < options.seconds:
        kind = not watcher.watching
        watcher.switch(kind)
        time.sleep(1.0)
        start, frames = wait_for_line(log), watcher.frames
        cpu, viewer_cpu, at = cpu_seconds(trainer), cpu_seconds(viewer), time.monotonic()
        time.sleep(options.every)
        end = wait_for_line(log)
        trained[kind] += cpu_seconds(trainer) - cpu
        viewed[kind] += cpu_seconds(viewer) - viewer_cpu
        seconds[kind] += time.monotonic() - at
        steps[kind] += end[-1]["progress/agent_steps"] - start[-1]["progress/agent_steps"]
        speeds[kind].append(
            (end[-1]["progress/agent_steps"] - start[-1]["progress/agent_steps"])
            / (time.monotonic() - at)
        )
        taken += (watcher.frames - frames) * kind
    watching, alone = (statistics.mean(speeds[kind]) for kind in (True, False))
    error = sum(statistics.variance(v) / len(v) for v in speeds.values()) ** 0.5
    per_cpu = {kind: steps[kind] / trained[kind] for kind in (True, False)}
    return {
        "agent_steps_per_s_alone": round(alone),
        "agent_steps_per_s_watched": round(watching),
        "slower_percent": round(100 * (1 - watching / alone), 2),
        "standard_error_percent": round(100 * error / alone, 2),
        "agent_steps_per_cpu_s_alone": round(per_cpu[False]),
        "agent_steps_per_cpu_s_watched": round(per_cpu[True]),
        "slower_per_cpu_percent": round(100 * (1 - per_cpu[True] / per_cpu[False]), 2),
        "viewer_percent_of_a_core": round(100 * viewed[True] / seconds[True], 2),
        "frames_per_s": round(taken / seconds[True], 1),
        "windows": len(speeds[True]) + len(speeds[False]),
        "cores": os.cpu_count() or 0,
        "load_average": round(os.getloadavg()[0], 1),
    }


def wait_for_line(log: Path) -> list[dict[str, float]]:
    """The lines of the log, once there is a new one: an iteration has just ended."""
    count, end = len(log.read_text().splitlines()), time.monotonic() + 120
    while len(lines := log.read_text().splitlines()) == count:
        if time.monotonic() > end:
            sys.exit("no iteration ended for two minutes: is the trainer still there?")
        time.sleep(0.02)
    return [json.loads(lines[-1])]


if __name__ == "__main__":
    main()
