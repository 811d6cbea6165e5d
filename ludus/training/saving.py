"""What a checkpoint holds of a training, and in which order it is put back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from ludus.config import Config
from ludus.errors import LudusError
from ludus.files import write_atomically
from ludus.runs import checkpoint
from ludus.runs.budget import Anchor
from ludus.runs.checkpoint import Checkpoint
from ludus.runs.run import Run, versions
from ludus.runs.snapshots import remove_unreferenced
from ludus.runs.weights import load_all, load_carried, tensors_of
from ludus.training.progress import Progress, stream_seed

if TYPE_CHECKING:
    from ludus.training.loop import Trainer


def save(trainer: Trainer) -> None:
    """Writes a checkpoint, then drops what no checkpoint needs any more."""
    t, p = trainer, trainer.progress
    p.schedule_share = t.schedule_share
    tensors = tensors_of(t.algorithm)
    simulator = checkpoint.as_tensors(t.batch.state())
    tensors["state"] |= {f"sim/{name}": tensor for name, tensor in simulator.items()}
    if t.league is not None:
        players = t.league.tensors()
        tensors["state"] |= {f"league/{name}": tensor for name, tensor in players.items()}
    manifest = {
        "progress": asdict(p),
        "layout": t.batch.layout.describe(),
        "game_fingerprint": t.game_fingerprint,
        "versions": versions(),
        "threads": t.config.train.threads,
        "league": t.league.state() if t.league is not None else None,
        "curriculum": t.stages.state() if t.stages is not None else None,
        "tasks": t.tasks.state() if t.tasks is not None else None,
        "doctor": t.doctor.state(),
        "callbacks": t.callbacks.state(),
        "replays": sorted(path.name for path in t.run.path.glob("replays/*.safetensors")),
    }
    for part in ("policy", "optimizer"):  # what is not finite could not be trained on
        for name, tensor in tensors[part].items():
            if not bool(torch.isfinite(tensor).all()):
                t.stop_not_finite(
                    f"{name} of the {part} is not finite: lower the learning rate or the gradient "
                    "limit"
                )
    checkpoint.save(t.run, p.agent_steps, tensors, manifest)
    if t.league is not None:
        t.league.pool.forget_retired(t.league.in_slots())
    tidy_up(t.run, t.config, p.best)


def tidy_up(run: Run, config: Config, best: Mapping[str, Any]) -> None:
    """What follows from a new checkpoint: which one is best, and what nobody needs any more."""
    write_best(run, best)
    checkpoint.prune(run, config.checkpoint.keep, {best["step"]} if best else set())
    remove_unreferenced(run)


def write_best(run: Run, best: Mapping[str, Any]) -> None:
    """best.json, for whoever looks at the folder: what the newest checkpoint says."""
    path = run.path / "best.json"
    if best:
        write_atomically(path, json.dumps(best))
    else:
        path.unlink(missing_ok=True)


def restore(trainer: Trainer, saved: Checkpoint) -> None:
    for part in RESTORED:
        part(trainer, saved)


def stage(trainer: Trainer, saved: Checkpoint) -> None:
    """First: a stage may have sizes of its own, and so another batch."""
    if trainer.stages is not None:
        trainer.stages.load_state(saved.manifest["curriculum"])


def same_game(trainer: Trainer, saved: Checkpoint) -> None:
    now = {
        "layout": json.loads(json.dumps(trainer.batch.layout.describe())),
        "game_fingerprint": trainer.game_fingerprint,
    }
    for key, changed in (("layout", "layout"), ("game_fingerprint", "rules")):
        if saved.manifest[key] != now[key]:
            raise LudusError(
                f"the game's {changed} changed since {saved.where} was saved: "
                f"`ludus fork {saved.run.path}` starts a new run from it"
            )


def weights(trainer: Trainer, saved: Checkpoint) -> None:
    load_all(trainer.algorithm, trainer.batch.layout, saved)


def simulator(trainer: Trainer, saved: Checkpoint) -> None:
    """With what the algorithm carries from one iteration to the next. Envs of other libraries could
    not be saved: their episodes start again, from a seed of their own."""
    state, now = saved.tensors("state"), trainer.batch.state()
    arrays = checkpoint.as_arrays(checkpoint.split(state, "sim"), now)
    iteration = saved.manifest["progress"]["iteration"]
    seed = stream_seed(trainer.config.seed, iteration, "envs")
    goes_on = trainer.batch.resume_state(arrays, seed)
    load_carried(trainer.algorithm, state)
    if not goes_on:
        trainer.algorithm.cut_episodes()


def league(trainer: Trainer, saved: Checkpoint) -> None:
    if trainer.league is not None:
        players = checkpoint.split(saved.tensors("state"), "league")
        trainer.league.load_state(saved.manifest["league"], players)


def tasks(trainer: Trainer, saved: Checkpoint) -> None:
    if trainer.tasks is not None:
        trainer.tasks.load_state(saved.manifest["tasks"])


def progress(trainer: Trainer, saved: Checkpoint) -> None:
    trainer.progress = p = Progress.from_json(saved.manifest["progress"])
    if trainer.schedule_share != p.schedule_share:  # the budget is another one
        p.anchor = Anchor(p.schedule_share, p.agent_steps, p.seconds)
    if p.best and p.best["step"] not in checkpoint.steps(saved.run):
        p.best = {}  # of an older checkpoint: a better one has replaced it since


def callbacks(trainer: Trainer, saved: Checkpoint) -> None:
    trainer.callbacks.load_state(saved.manifest.get("callbacks", {}))


RESTORED = (stage, same_game, weights, simulator, league, tasks, progress, callbacks)
"""In this order. The doctor's records follow when the logs are cut back to the checkpoint."""
