"""Does a change leave every number as it was? Trains short seeded runs of every kind with two
commits, and compares them bit for bit.

    make same-numbers BASE=main~3          or: python benchmarks/same_numbers.py main~3 --only
    pursuit brawl

What is compared: every metric of every iteration but times, rates and memory; policies, optimizers
and simulators of the last checkpoint. Tensors are compared by their content, whatever they are
called. Both sides run at the same time with one thread each, on the same machine and libraries. The
base takes its runs from its own copy of this file, where it has one: options may have had other
names.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from safetensors import safe_open

ALWAYS = (
    "--seed 3 --train.threads 1 --train.total-seconds None --eval.every-seconds None "
    "--eval.episodes 4 "
    "--checkpoint.every-seconds None --log.tensorboard False --quiet"
)
SMALL = "--envs 32 --train.total-agent-steps 20000"
RUNS = {
    "pursuit": f"pursuit {SMALL}",
    "pursuit_lstm": f"pursuit {SMALL} --policy.memory lstm --policy.memory-size 16 --ppo.bptt 16 "
    "--ppo.burn-in 4 --ppo.auxiliary 0.1",
    "pursuit_league": f"pursuit {SMALL} --league.mix 'self 2, pool 2, bot:flee 1' "
    "--league.snapshot-every 3000 --league.slots 4",
    "pursuit_tasks": f"pursuit {SMALL} --curriculum.tasks.vary.speed '0.05 to 0.15' "
    "--curriculum.tasks.pool 16",
    "pursuit_schedules": f"pursuit {SMALL} --ppo.learning-rate '1e-3 -> 0' --game.speed '0.05 -> "
    "0.12'",
    "hide_and_seek": "hide_and_seek --envs 32 --train.total-agent-steps 12000 --game.terrains 16",
    "arena_small": "arena_small --envs 16 --train.total-agent-steps 20000",
    "brawl": "brawl --envs 32 --train.total-agent-steps 12000",
    "brawl_strategy": "brawl_strategy --envs 16 --train.total-agent-steps 4000",
    "mechs_2v2": "mechs_2v2 --envs 16 --train.total-agent-steps 8000 --game.maps 8",
    "racing": "racing --device cpu --envs 8 --train.total-agent-steps 3000 --rainbow.warm-up 500 "
    "--rainbow.replay 4000",
    "racing_lidar": "racing_lidar --envs 16 --train.total-agent-steps 6000 --rainbow.warm-up 1000 "
    "--rainbow.replay 8000",
    "racing_dqn": "racing_dqn --device cpu --envs 8 --train.total-agent-steps 3000 "
    "--rainbow.warm-up 500 --rainbow.replay 4000",
    "gym": "gym:CartPole-v1 --train.total-agent-steps 6000",
    "gym_rainbow": "gym:CartPole-v1 --algorithm rainbow --train.total-agent-steps 3000 "
    "--rainbow.warm-up 500 --rainbow.replay 4000",
}
NOT_COMPARED = ("speed/", "memory/", "progress/seconds")
FILES = ("policy", "optimizer", "state")


def train(root: Path, options: str, folder: Path) -> subprocess.Popen[bytes]:
    import shlex

    env = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-m",
        "ludus",
        "train",
        *shlex.split(options),
        *shlex.split(ALWAYS),
        "--run",
        str(folder),
    ]
    return subprocess.Popen(
        command, cwd=root, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def tensors(file: Path) -> Counter[str]:
    """Shape, type and hash of each; without names."""
    found: Counter[str] = Counter()
    with safe_open(file, "numpy") as opened:
        for name in opened.keys():  # noqa: SIM118 (not a dict)
            array = opened.get_tensor(name)
            found[
                f"{array.dtype}{list(array.shape)} "
                f"{hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
            ] += 1
    return found


def lines(run: Path) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{n: v for n, v in row.items() if not n.startswith(NOT_COMPARED)} for row in rows]


def differences(base: Path, here: Path) -> list[str]:
    """What is not the same, in words."""
    before, after = lines(base), lines(here)
    found = []
    if len(before) != len(after):
        found.append(f"{len(before)} iterations before, {len(after)} now")
    for number, (a, b) in enumerate(zip(before, after, strict=False), 1):
        if a.keys() != b.keys():  # metrics may have other names: then their values must be the same
            same = Counter(map(str, a.values())) == Counter(map(str, b.values()))
            names = ", ".join(sorted(a.keys() ^ b.keys())[:4])
            found += (
                []
                if same
                else [
                    f"iteration {number}: metrics differ, those with other names or on one side "
                    f"only: {names}"
                ]
            )
        else:
            changed = [f"{n} {a[n]} → {b[n]}" for n in a if a[n] != b[n]]
            found += [f"iteration {number}: {', '.join(changed[:3])}"] if changed else []
        if found:
            break  # what follows differs because of it
    ends = [max((run / "checkpoints").iterdir()) for run in (base, here)]
    for part in FILES:
        counted = [tensors(end / f"{part}.safetensors") for end in ends]
        if counted[0] != counted[1]:
            lost, new = counted[0] - counted[1], counted[1] - counted[0]
            found.append(
                f"{part}: {lost.total()} tensors are gone or changed, {new.total()} are new"
            )
    return found


def runs_of(root: Path) -> Mapping[str, str]:
    """Those that a commit's own copy of this file names."""
    file = root / "benchmarks" / Path(__file__).name
    if not file.exists():
        return RUNS
    specification = importlib.util.spec_from_file_location("same_numbers_of_base", file)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    found: Mapping[str, str] = module.RUNS
    return found


@contextmanager
def checked_out(commit: str, folder: Path) -> Iterator[Path]:
    root = folder / "base"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(root), commit], check=True)
    try:
        yield root
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(root)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument(
        "--only",
        nargs="*",
        default=list(RUNS),
        choices=list(RUNS),
        metavar="RUN",
        help=", ".join(RUNS),
    )
    options = parser.parse_args()
    here, bad = Path(__file__).resolve().parents[1], 0
    with (
        tempfile.TemporaryDirectory() as temporary,
        checked_out(options.base, Path(temporary)) as root,
    ):
        of_base = runs_of(root)
        for name in options.only:
            folders = {side: Path(temporary) / side / name for side in ("before", "now")}
            sides = [
                train(root, of_base.get(name, RUNS[name]), folders["before"]),
                train(here, RUNS[name], folders["now"]),
            ]
            errors = [side.communicate()[1].decode().strip().splitlines() for side in sides]
            failed = [
                f"{side}: {error[-1]}"
                for side, p, error in zip(folders, sides, errors, strict=True)
                if p.returncode
            ]
            found = failed or differences(folders["before"], folders["now"])
            bad += bool(found)
            print(f"{name:<20} {'; '.join(found) or 'the same'}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
