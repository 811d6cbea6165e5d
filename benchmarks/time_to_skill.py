"""Seconds from an empty folder, compilation included, until the seeker of hide_and_seek:original
catches 85% of the hider bot's hiders on terrain it never trained on.

python benchmarks/time_to_skill.py --device cuda [--seeds 3] [-- --envs 2048 …]     (after --:
options of ludus train)
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

METRIC, SKILL = "eval/bot:hider/catch_rate", 0.85


def once(device: str, seed: int, limit: float, options: list[str]) -> dict[str, float | None]:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [
            sys.executable,
            "-m",
            "ludus",
            "train",
            "hide_and_seek:original",
            "--device",
            device,
            "--seed",
            str(seed),
            "--run",
            str(run),
            "--eval.every-seconds",
            "3",
            "--eval.against",
            "bot:hider",
            "--eval.episodes",
            "256",
            "--train.total-seconds",
            str(limit),
            *options,
        ]
        start = time.perf_counter()
        process = subprocess.Popen(
            command, env={**os.environ, "LUDUS_CACHE": f"{folder}/cache"}, stdout=subprocess.DEVNULL
        )
        try:
            while process.poll() is None:
                time.sleep(0.2)
                for line in reversed(lines(run / "metrics.jsonl")):
                    if line.get(METRIC, 0.0) >= SKILL:
                        return {
                            "seconds": time.perf_counter() - start,
                            "agent_steps": line["progress/agent_steps"],
                        }
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    return {"seconds": None, "agent_steps": None}


def lines(path: Path) -> list[dict[str, float]]:
    """Whole lines only: the last one may still be in the making."""
    if not path.exists():
        return []
    return [json.loads(text) for text in path.read_text().split("\n")[:-1]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--limit", type=float, default=300.0, help="seconds after which a run is given up"
    )
    parser.add_argument("options", nargs="*", help="options of ludus train, after --")
    own = parser.parse_args()
    for seed in range(own.seeds):
        print(
            json.dumps({"seed": seed, **once(own.device, seed, own.limit, own.options)}), flush=True
        )


if __name__ == "__main__":
    main()
