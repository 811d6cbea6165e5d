"""Makes the logs in ludus/: python tests/doctor/logs/make_ludus.py [NAME …]. Each is a short real run, kept with five digits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "ludus"
BULKY = ("action/", "eval/self", "eval/bot:still")
LONG, LESS = 200, ("speed/", "memory/", "eval/", "progress/e", "progress/i", "progress/u", "progress/s")
CART, PURSUIT, BROKEN = "gym:CartPole-v1", "pursuit", "gym:tests.doctor.logs.broken"

CHOICES = [CART, "--train.total-agent-steps", "16000", "--learn.rollout", "32", "--policy.hidden", "32", "--eval.episodes", "4"]
STRATEGY = [
    PURSUIT, "--envs", "16", "--train.total-agent-steps", "24000", "--policy.strategy.size", "small", "--policy.strategy.entries", "other",
    "--policy.strategy.history", "4", "--policy.strategy.stride", "1", "--policy.strategy.layers", "1", "--policy.strategy.heads", "1",
    "--policy.strategy.width", "8", "--policy.strategy.vector", "8", "--policy.hidden", "16", "--eval.episodes", "4",
]  # fmt: skip
STOP = ("sick_blind",)
"""The trainer breaks these off."""
WITH_ACTIONS = ("healthy_choices", "sick_untried")

# name → recipe and options; names of healthy runs start with "healthy".
RUNS: dict[str, list[str]] = {
    "healthy_cartpole": [CART, "--train.total-agent-steps", "60000"],
    "healthy_cartpole_seed": [CART, "--train.total-agent-steps", "40000", "--seed", "5"],
    "healthy_cartpole_lstm": [CART, "--train.total-agent-steps", "25000", "--policy.memory", "lstm"],
    "healthy_pursuit": [PURSUIT, "--envs", "64", "--train.total-agent-steps", "500000"],
    "healthy_crowded": [CART, "--train.total-agent-steps", "45000"],  # by other programs, more and more of them
    "sick_near_pays": [
        PURSUIT, "--envs", "64", "--train.total-agent-steps", "500000", "--game.reward.near", "1", "--game.reward.catch", "0.1",
    ],
    "sick_learning_rate": [CART, "--train.total-agent-steps", "40000", "--learn.learning-rate", "1"],
    "sick_forgets": [
        PURSUIT, "--envs", "64", "--train.total-agent-steps", "250000", "--learn.learning-rate", "0:1e-3, 0.6:1e-3, 0.65:0.3, 1:0.3",
    ],
    "sick_leak": [
        "gym:tests.doctor.logs.leaky:Leaky-v0", "--train.total-agent-steps", "16000", "--learn.rollout", "32", "--eval.episodes", "4",
    ],
    "sick_hasty": [
        f"{BROKEN}:Hasty-v0", "--train.total-agent-steps", "10000", "--learn.rollout", "32", "--learn.epochs", "4", "--eval.episodes", "4",
    ],
    "sick_shifting": [
        f"{BROKEN}:Shifting-v0", "--train.total-agent-steps", "40000", "--learn.rollout", "32", "--learn.epochs", "6", "--eval.episodes", "4",
    ],
    "sick_gradient": [
        CART, "--train.total-agent-steps", "16000", "--policy.activation", "relu", "--learn.learning-rate", "1", "--learn.value-weight", "0",
        "--eval.episodes", "4",
    ],
    "sick_saturated": [
        "gym:Pendulum-v1", "--train.total-agent-steps", "40000", "--learn.learning-rate", "0.3", "--learn.rollout", "100", "--learn.epochs", "4",
        "--eval.episodes", "4",
    ],
    "sick_one_sided": [
        PURSUIT, "--envs", "32", "--train.total-agent-steps", "150000", "--game.chaser-speed", "0.01", "--game.reach", "0.05",
        "--eval.episodes", "4",
    ],
    "sick_blind": ["tests.doctor.logs.rootless:recipe", "--train.total-agent-steps", "60000"],
    "sick_memory": [
        f"{BROKEN}:Late-v0", "--policy.memory", "lstm", "--policy.memory-size", "16", "--policy.hidden", "16", "--envs", "16",
        "--learn.rollout", "24", "--learn.bptt", "2", "--train.total-agent-steps", "9000", "--log.diagnostics-every", "5", "--eval.episodes", "4",
    ],
    "sick_swings": [
        CART, "--envs", "4", "--train.total-agent-steps", "90000", "--learn.rollout", "64", "--learn.learning-rate", "0.01",
        "--learn.clip", "0.5", "--learn.epochs", "10", "--policy.hidden", "32", "--eval.episodes", "4",
    ],
    "sick_explodes": [
        f"{BROKEN}:Compound-v0", "--train.total-agent-steps", "30000", "--learn.rollout", "32", "--learn.epochs", "4",
        "--learn.normalise-values", "False", "--learn.max-grad-norm", "1e9", "--policy.hidden", "32", "--eval.episodes", "4",
    ],
    "healthy_choices": CHOICES,
    "sick_untried": [
        f"{BROKEN}:Forbidding-v0", "--train.total-agent-steps", "10000", "--learn.rollout", "32", "--policy.hidden", "32", "--eval.episodes", "4",
        "--log.diagnostics-every", "0",
    ],
    "healthy_strategy": STRATEGY,
    "sick_strategy": [*STRATEGY, "--policy.strategy.entries", "other0_alive"],  # for a runner always 1: its chaser never dies
    "sick_entropy": [CART, "--train.total-agent-steps", "40000", "--learn.entropy", "10"],
}  # fmt: skip


def shortened(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def keep(run: Path, name: str) -> None:
    """Copies what the doctor reads, without the bulk that these examples do not need."""
    target = HERE / name
    target.mkdir(parents=True, exist_ok=True)
    for log in ("metrics.jsonl", "diagnostics.jsonl"):
        if not (run / log).exists():
            continue
        rows = [json.loads(line) for line in (run / log).read_text().splitlines()]
        rows = [
            {
                k: v
                for k, v in row.items()
                if k.endswith("/saturated")
                or (name in WITH_ACTIONS and k.startswith("action/"))
                or not (
                    k.startswith(BULKY + (LESS if len(rows) > LONG else ()))
                    or k.endswith(("/update_ratio", "_greedy", "/win_rate"))
                )
            }
            for row in rows
        ]
        (target / log).write_text("".join(json.dumps({k: shortened(v) for k, v in row.items()}) + "\n" for row in rows))
    values = json.loads((run / "config.json").read_text())["values"]
    (target / "config.json").write_text(json.dumps({"values": values}, indent=1) + "\n")


def crowd(run: Path, training: subprocess.Popen[bytes]) -> list[subprocess.Popen[bytes]]:
    """Until the run ends: its only core gets busier, with one more other program every few thousand steps."""
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(training.pid, {core})
    busy = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    others: list[subprocess.Popen[bytes]] = []
    log = run / "metrics.jsonl"
    while training.poll() is None:
        time.sleep(0.2)
        lines = log.read_text().splitlines() if log.exists() else []
        if len(lines) > 1 and json.loads(lines[-2])["progress/agent_steps"] >= 15_000 + 6_000 * len(others):
            others.append(subprocess.Popen([sys.executable, "-c", busy]))
    return others


def main() -> None:
    for name in sys.argv[1:] or RUNS:
        run = Path(tempfile.mkdtemp()) / "run"
        options = ["--run", str(run), "--train.threads", "1", "--quiet"]
        training = subprocess.Popen([sys.executable, "-m", "ludus", "train", *RUNS[name], *options])
        others = crowd(run, training) if name.endswith("crowded") else []
        status = training.wait()
        for other in others:
            other.kill()
        if status and name not in STOP:
            raise SystemExit(f"{name} ended with status {status}")
        keep(run, name)
        shutil.rmtree(run.parent)


if __name__ == "__main__":
    main()
