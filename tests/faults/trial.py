"""Short trainings in forked children of this process, which has everything loaded and compiled: one
takes a part of a second.

A child may be killed, fail or hang without harm to the test. What must be the same in a run that
was disturbed and resumed and in one to which nothing happened is what `outcome` returns.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ludus import api
from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.rainbow import RainbowConfig
from ludus.config import (
    CheckpointConfig,
    Config,
    EvalConfig,
    LeagueConfig,
    LogConfig,
    PolicyConfig,
    TrainConfig,
)
from ludus.errors import LudusError
from ludus.league import league
from ludus.training import report
from ludus.training.start import create, prepare

TIMEOUT = 60.0


def config(kind: str, tensorboard: bool = False) -> Config:
    """ppo, lstm, rainbow or league: six short iterations, with a checkpoint after each or after
    every second."""
    made = Config(
        game="pursuit",
        game_values={"max_steps": 12},
        envs=4,
        seed=3,
        policy=PolicyConfig(hidden=(4,)),
        learner=PPOConfig(rollout=12, epochs=1, minibatches=1),
        train=TrainConfig(total_agent_steps=800, threads=1),
        eval=EvalConfig(episodes=2, against=("self",), greedy=False, every_agent_steps=400),
        checkpoint=CheckpointConfig(every_agent_steps=250, every_seconds=None, keep=2),
        log=LogConfig(tensorboard=tensorboard, diagnostics_every=2, episodes=20, replays=3),
    )
    if kind == "lstm":
        made.policy.memory, made.policy.memory_size = "lstm", 4
    elif kind == "league":
        made.league = LeagueConfig(
            mix="self 1, pool 1", pool_size=3, snapshot_every=1, slots=2, renew_every=1
        )
        # full after three of the iterations
        made.checkpoint.every_agent_steps, made.train.total_agent_steps = 1, 1000
    elif kind == "rainbow":
        made.game, made.game_values = "tests.algorithms.test_seen:GAME", {}
        made.algorithm = "rainbow"
        made.learner = RainbowConfig(
            rollout=16,
            batch=16,
            replay=400,
            warm_up=64,
            n_step=2,
            stream=4,
            cosines=4,
            quantiles=2,
            target_quantiles=2,
            prioritised=True,
            noisy=True,
        )
        (
            made.train.total_agent_steps,
            made.eval.every_agent_steps,
            made.checkpoint.every_agent_steps,
        ) = 360, 200, 100
    return made


KINDS = ("ppo", "lstm", "rainbow", "league")


def load_everything(kind: str, path: Path) -> None:
    """Trains once in this process, so that its children find everything imported and compiled."""
    torch.set_num_threads(1)
    trainer = create(path, *prepare(config(kind)))
    trainer.train()
    trainer.run.close()


class Ended(NamedTuple):
    """How a child ended."""

    how: str
    """done, refused (LudusError), raised (any other exception), killed or hung."""
    what: Any = None
    """What the function returned, or the text of the exception."""


def in_child(
    function: Callable[[], Any], timeout: float = TIMEOUT, kill_after: float | None = None
) -> Ended:
    """Calls it in a forked child. `kill_after`: SIGKILL after so many seconds, wherever it is."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _child(function, write)
    os.close(write)
    parts, end = [], time.monotonic() + (timeout if kill_after is None else kill_after)
    while True:
        ready, _, _ = select.select([read], [], [], max(0.0, end - time.monotonic()))
        part = os.read(read, 1 << 20) if ready else None
        if not part:
            break
        parts.append(part)
    os.close(read)
    late = part is None
    if late:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if late and kill_after is None:
        return Ended("hung", f"after {timeout:g} s")
    if os.WIFSIGNALED(status):
        return Ended("killed", os.WTERMSIG(status))
    return Ended(*pickle.loads(b"".join(parts)))


def _child(function: Callable[[], Any], write: int) -> None:
    """Never returns: nothing of the test runs in the child."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    sys.stdout = sys.stderr = open(nowhere, "w")  # noqa: SIM115 (until the process ends)
    try:
        try:
            ended = Ended("done", function())
        except LudusError as error:
            ended = Ended("refused", str(error))
        except BaseException:
            ended = Ended("raised", traceback.format_exc())
        data = pickle.dumps(tuple(ended))
        while data:
            data = data[os.write(write, data) :]
    finally:
        os._exit(0)


def make_short() -> None:
    """Drawing the report takes longer than these trainings: its page has no figures. Matches are
    written early enough."""
    report._figures = lambda lines, records, config: []  # type: ignore[assignment]
    report._league = lambda run: []  # type: ignore[assignment]
    league.WRITE_EVERY = 2


def train(made: Config, path: Path) -> None:
    make_short()
    api.train(made, run=path, quiet=True)


def resume(path: Path) -> str:
    """Goes on to the end; says so where the run had already come to its end."""
    make_short()
    try:
        api.resume(path, quiet=True)
    except LudusError as error:
        if "has spent its budget" not in str(error):
            raise
        return "had ended"
    return "resumed"


def final_tensors(path: Path) -> dict[str, Any]:
    """The step of the last checkpoint, and the hashes of its tensors."""
    newest = max(p.parent for p in path.glob("checkpoints/*/manifest.json"))
    files = [newest / f"{part}.safetensors" for part in ("policy", "optimizer", "state")]
    return {"step": newest.name, **{file.name: _hash(file) for file in files}}


def outcome(path: Path) -> dict[str, Any]:
    """The final tensors, the logs without what depends on the clock, and the snapshots on disk."""
    found = final_tensors(path)
    for log in ("metrics.jsonl", "diagnostics.jsonl", "matches.jsonl"):
        text = (path / log).read_text() if (path / log).exists() else ""
        found[log] = [_timeless(json.loads(line)) for line in text.splitlines()]
    found["episodes.csv"] = (path / "episodes.csv").read_text()
    found["snapshots"] = {p.name: _hash(p) for p in path.glob("snapshots/*.safetensors")}
    return found


def _timeless(record: dict[str, Any]) -> dict[str, Any]:
    return {
        k: v
        for k, v in record.items()
        if not k.startswith(("speed/", "memory/")) and k != "progress/seconds"
    }


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def differences(path: Path, whole: dict[str, Any], went_on: bool = True) -> list[str]:
    """What of the outcome is not that of the run `whole`. A run that did not go on had no time to
    tidy up: it may have more snapshots than it needs."""
    found = outcome(path)
    if not went_on and whole["snapshots"].items() <= found["snapshots"].items():
        found["snapshots"] = whole["snapshots"]
    return [name for name in whole if found.get(name) != whole[name]]


def leftovers(path: Path) -> list[str]:
    """Half-written files that nobody will use or remove."""
    return sorted(
        str(p.relative_to(path))
        for p in path.rglob("*")
        if p.name.startswith(".") or p.suffix == ".tmp"
    )
