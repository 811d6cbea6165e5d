"""Do the CPU and the GPU learn alike? The same recipe on both, three seeds each, against
agent-steps.

python benchmarks/curves.py run cpu|cuda [--folder runs/curves] [--seeds 3]     trains what is not
there yet python benchmarks/curves.py table [--folder runs/curves] [--plot FILE.png]      compares
what is there

hide_and_seek:original, evaluated every half million agent-steps on held-out terrain. At each point:
the mean over seeds with its 95% interval on either device, and whether the two intervals overlap.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

STEPS, EVERY = 4_000_000, 500_000
METRICS = ("eval/bot:random/catch_rate", "eval/bot:hider/catch_rate")
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}  # 97.5% quantile of t, by seeds


def train(folder: Path, device: str, seeds: int) -> None:
    for seed in range(seeds):
        run = folder / device / str(seed)
        if run.exists():
            continue
        options = [
            "--train.total-agent-steps",
            str(STEPS),
            "--eval.every-agent-steps",
            str(EVERY),
            "--eval.episodes",
            "256",
        ]
        command = [
            "train",
            "hide_and_seek:original",
            "--device",
            device,
            "--seed",
            str(seed),
            "--run",
            str(run),
            *options,
        ]
        against = ["--eval.against", "bot:random", "bot:hider", "--eval.greedy", "False"]
        subprocess.run([sys.executable, "-m", "ludus", *command, *against, "--quiet"], check=True)


def curve(run: Path) -> dict[str, np.ndarray]:
    """Metrics at EVERY, 2 EVERY, …: between the evaluations around each point, which come at the
    ends of iterations."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if METRICS[0] in line]
    steps = [line["progress/agent_steps"] for line in lines]
    points = np.arange(EVERY, STEPS + 1, EVERY)
    return {name: np.interp(points, steps, [line[name] for line in lines]) for name in METRICS}


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over seeds (the first axis) and half the width of its 95% interval."""
    seeds = len(values)
    if seeds not in STUDENT:
        sys.exit(f"{seeds} finished runs on a device: 2 to 5 are needed for an interval")
    return values.mean(0), STUDENT[seeds] * values.std(0, ddof=1) / seeds**0.5


def table(folder: Path, plot: Path | None) -> None:
    found = {
        device: [curve(run) for run in sorted((folder / device).iterdir())]
        for device in ("cpu", "cuda")
    }
    points = np.arange(EVERY, STEPS + 1, EVERY)
    curves = {
        (d, m): interval(np.stack([run[m] for run in runs]))
        for d, runs in found.items()
        for m in METRICS
    }
    for metric in METRICS:
        (a, wide_a), (b, wide_b) = curves["cpu", metric], curves["cuda", metric]
        print(f"{metric}\n{'agent-steps':>12} {'cpu':>15} {'cuda':>15}  intervals overlap")
        for i, steps in enumerate(points):
            overlap = abs(a[i] - b[i]) <= wide_a[i] + wide_b[i]
            print(
                f"{steps:>12,} {a[i]:>7.3f} ± {wide_a[i]:.3f} {b[i]:>7.3f} ± {wide_b[i]:.3f}  "
                f"{'yes' if overlap else 'no'}"
            )
    if plot is not None:
        draw(points, curves, plot)


def draw(
    points: np.ndarray, curves: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]], path: Path
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(METRICS), figsize=(9, 3.2), sharey=True)
    for axis, metric in zip(axes, METRICS, strict=True):
        for device in ("cpu", "cuda"):
            mean, wide = curves[device, metric]
            axis.plot(points / 1e6, mean, label=device)
            axis.fill_between(points / 1e6, mean - wide, mean + wide, alpha=0.25)
        axis.set(title=metric.removeprefix("eval/"), xlabel="million agent-steps", ylim=(0, 1))
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("device", nargs="?", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--folder", type=Path, default=Path("runs/curves"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--plot", type=Path)
    own = parser.parse_args()
    if own.what == "run":
        train(own.folder, own.device, own.seeds)
    else:
        table(own.folder, own.plot)


if __name__ == "__main__":
    main()
