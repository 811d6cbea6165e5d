"""Exact resume with real kills: the same weights and the same log as a run that was never
interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

SMALL = [
    "--envs",
    "8",
    "--seed",
    "5",
    "--train.threads",
    "1",
    "--train.total-agent-steps",
    "9000",
    "--ppo.rollout",
    "16",
    "--ppo.minibatches",
    "2",
    "--ppo.epochs",
    "2",
    "--policy.hidden",
    "16",
    "--policy.memory",
    "lstm",
    "--policy.memory-size",
    "8",
    "--eval.episodes",
    "2",
    "--eval.against",
    "self",
    "--eval.every-agent-steps",
    "4000",
    "--log.diagnostics-every",
    "5",
    "--checkpoint.every-agent-steps",
    "900",
    "--checkpoint.every-seconds",
    "None",
    "--quiet",
    "--game.max-steps",
    "40",
]

CLI = "from ludus.cli import main; main()"

# Kills itself in the middle of writing the n-th tensor file or manifest of a checkpoint.
KILL_WHILE_SAVING = """
import os, signal, sys
from ludus.runs import checkpoint
count = 0
def wrap(f):
    def wrapped(*a, **k):
        global count
        count += 1
        if count == int(os.environ["KILL_AT"]):
            path = a[1] if f.__name__ == "save_file" else a[0].with_name(a[0].name + ".tmp")
            open(path, "wb").write(b"half a file")
            os.kill(os.getpid(), signal.SIGKILL)
        return f(*a, **k)
    wrapped.__name__ = f.__name__
    return wrapped
checkpoint.save_file = wrap(checkpoint.save_file)
checkpoint.write_atomically = wrap(checkpoint.write_atomically)
from ludus.cli import main
main()
"""


def ludus(
    folder: Path, *arguments: str, code: str = CLI, **environment: str
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def lines(run: Path) -> list[dict]:
    """The log without what depends on the clock."""
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [
        {
            k: v
            for k, v in r.items()
            if not k.startswith(("speed/", "memory/")) and k != "progress/seconds"
        }
        for r in records
    ]


def final_weights(run: Path) -> dict[str, bytes]:
    newest = sorted(run.glob("checkpoints/*"))[-1]
    tensors = {
        **load_file(newest / "policy.safetensors"),
        **load_file(newest / "optimizer.safetensors"),
    }
    return {name: t.numpy().tobytes() for name, t in tensors.items()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    done = ludus(folder, "train", "pursuit", "--run", "whole", *SMALL)
    assert done.returncode == 0, done.stderr
    return folder / "whole"


def assert_same(run: Path, reference: Path) -> None:
    assert lines(run) == lines(reference)
    assert final_weights(run) == final_weights(reference)
    iterations = [r["progress/iteration"] for r in lines(run)]
    assert iterations == list(range(1, len(iterations) + 1))


def test_the_same_seed_gives_the_same_run(undisturbed):
    done = ludus(undisturbed.parent, "train", "pursuit", "--run", "again", *SMALL)
    assert done.returncode == 0, done.stderr
    assert_same(undisturbed.parent / "again", undisturbed)
    assert (undisturbed.parent / "again/episodes.csv").read_text() == (
        undisturbed / "episodes.csv"
    ).read_text()


def test_killed_at_any_moment(undisturbed):
    """Killed again and again wherever it happens to be, then resumed to the end."""
    folder, run = undisturbed.parent, undisturbed.parent / "killed"
    arguments = ["train", "pursuit", "--run", "killed", *SMALL]
    kills = 0
    for delay in (0.15, 0.4, 0.25):
        process = subprocess.Popen(
            [sys.executable, "-c", CLI, *arguments], cwd=folder, stderr=subprocess.PIPE
        )
        while not (run / "metrics.jsonl").exists() and process.poll() is None:
            time.sleep(0.02)
        start = len(lines_or_none(run))
        while process.poll() is None and len(lines_or_none(run)) <= start:
            time.sleep(0.01)
        time.sleep(delay)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        arguments = ["resume", "killed", "--quiet"]
    done = ludus(folder, "resume", "killed", "--quiet")
    assert done.returncode == 0, done.stderr
    assert kills >= 2
    assert_same(run, undisturbed)


def lines_or_none(run: Path) -> list[str]:
    path = run / "metrics.jsonl"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("kill_at", ["7", "12"])
def test_killed_while_a_checkpoint_is_written(undisturbed, kill_at):
    folder, run = undisturbed.parent, undisturbed.parent / f"saving{kill_at}"
    killed = ludus(
        folder,
        "train",
        "pursuit",
        "--run",
        run.name,
        *SMALL,
        code=KILL_WHILE_SAVING,
        KILL_AT=kill_at,
    )
    assert killed.returncode == -signal.SIGKILL
    done = ludus(folder, "resume", run.name, "--quiet")
    assert done.returncode == 0, done.stderr
    assert_same(run, undisturbed)


def test_killed_before_the_run_exists_leaves_nothing(tmp_path):
    killed = ludus(
        tmp_path, "train", "pursuit", "--run", "early", *SMALL, code=KILL_WHILE_SAVING, KILL_AT="2"
    )
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "early").exists()


def test_interrupted_politely_it_saves_and_can_go_on(undisturbed):
    folder, run = undisturbed.parent, undisturbed.parent / "polite"
    process = subprocess.Popen(
        [sys.executable, "-c", CLI, "train", "pursuit", "--run", "polite", *SMALL],
        cwd=folder,
        stdout=subprocess.PIPE,
    )
    while len(lines_or_none(run)) < 2:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 3  # asked to stop
    stopped = json.loads((sorted(run.glob("checkpoints/*"))[-1] / "manifest.json").read_text())[
        "progress"
    ]["iteration"]
    assert stopped == len(lines_or_none(run)) and (run / "report.html").exists()
    assert ludus(folder, "resume", "polite", "--quiet").returncode == 0
    assert final_weights(run) == final_weights(undisturbed)
