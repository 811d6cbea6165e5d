"""Makes the logs in ludus/: python tests/doctor/logs/make_ludus.py [NAME …]. Each is a short real
run, kept with five digits.

Those in CUT are runs of minutes or hours, of which only what a check needs is kept: make_ludus.py
NAME --of RUN.
"""

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

from ludus.imports import section_name

HERE = Path(__file__).parent / "ludus"
BULKY = ("action/", "eval/self", "eval/bot:still")
LONG, LESS = (
    200,
    ("speed/", "memory/", "eval/", "progress/e", "progress/i", "progress/u", "progress/s"),
)
CART, PURSUIT, BROKEN = "gym:CartPole-v1", "pursuit", "gym:tests.doctor.logs.broken"

CHOICES = [
    CART,
    "--train.total-agent-steps",
    "16000",
    "--ppo.rollout",
    "32",
    "--policy.hidden",
    "32",
    "--eval.episodes",
    "4",
]
STRATEGY = [
    PURSUIT,
    "--envs",
    "16",
    "--train.total-agent-steps",
    "24000",
    "--policy.network",
    "strategy",
    "--policy.strategy.size",
    "small",
    "--policy.strategy.entries",
    "other",
    "--policy.strategy.history",
    "4",
    "--policy.strategy.stride",
    "1",
    "--policy.strategy.layers",
    "1",
    "--policy.strategy.heads",
    "1",
    "--policy.strategy.width",
    "8",
    "--policy.strategy.vector",
    "8",
    "--policy.hidden",
    "16",
    "--eval.episodes",
    "4",
]
STOP = ("sick_blind",)
"""The trainer breaks these off."""
WITH_ACTIONS = ("healthy_choices", "sick_untried")

# name → recipe and options; names of healthy runs start with "healthy".
RUNS: dict[str, list[str]] = {
    "healthy_cartpole": [CART, "--train.total-agent-steps", "60000"],
    "healthy_cartpole_seed": [CART, "--train.total-agent-steps", "40000", "--seed", "5"],
    "healthy_cartpole_lstm": [
        CART,
        "--train.total-agent-steps",
        "25000",
        "--policy.memory",
        "lstm",
    ],
    "healthy_pursuit": [PURSUIT, "--envs", "64", "--train.total-agent-steps", "500000"],
    # by other programs, more and more of them
    "healthy_crowded": [CART, "--train.total-agent-steps", "45000"],
    "sick_near_pays": [
        PURSUIT,
        "--envs",
        "64",
        "--train.total-agent-steps",
        "500000",
        "--game.reward.near",
        "1",
        "--game.reward.catch",
        "0.1",
    ],
    "sick_learning_rate": [
        CART,
        "--train.total-agent-steps",
        "40000",
        "--ppo.learning-rate",
        "1",
    ],
    "sick_forgets": [
        PURSUIT,
        "--envs",
        "64",
        "--train.total-agent-steps",
        "250000",
        "--ppo.learning-rate",
        "0:1e-3, 0.6:1e-3, 0.65:0.3, 1:0.3",
    ],
    "sick_leak": [
        "gym:tests.doctor.logs.leaky:Leaky-v0",
        "--train.total-agent-steps",
        "16000",
        "--ppo.rollout",
        "32",
        "--eval.episodes",
        "4",
    ],
    "sick_hasty": [
        f"{BROKEN}:Hasty-v0",
        "--train.total-agent-steps",
        "10000",
        "--ppo.rollout",
        "32",
        "--ppo.epochs",
        "4",
        "--eval.episodes",
        "4",
    ],
    "sick_shifting": [
        f"{BROKEN}:Shifting-v0",
        "--train.total-agent-steps",
        "40000",
        "--ppo.rollout",
        "32",
        "--ppo.epochs",
        "6",
        "--eval.episodes",
        "4",
    ],
    "sick_gradient": [
        CART,
        "--train.total-agent-steps",
        "16000",
        "--policy.activation",
        "relu",
        "--ppo.learning-rate",
        "1",
        "--ppo.value-weight",
        "0",
        "--eval.episodes",
        "4",
    ],
    "sick_saturated": [
        "gym:Pendulum-v1",
        "--train.total-agent-steps",
        "40000",
        "--ppo.learning-rate",
        "0.3",
        "--ppo.rollout",
        "100",
        "--ppo.epochs",
        "4",
        "--eval.episodes",
        "4",
    ],
    "sick_one_sided": [
        PURSUIT,
        "--envs",
        "32",
        "--train.total-agent-steps",
        "150000",
        "--game.chaser-speed",
        "0.01",
        "--game.reach",
        "0.05",
        "--eval.episodes",
        "4",
    ],
    "sick_blind": ["tests.doctor.logs.rootless:recipe", "--train.total-agent-steps", "60000"],
    "sick_memory": [
        f"{BROKEN}:Late-v0",
        "--policy.memory",
        "lstm",
        "--policy.memory-size",
        "16",
        "--policy.hidden",
        "16",
        "--envs",
        "16",
        "--ppo.rollout",
        "24",
        "--ppo.bptt",
        "2",
        "--train.total-agent-steps",
        "9000",
        "--log.diagnostics-every",
        "5",
        "--eval.episodes",
        "4",
    ],
    "sick_swings": [
        CART,
        "--envs",
        "4",
        "--train.total-agent-steps",
        "90000",
        "--ppo.rollout",
        "64",
        "--ppo.learning-rate",
        "0.01",
        "--ppo.clip",
        "0.5",
        "--ppo.epochs",
        "10",
        "--policy.hidden",
        "32",
        "--eval.episodes",
        "4",
    ],
    "sick_explodes": [
        f"{BROKEN}:Compound-v0",
        "--train.total-agent-steps",
        "30000",
        "--ppo.rollout",
        "32",
        "--ppo.epochs",
        "4",
        "--ppo.normalise-values",
        "False",
        "--ppo.max-grad-norm",
        "1e9",
        "--policy.hidden",
        "32",
        "--eval.episodes",
        "4",
    ],
    "healthy_choices": CHOICES,
    "sick_untried": [
        f"{BROKEN}:Forbidding-v0",
        "--train.total-agent-steps",
        "10000",
        "--ppo.rollout",
        "32",
        "--policy.hidden",
        "32",
        "--eval.episodes",
        "4",
        "--log.diagnostics-every",
        "0",
    ],
    "healthy_strategy": STRATEGY,
    # for a runner always 1: its chaser never dies
    "sick_strategy": [*STRATEGY, "--policy.strategy.entries", "other0_alive"],
    "sick_entropy": [CART, "--train.total-agent-steps", "40000", "--ppo.entropy", "10"],
}

BEGUN = (
    "learner/fighter/approx_kl",
    "learner/fighter/clip_fraction",
    "episode/fighter/return",
    "goal/",
    "league/bot:",
    "progress/episodes",
)

# name → every so many rows of so many, besides those with an evaluation, and the beginnings of the
# names kept
CUT: dict[str, tuple[int, int, tuple[str, ...]]] = {
    # mechs on a GPU: those that hid survived and lost; now they win, and survive less
    "healthy_mechs_ten": (10, 10_000, ("eval/bot:", "goal/", "episode/mech/return")),
    # mechs_2v2, seed 1: wins as ever, with less of its time in the zone
    "healthy_mechs_zone": (20, 10_000, ("eval/bot:", "goal/", "episode/mech/return")),
    # pursuit, seed 0: in one matchup of eight it gets the last runner less often, which 64 games
    # hardly tell from luck
    "healthy_pursuit_long": (
        4,
        10_000,
        (
            "eval/bot:",
            "goal/",
            "episode/chaser/won",
            "episode/runner/won",
            "episode/chaser/return",
            "episode/runner/return",
        ),
    ),
    # hide_and_seek on a GPU: early on, what it earns rises a little more surely than what it is
    # for; late, the hider loses a little
    "healthy_hide_and_seek": (
        1,
        371,
        ("eval/bot:", "goal/", "episode/seeker/return", "episode/hider/return"),
    ),
    # pursuit, seed 1: runners get away before the chaser has learnt anything
    "sick_outrun": (
        1,
        10_000,
        (
            "goal/",
            "episode/chaser/won",
            "episode/runner/won",
            "episode/chaser/return",
            "episode/runner/return",
        ),
    ),
    # racing, seed 2, from the camera on a GPU: 98% of laps finished after a minute, 86% at the end
    "sick_declines": (40, 10_000, ("eval/self/finish", "goal/driver/", "episode/driver/return")),
    # racing_lidar, seed 2: evaluations of 98 and 100%, the last as good as any
    "healthy_racing": (40, 10_000, ("eval/self/finish", "goal/driver/", "episode/driver/return")),
    # brawl_strategy_full on a GPU, begun with a fighter: at a learning rate of 1e-3 and with a
    # vector of 256 it loses all matches at first. Only its metrics were kept: config.json is that
    # of healthy_begun with the settings it had
    "sick_begun": (1, 40, BEGUN),
    # the same at 3e-4, with a vector of 16 that adds nothing at first
    "healthy_begun": (2, 10_000, BEGUN),
    # racing_seed_working, seed 0: 26 copies of the target network, and no lap
    "sick_short_sighted": (
        8,
        10_000,
        (
            "eval/self/",
            "goal/driver/",
            "episode/driver/return",
            "episode/driver/length",
            "learner/driver/q_",
            "progress/",
        ),
    ),
}
SETTINGS = (
    "game",
    "envs",
    "seed",
    "algorithm",
    "train.total",
    "league.mix",
    "checkpoint.best_metric",
)


def cut(run: Path, name: str) -> None:
    every, first, kept = CUT[name]
    target = HERE / name
    target.mkdir(parents=True, exist_ok=True)
    lines = []
    for i, text in enumerate((run / "metrics.jsonl").read_text().splitlines()):
        row = json.loads(text)
        if (i % every == 0 and i < first) or any(k.startswith("eval/") for k in row):
            lines.append(
                {
                    k: shortened(v)
                    for k, v in row.items()
                    if k.startswith((*kept, "progress/agent_steps")) and not _unread(k)
                }
            )
    (target / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings = run / "config.json"
    stored = json.loads(settings.read_text()) if settings.exists() else {"values": {}}
    section = f"{section_name(stored['values'].get('algorithm', ''))}."
    values = {k: v for k, v in stored["values"].items() if k.startswith((*SETTINGS, section))}
    begun = {k: v for k, v in stored.items() if k.startswith("init_")}
    (target / "config.json").write_text(json.dumps({"values": values, **begun}, indent=1) + "\n")


def _unread(name: str) -> bool:
    return (
        "_greedy" in name
        or "/length_" in name
        or name.endswith(("return_min", "return_max", "return_std"))
    )


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
        (target / log).write_text(
            "".join(json.dumps({k: shortened(v) for k, v in row.items()}) + "\n" for row in rows)
        )
    values = json.loads((run / "config.json").read_text())["values"]
    (target / "config.json").write_text(json.dumps({"values": values}, indent=1) + "\n")


def crowd(run: Path, training: subprocess.Popen[bytes]) -> list[subprocess.Popen[bytes]]:
    """Until the run ends: its only core gets busier, with one more other program every few thousand
    steps."""
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(training.pid, {core})
    busy = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    others: list[subprocess.Popen[bytes]] = []
    log = run / "metrics.jsonl"
    while training.poll() is None:
        time.sleep(0.2)
        lines = log.read_text().splitlines() if log.exists() else []
        if len(lines) > 1 and json.loads(lines[-2])["progress/agent_steps"] >= 15_000 + 6_000 * len(
            others
        ):
            others.append(subprocess.Popen([sys.executable, "-c", busy]))
    return others


def main() -> None:
    if "--of" in sys.argv:
        cut(Path(sys.argv[3]), sys.argv[1])
        return
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
