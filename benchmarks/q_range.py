"""Are the values of Rainbow runs possible from start to end? Predicted Q over training, within the
range that rewards allow.

python benchmarks/q_range.py RUN … [--plot docs/images/racing_q.png] [--goal eval/self/finish]

The range follows from the bounds of the game's rewards (`ludus/algorithms/feasible.py`). A line is the
mean Q of the transitions that an iteration replayed, the shade around it the lowest and the highest
of them. `--goal` draws the evaluations of a goal below: does it swing? Status 1 if a mean lies
outside the range, or anything by more than a tenth of its width, which is what the doctor calls
divergence.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

KEYS = ("q_mean", "q_min", "q_max", "q_feasible_low", "q_feasible_high")
# of the range's width: the doctor's, since the lowest and highest of thousands of estimates always
# err a little
MARGIN = 0.1


Curves = dict[str, np.ndarray]


def lines_of(run: Path) -> list[dict[str, float]]:
    path = run / "metrics.jsonl"
    if not path.exists():
        sys.exit(f"{run} is no run: there is no metrics.jsonl in it")
    return [json.loads(line) for line in path.read_text().splitlines()]


def read(run: Path) -> Curves:
    """Steps and KEYS, a value per iteration that learned."""
    lines = lines_of(run)
    roles = {
        name.split("/")[1]
        for line in lines
        for name in line
        if name.startswith("learner/") and name.endswith("/q_mean")
    }
    if len(roles) != 1:
        sys.exit(f"{run} has Q values of {len(roles)} roles: give runs of Rainbow with one role")
    names = [f"learner/{next(iter(roles))}/{key}" for key in KEYS]
    lines = [line for line in lines if all(name in line for name in names)]
    if not lines:
        sys.exit(f"{run} has no range of possible values: its env does not declare its rewards")
    found = {
        key: np.array([line[name] for line in lines]) for key, name in zip(KEYS, names, strict=True)
    }
    return {"steps": np.array([line["progress/agent_steps"] for line in lines]), **found}


def read_goal(run: Path, goal: str) -> Curves:
    """Steps and values of the evaluations."""
    lines = [line for line in lines_of(run) if goal in line]
    if not lines:
        sys.exit(f"{run} has no evaluation of {goal}")
    return {
        name: np.array([line[name] for line in lines]) for name in ("progress/agent_steps", goal)
    }


def outside(q: Curves) -> dict[str, float]:
    """By how much the mean, and the lowest or highest, ever leave the range, as a share of its
    width."""
    low, high = q["q_feasible_low"], q["q_feasible_high"]
    beyond = {
        key: np.maximum(low - q[key], q[key] - high) / (high - low)
        for key in ("q_mean", "q_min", "q_max")
    }
    return {key: max(0.0, float(value.max())) for key, value in beyond.items()}


def verdict(q: Curves) -> tuple[bool, str]:
    """Is it sound, and how it is told."""
    left = outside(q)
    most = max(left.values())
    if left["q_mean"] > 0 or most > MARGIN:
        return False, f"leaves the range by {most:.1%} of its width"
    return (
        True,
        "inside from start to end"
        if most == 0
        else f"means inside from start to end, single estimates up to {most:.1%} out",
    )


def draw(runs: dict[str, Curves], goals: dict[str, Curves], goal: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = 2 if goals else 1
    figure, panels = pyplot.subplots(
        rows, figsize=(7, 2 + 1.6 * rows), dpi=90, sharex=True, squeeze=False
    )
    axes = panels[0, 0]
    widest = max(runs.values(), key=lambda q: q["steps"][-1])
    low, high = widest["q_feasible_low"], widest["q_feasible_high"]
    axes.fill_between(
        widest["steps"] / 1e6, low, high, color="grey", alpha=0.15, label="possible", linewidth=0
    )
    for name, q in runs.items():
        (line,) = axes.plot(q["steps"] / 1e6, q["q_mean"], label=name, linewidth=1)
        axes.fill_between(
            q["steps"] / 1e6, q["q_min"], q["q_max"], color=line.get_color(), alpha=0.2, linewidth=0
        )
    axes.set(ylabel="predicted Q")
    for name, curve in goals.items():
        panels[1, 0].plot(
            curve["progress/agent_steps"] / 1e6, curve[goal], label=name, linewidth=1, marker="."
        )
        panels[1, 0].set(ylabel=goal, ylim=(0, None))
    panels[-1, 0].set(xlabel="million agent-steps")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--plot", type=Path, help="a picture to write")
    parser.add_argument(
        "--goal", help="a metric of evaluations to draw below, such as eval/self/finish"
    )
    options = parser.parse_args()
    runs = {"/".join(run.parts[-2:]): read(run) for run in options.runs}
    goals = (
        {"/".join(run.parts[-2:]): read_goal(run, options.goal) for run in options.runs}
        if options.goal
        else {}
    )
    sound = True
    for name, q in runs.items():
        good, told = verdict(q)
        sound &= good
        print(
            f"{name}: possible {q['q_feasible_low'].min():.4g} to "
            f"{q['q_feasible_high'].max():.4g}; {len(q['steps'])} iterations: "
            f"mean {q['q_mean'].min():.4g} to {q['q_mean'].max():.4g}, all {q['q_min'].min():.4g} "
            f"to {q['q_max'].max():.4g}: {told}"
        )
    if options.plot is not None:
        draw(runs, goals, options.goal, options.plot)
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
