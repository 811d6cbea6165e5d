"""Starting a run, a new one or one that goes on from another's weights: everything that cannot work
is refused, then the folder appears complete, or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ludus.config import Config, check_types, flatten, resolve, unflatten
from ludus.errors import disk_in_one_sentence
from ludus.files import sync_folder, write_atomically
from ludus.runs import weights
from ludus.runs.checkpoint import find_checkpoint
from ludus.runs.run import Run, default_name, is_locked, split_reference
from ludus.runs.trust import believe
from ludus.training import rollback
from ludus.training.callbacks import Callbacks, known_here, make_callbacks
from ludus.training.dashboard import Dashboard
from ludus.training.display import Display
from ludus.training.finish import concluding
from ludus.training.headline import headline
from ludus.training.loop import Trainer
from ludus.training.threads import choose_threads
from ludus.training.validate import validate

# seconds without a change; a run that is just being made has its lock a moment later
ABANDONED_AFTER = 60.0


def prepare(
    config: Config, origins: Mapping[str, str] | None = None
) -> tuple[Config, dict[str, str]]:
    """The config with everything derived, and where each value came from; or an error before
    anything is written."""
    check_types(config)
    asked = flatten(config)
    config = resolve(config)
    info = validate(config)
    config.checkpoint.best_metric = headline(config, info)
    if config.train.threads is None:
        config.train.threads = choose_threads(config)
    derived = {
        name: "derived"
        for name, value in flatten(config).items()
        if asked.get(name) is None and value is not None
    }
    return config, {**(origins or {}), **derived}


def remove_abandoned(parent: Path) -> None:
    """Folders of runs whose process was killed while it made them: nobody holds their lock."""
    for partial in parent.glob(".*.partial"):
        with contextlib.suppress(OSError):
            if time.time() - partial.stat().st_mtime > ABANDONED_AFTER and not is_locked(partial):
                shutil.rmtree(partial, ignore_errors=True)


def create(
    path: Path,
    config: Config,
    origins: Mapping[str, str],
    *,
    extra: Mapping[str, Any] | None = None,
    load_weights: Callable[[Trainer], None] | None = None,
    display: Display | None = None,
    schedules_at: float = 0.0,
    callbacks: Callbacks | None = None,
) -> Trainer:
    """A new run folder with its checkpoint 0: it appears complete, or not at all. `schedules_at`:
    where its schedules start, for a run that continues another."""
    Run.refuse_existing(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    remove_abandoned(path.parent)
    shutil.rmtree(partial, ignore_errors=True)
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        run = Run(partial, new=True)
        run.lock()  # it goes with the folder: whoever sees the run sees that it is being trained
        run.write_config(config, origins, extra)
        trainer = Trainer(run, config, display=display, callbacks=callbacks)
        if load_weights is not None:
            load_weights(trainer)
        trainer.begin(schedules_at)
        game = {
            **trainer.batch.received(),
            "preset": config.game.partition(":")[2] or None,
            "layout": trainer.batch.layout.describe(),
            "fingerprint": trainer.batch.fingerprint(),
        }
        write_atomically(partial / "game.json", json.dumps(game, indent=1))
        trainer.save()
        trainer.callbacks.raise_failure()  # of what it has to say about its state
        if path.exists():
            path.rmdir()
        partial.rename(path)
        # a folder that was made for the run is lost with it unless it is safe itself
        for folder in (path, *made):
            sync_folder(folder.parent)
    except BaseException:
        remove_new(partial, made)
        raise
    run.path = path
    believe(path)
    try:
        trainer.callbacks.start(trainer)
    except BaseException:
        run.close()
        remove_new(path, made)
        raise
    return trainer


def remove_new(folder: Path, made: Iterable[Path]) -> None:
    """A run that did not come to be, with the folders that were made for it."""
    shutil.rmtree(folder, ignore_errors=True)
    for above in made:
        with contextlib.suppress(OSError):
            above.rmdir()


@contextlib.contextmanager
def started(
    path: str | Path | None,
    name: str,
    config: Config,
    sources: Mapping[str, str],
    quiet: bool,
    *,
    load_weights: Callable[[Trainer], None] | None = None,
    extra: Mapping[str, Any] | None = None,
    schedules_at: float = 0.0,
    callbacks: Mapping[str, Any] | None = None,
) -> Iterator[Trainer]:
    """A new run in `path` (default: runs/NAME-DATE), to be trained within this context, which
    concludes it."""
    folder = Path(path) if path is not None else Path("runs") / default_name(name)
    Run.refuse_existing(folder)
    config, sources = prepare(config, sources)
    made = make_callbacks(config.callbacks, callbacks or {})
    with Dashboard(config, quiet) as dashboard:
        trainer = create(
            folder,
            config,
            sources,
            extra=extra,
            load_weights=load_weights,
            display=dashboard,
            schedules_at=schedules_at,
            callbacks=made,
        )
        with concluding(trainer):
            yield trainer


@disk_in_one_sentence()
def train(
    config: Config,
    sources: Mapping[str, str],
    path: str | Path | None,
    *,
    name: str = "",
    quiet: bool = False,
    init_from: str | Path | None = None,
    init_modules: Sequence[str] = (),
    callbacks: Mapping[str, Any] | None = None,
) -> Run:
    """Creates a run and trains it. `name`: of its folder, where no path is given (default: the
    game). `callbacks`: those of the config that a program hands over, by name."""

    def load_weights(trainer: Trainer) -> None:
        if init_from:
            saved, layout = find_checkpoint(init_from), trainer.batch.layout
            loaded = weights.load_policies(trainer.algorithm, layout, saved, init_modules)
            weights.refuse_other_meaning(saved, trainer.config.policy, loaded)

    extra = {"init_from": str(init_from), "init_modules": list(init_modules)} if init_from else None
    with started(
        path,
        name or config.game,
        config,
        sources,
        quiet,
        load_weights=load_weights,
        extra=extra,
        callbacks=callbacks,
    ) as trainer:
        trainer.train()
    return after_doctor(trainer, quiet)


def forkable(reference: str | Path) -> Config:
    """The config of a run as a starting point for another, without what was derived for it."""
    run = Run(split_reference(str(reference))[0])
    run.config()  # refuses somebody's code
    data = run.stored()
    return unflatten(
        {n: None if data["origins"].get(n) == "derived" else v for n, v in data["values"].items()}
    )


@disk_in_one_sentence()
def fork(
    reference: str | Path,
    config: Config,
    sources: Mapping[str, str],
    path: str | Path | None,
    *,
    quiet: bool = False,
    schedules_at: float = 0.0,
    callbacks: Mapping[str, Any] | None = None,
) -> Run:
    """A new run that starts with the weights and optimizers of another's checkpoint: new episodes,
    a budget of its own, and schedules from their start (or from `schedules_at`, a share from 0 to
    1)."""
    saved = find_checkpoint(reference)
    config.callbacks = known_here(
        config.callbacks, callbacks or {}, saved.manifest["config"].get("callbacks", ()), "the fork"
    )

    def load_weights(trainer: Trainer) -> None:
        loaded = weights.load_all(trainer.algorithm, trainer.batch.layout, saved)
        weights.refuse_other_meaning(saved, trainer.config.policy, loaded)

    with started(
        path,
        config.game + "-fork",
        config,
        sources,
        quiet,
        load_weights=load_weights,
        extra={"forked_from": saved.where},
        schedules_at=schedules_at,
        callbacks=callbacks,
    ) as trainer:
        trainer.train()
    return after_doctor(trainer, quiet)


def after_doctor(trainer: Trainer, quiet: bool) -> Run:
    """The run that training ended with: where the doctor asked to go back, that of the rollback."""
    run = trainer.run
    finding = trainer.doctor.acts_on
    if finding is None or trainer.doctor.on_critical != "rollback":
        return run
    chosen = rollback.plan(run, finding, trainer.config)
    if chosen is None:
        print(
            f"ludus: {finding.check}: no change is suggested that could be tried, so training "
            "stops here",
            file=sys.stderr,
        )
        return run
    reference = f"{run.path}@{chosen.step}"
    print(
        f"ludus: {finding.cause}: going on from {reference} with {chosen.changes} in {chosen.path}",
        file=sys.stderr,
    )
    config = forkable(reference)
    rollback.apply(config, chosen)
    sources = dict.fromkeys(chosen.changes, "doctor")
    sources = {**run.stored()["origins"], **sources}
    return fork(
        reference,
        config,
        sources,
        chosen.path,
        quiet=quiet,
        schedules_at=chosen.schedule_share,
        callbacks=trainer.callbacks.handed_over,
    )
