"""python -m benchmarks.campaign run [NAME …] [--jobs N] | table [NAME …]

`run` works through the queue: it skips results that are there, resumes runs that were interrupted,
and writes one result file per experiment and seed. With `--jobs`, several runs at a time, each on
cores of its own (two for an experiment on the CPU, four for one on a GPU), so that a large machine
gives what two cores give. `table` prints what is finished, with 95% bootstrap intervals over seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.campaign.experiments import EXPERIMENTS, Experiment

HERE = Path(__file__).parent
RESULTS = HERE / "results"
RUNS = Path("runs") / "campaign"
CORES = {"cpu": 2, "cuda": 4}  # of one run, where several run at a time; on a GPU they compile

Cores = frozenset[int] | None
Job = tuple[str, int]
TRAINING: defaultdict[Job, threading.Lock] = defaultdict(threading.Lock)
"""Two experiments may begin with the same run."""


def ludus(*arguments: str, cores: Cores = None) -> str:
    """What a ludus command prints, run on these cores alone."""
    pin = (lambda: os.sched_setaffinity(0, cores)) if cores else None
    done = subprocess.run(
        [sys.executable, "-m", "ludus", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=pin,
    )
    if done.returncode:
        raise RuntimeError(f"failed with status {done.returncode}: ludus {' '.join(arguments)}")
    return done.stdout


def command_of(experiment: Experiment, seed: int) -> list[str]:
    begun = ["--init-from", str(RUNS / experiment.after / str(seed))] if experiment.after else []
    return [
        "train",
        experiment.recipe,
        "--seed",
        str(seed),
        "--device",
        experiment.device,
        *experiment.options,
        *begun,
    ]


def train_one(name: str, experiment: Experiment, seed: int, cores: Cores = None) -> dict[str, Any]:
    """What training said at its end: trained now, resumed, or read where it is over. First that
    which the experiment begins with."""
    folder = RUNS / name / str(seed)
    trained = folder / "trained.json"  # training is over, perhaps not its evaluation
    with TRAINING[name, seed]:
        if not trained.exists():
            if experiment.after:
                train_one(experiment.after, EXPERIMENTS[experiment.after], seed, cores)
            print(f"{time.strftime('%H:%M:%S')} {name} seed {seed}", flush=True)
            if (folder / "config.json").exists():
                printed = ludus("resume", str(folder), "--json", cores=cores)
            else:
                shutil.rmtree(folder, ignore_errors=True)
                printed = ludus(
                    *command_of(experiment, seed), "--run", str(folder), "--json", cores=cores
                )
            trained.write_text(printed)
    summary: dict[str, Any] = json.loads(trained.read_text())
    return summary


def run_one(name: str, experiment: Experiment, seed: int, cores: Cores = None) -> None:
    result_path = RESULTS / name / f"{seed}.json"
    folder = RUNS / name / str(seed)
    command = command_of(experiment, seed)
    if result_path.exists():
        if json.loads(result_path.read_text())["command"] == " ".join(["ludus", *command]):
            return
        shutil.rmtree(folder, ignore_errors=True)  # the experiment was changed since
    summary = train_one(name, experiment, seed, cores)
    evaluations: dict[str, Any] = {}
    metrics: dict[str, Any] = {}  # by command: several numbers may be read from one evaluation
    for e in experiment.evaluations:
        arguments = [
            "eval",
            f"{folder}{e.checkpoint}",
            "--against",
            *e.against.split(),
            "--episodes",
            str(e.episodes),
            *e.options,
            "--json",
        ]
        text = " ".join(["ludus", *arguments])
        if text not in metrics:
            metrics[text] = json.loads(ludus(*arguments, cores=cores))["metrics"]
        evaluations[e.name] = {
            "value": metrics[text][e.metric],
            "metric": e.metric,
            "command": text,
        }
    result = {
        "experiment": name,
        "seed": seed,
        "command": " ".join(["ludus", *command]),
        "evaluations": evaluations,
        "agent_steps": summary["agent_steps"],
        "seconds": summary["seconds"],
        "cores": len(cores or os.sched_getaffinity(0)),
        "device": experiment.device,
    }
    result_path.parent.mkdir(parents=True, exist_ok=True)
    partial = result_path.with_suffix(".partial")
    partial.write_text(json.dumps(result, indent=1))
    partial.replace(result_path)


def interval(values: list[float]) -> tuple[float, float, float]:
    """Mean over seeds with a 95% bootstrap interval."""
    array = np.array(values)
    rng = np.random.default_rng(0)
    means = rng.choice(array, (10_000, len(array))).mean(1)
    return float(array.mean()), float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def interquartile_mean(values: list[float]) -> float:
    """Mean of the middle half; of values that the quarters cut through, as much as lies inside."""
    n = len(values)
    weights = [max(0.0, min(i + 1, 0.75 * n) - max(i, 0.25 * n)) for i in range(n)]
    return float(np.average(np.sort(values), weights=weights))


def holds(value: float, bar: str) -> bool:
    sign, number = bar.split()
    return {
        ">=": value >= float(number),
        "<": value < float(number),
        "<=": value <= float(number),
        ">": value > float(number),
    }[sign]


def results(name: str) -> list[dict[str, Any]]:
    return [json.loads(p.read_text()) for p in sorted((RESULTS / name).glob("*.json"))]


def table(names: list[str]) -> str:
    lines = [
        "| experiment | evaluation | seeds | mean over seeds | 95% interval | IQM | each seed | "
        "bar | holds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in names:
        experiment, done = EXPERIMENTS[name], results(name)
        for e in experiment.evaluations:
            values = [
                r["evaluations"][e.name]["value"]["mean"]
                for r in done
                if e.name in r["evaluations"]
            ]
            if not values:
                lines.append(f"| {name} | {e.name} | 0 | | | | | {e.bar} | |")
                continue
            mean, low, high = interval(values)
            each = ", ".join(f"{v:.4g}" for v in values)
            passed = sum(holds(v, e.bar) for v in values) if e.bar else 0
            verdict = (
                f"{'yes' if holds(mean, e.bar) else 'no'} (seeds: {passed} of {len(values)})"
                if e.bar
                else ""
            )
            lines.append(
                f"| {name} | {e.name}: {e.metric} | {len(values)} | {mean:.4g} | {low:.4g} to "
                f"{high:.4g} | "
                f"{interquartile_mean(values):.4g} | {each} | {e.bar} | {verdict} |"
            )
    lines += ["", "Commands (`--seed` 0, 1, 2), then `ludus eval` as in the result files:", ""]
    for name in names:
        e = EXPERIMENTS[name]
        device = ["--device", e.device] if e.device != "cpu" else []
        begun = ["--init-from", f"{RUNS / e.after}/SEED"] if e.after else []
        command = " ".join(
            [
                "ludus train",
                e.recipe,
                *device,
                *(f'"{o}"' if " " in o else o for o in e.options),
                *begun,
            ]
        )
        lines.append(f"- {name}: `{command}`")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.campaign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("names", nargs="*", help="experiments or tags (default: all on the CPU)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default: 1)")
    options = parser.parse_args()
    chosen = [
        n
        for n, e in EXPERIMENTS.items()
        if not options.names or n in options.names or set(e.tags) & set(options.names)
    ]
    unknown = [
        n
        for n in options.names
        if n not in EXPERIMENTS and not any(n in e.tags for e in EXPERIMENTS.values())
    ]
    if unknown:
        raise SystemExit(f"unknown experiment {unknown[0]}: there is {', '.join(EXPERIMENTS)}")
    if options.what == "table":
        print(table(chosen))
        return
    jobs = [(name, seed) for seed in range(3) for name in chosen if seed in EXPERIMENTS[name].seeds]
    jobs = [
        (name, seed) for name, seed in jobs if options.names or EXPERIMENTS[name].device == "cpu"
    ]
    if options.jobs == 1:
        for job in jobs:
            attempt(job)
    else:
        side_by_side(jobs, options.jobs)


def attempt(job: Job, cores: Cores = None) -> None:
    name, seed = job
    try:
        run_one(name, EXPERIMENTS[name], seed, cores)
    except RuntimeError as error:
        print(f"{name} seed {seed} {error}", flush=True)


def side_by_side(jobs: list[Job], at_once: int) -> None:
    """Several runs at a time; a run starts when there are free cores for it."""
    waiting: queue.Queue[Job] = queue.Queue()
    for job in jobs:
        waiting.put(job)
    free, changed = sorted(os.sched_getaffinity(0)), threading.Condition()
    all_cores = len(free)

    def work() -> None:
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            need = min(CORES[EXPERIMENTS[job[0]].device], all_cores)
            with changed:
                while len(free) < need:
                    changed.wait()
                mine = [free.pop() for _ in range(need)]
            try:
                attempt(job, frozenset(mine))
            finally:
                with changed:
                    free.extend(mine)
                    changed.notify_all()

    threads = [threading.Thread(target=work) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
