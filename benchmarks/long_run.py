"""Does a long training keep its speed and its memory? Trains for an hour, then compares its
beginning with its end.

python benchmarks/long_run.py [--recipe hide_and_seek] [--minutes 60] [--run runs/long] [-- options
of ludus train]

Speed is also given per second of processor time, which the machine's other programs change less.
The beginning is counted from a fifth of the run on, when every role learns (in hide_and_seek the
hiders start later), so that both ends do the same work. A run that is there is only read.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

WARM_UP, WINDOW = 0.2, 0.25  # shares of the run


def compare(run: Path) -> dict[str, float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    names = ("progress/seconds", "progress/agent_steps", "speed/cpu_per_s", "memory/resident_mb")
    seconds, steps, cpu, memory = (np.array([line[name] for line in lines]) for name in names)
    window, warm = WINDOW * seconds[-1], WARM_UP * seconds[-1]
    first = (seconds >= warm) & (seconds <= warm + window)
    last = seconds >= seconds[-1] - window

    def rate(part: np.ndarray) -> float:
        return float(np.ptp(steps[part]) / np.ptp(seconds[part]))

    rates = {"start": rate(first), "end": rate(last)}
    per_cpu = {"start": rates["start"] / cpu[first].mean(), "end": rates["end"] / cpu[last].mean()}
    return {
        "minutes": float(seconds[-1] / 60),
        "agent_steps_per_s_start": rates["start"],
        "agent_steps_per_s_end": rates["end"],
        "ratio": rates["end"] / rates["start"],
        "ratio_per_processor_second": per_cpu["end"] / per_cpu["start"],
        "resident_mb_start": float(memory[first].mean()),
        "resident_mb_end": float(memory[last].mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", default="hide_and_seek")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--run", type=Path, default=Path("runs/long"))
    parser.add_argument("options", nargs="*", help="options of ludus train, after --")
    own = parser.parse_args()
    if not own.run.exists():
        command = [
            "train",
            own.recipe,
            "--run",
            str(own.run),
            "--train.total-seconds",
            str(60 * own.minutes),
        ]
        subprocess.run(
            [sys.executable, "-m", "ludus", *command, "--eval.every-seconds", "600", *own.options],
            check=True,
        )
    print(json.dumps(compare(own.run), indent=1))


if __name__ == "__main__":
    main()
