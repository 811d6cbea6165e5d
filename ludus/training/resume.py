"""Going on with a run where it stopped, bit for bit."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ludus import machine
from ludus.config import Config, check_types, full_name, set_value
from ludus.config.schedules import parse
from ludus.errors import LudusError, disk_in_one_sentence
from ludus.runs import budget, checkpoint
from ludus.runs.budget import BUDGETS
from ludus.runs.checkpoint import Checkpoint
from ludus.runs.run import Run, remove, split_reference, versions
from ludus.runs.snapshots import remove_unreferenced, verify_snapshots
from ludus.training.callbacks import (
    handed_over,
    known_here,
    make_callbacks,
    named,
    refuse_others,
)
from ludus.training.dashboard import Dashboard
from ludus.training.finish import concluding
from ludus.training.loop import Trainer
from ludus.training.report import write_report
from ludus.training.saving import tidy_up
from ludus.training.start import after_doctor
from ludus.training.validate import validate


@disk_in_one_sentence()
def resume(
    reference: str | Path,
    budgets: Mapping[str, Any],
    *,
    quiet: bool = False,
    callbacks: Sequence[Any] = (),
) -> Run:
    """Goes on where a run stopped, bit for bit. Only budgets may change; schedules go on from where
    they stood. `callbacks`: those of the run that a program handed over."""
    folder, mark = split_reference(str(reference))
    run = Run(folder)
    data, config = run.stored(), run.config()
    for name, value in budgets.items():
        full = full_name(config, name)
        if full not in BUDGETS:
            raise LudusError(
                f"resume may change only {' and '.join(BUDGETS)}, not {full}: `ludus fork {folder} "
                f"--{full} …` makes a new run"
            )
        set_value(config, full, value)
        data["origins"][full] = "command line"
    given = named(callbacks)
    refuse_others(given, config.callbacks, folder)
    check_types(config)
    _require_device(config, folder)
    validate(config)
    step, state = checkpoint.find(run, mark), run.state()[0]
    run.lock()
    with contextlib.closing(run):
        saved = Checkpoint(run, step)
        saved.verify()
        verify_snapshots(run, saved.manifest["league"])
        if _is_spent(config, saved):
            concluded = state != "crashed" and (run.path / "report.html").exists()
            if concluded or mark is not None:
                raise LudusError(_how_to_go_on(folder, saved))
            _finish_late(run, config, saved)
            return run
        own = handed_over(given)
        made = make_callbacks(known_here(config.callbacks, own, config.callbacks, str(folder)), own)
        with Dashboard(config, quiet) as dashboard:
            trainer = Trainer(run, config, display=dashboard, callbacks=made)
            trainer.restore(saved)
            # until here nothing on disk was changed: what cannot be resumed stays as it was
            if mark is not None:
                _drop_newer(run, step)
            remove_unfinished(run)
            trainer.cut_back(saved)
            trainer.callbacks.start(trainer)
            _say_what_changed(saved.manifest)
            _say_if_nothing_is_learned(trainer, folder)
            run.write_config(
                config,
                data["origins"],
                {k: v for k, v in data.items() if k not in ("values", "origins", "versions")},
            )
            with concluding(trainer):
                trainer.train()
    return after_doctor(trainer, quiet)


def _is_spent(config: Config, saved: Checkpoint) -> bool:
    progress = saved.manifest["progress"]
    return budget.spent(config.train, progress["agent_steps"], progress["seconds"]) >= 1.0


def _how_to_go_on(folder: Path, saved: Checkpoint) -> str:
    progress = saved.manifest["progress"]
    return (
        f"{folder} has spent its budget ({progress['agent_steps']:,} agent-steps, "
        f"{progress['seconds']:.0f} s): raise it with --train.total-agent-steps or "
        "--train.total-seconds"
    )


def _require_device(config: Config, folder: Path) -> None:
    """The device of a run stays: another one would not go on bit for bit."""
    try:
        machine.require(config.device)
    except LudusError:
        raise LudusError(
            f"{folder} was trained on {config.device}, which is not there on this machine: resume "
            f"it where there is one, or `ludus fork {folder} --device cpu`"
        ) from None


def _finish_late(run: Run, config: Config, saved: Checkpoint) -> None:
    """Of a run that was killed between its last checkpoint and its report."""
    remove_unfinished(run)
    tidy_up(run, config, saved.manifest["progress"]["best"])
    run.note_end("finished")
    write_report(run)


def _say_what_changed(manifest: Mapping[str, Any]) -> None:
    now = versions()
    changed = [
        f"{name} {old} → {now.get(name)}"
        for name, old in manifest["versions"].items()
        if now.get(name) != old
    ]
    if changed:
        print(
            f"ludus: going on with other versions ({', '.join(changed)}): not bit for bit",
            file=sys.stderr,
        )


def _say_if_nothing_is_learned(trainer: Trainer, folder: Path) -> None:
    """A learning rate that came down to 0 stays there when a finished run is given more budget."""
    rates = trainer.config.learning_rates(list(trainer.algorithm.policies))
    share = trainer.schedule_share
    if all(parse(rate)(share) == 0 and parse(rate)(1.0) == 0 for rate in rates.values()):
        key = next(iter(rates))
        print(
            f"ludus: the learning rate ended at 0 ({key}={rates[key]}): this run plays on and "
            "learns nothing more; to train on: "
            f'ludus fork {folder} --{key.replace("_", "-")} "3e-4 -> 0"',
            file=sys.stderr,
        )


def _drop_newer(run: Run, step: int) -> None:
    """Going on from an older checkpoint on request: the newer ones make way, into discarded/."""
    for newer in [s for s in checkpoint.steps(run) if s > step]:
        target = run.path / "discarded" / f"checkpoint-{newer}"
        target.parent.mkdir(exist_ok=True)
        checkpoint.folder(run, newer).rename(target)


def remove_unfinished(run: Run) -> None:
    """What was being written or removed when the process died: folders of checkpoints, files under
    the name they have until they are complete, snapshots that no checkpoint refers to."""
    remove(p for p in run.path.glob("checkpoints/*") if not (p / "manifest.json").exists())
    for folder in (run.path, run.path / "snapshots", run.path / "replays"):
        for path in (*folder.glob("*.tmp"), *folder.glob(".tmp*")):  # the latter by safetensors
            path.unlink(missing_ok=True)
    remove_unreferenced(run)
