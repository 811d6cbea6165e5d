"""How a run ends: what is noted of it, the doctor's last word and the report."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from ludus.errors import LudusError
from ludus.runs.run import BY_CALLBACK, ON_REQUEST
from ludus.runs.sinks import open_sinks
from ludus.training.loop import Trainer
from ludus.training.report import write_report

INTERRUPTED = "interrupted: what came after the last checkpoint is lost"


@contextlib.contextmanager
def concluding(trainer: Trainer) -> Iterator[None]:
    """Around training: notes how it ended, asks the doctor, writes the report and tells callbacks,
    however it ended. An error of training is raised again, unless the doctor stopped the run
    because of it; errors of the conclusion do not hide it."""
    trainer.run.forget_end()
    try:
        trainer.run.sinks = open_sinks(trainer.run.path, trainer.config)
        yield
    except KeyboardInterrupt:  # at once: no report either
        with contextlib.suppress(OSError):
            trainer.run.note_end("stopped", INTERRUPTED)
            trainer.run.close()
        tell_end(trainer, "stopped", INTERRUPTED)
        raise
    except BaseException as error:
        for_doctor = (
            isinstance(error, LudusError)
            and error is not trainer.callbacks.failure
            and trainer.doctor.acts_on is not None
        )
        state, reason = "stopped" if for_doctor else "crashed", str(error) or type(error).__name__
        with contextlib.suppress(OSError, LudusError):
            trainer.run.note_end(state, reason)
            conclude(trainer)
        tell_end(trainer, state, reason)
        if not for_doctor:
            raise
        return
    state, reason = how_it_ended(trainer)
    try:
        trainer.run.note_end(state, reason)
        conclude(trainer)
    except BaseException:
        tell_end(trainer, state, reason)
        raise
    failed = trainer.callbacks.end(state, reason)
    if failed is not None:
        raise failed


def how_it_ended(trainer: Trainer) -> tuple[str, str]:
    """Of training that came to its end: state and reason, as `Run.state` gives them."""
    finding = trainer.doctor.acts_on
    if finding is not None:
        return "stopped", f"by the doctor: {finding.cause}"
    if trainer.share >= 1.0:
        return "finished", ""
    by = trainer.callbacks.stopped_by
    return "stopped", ON_REQUEST if by is None else BY_CALLBACK + by


def tell_end(trainer: Trainer, state: str, reason: str) -> None:
    """Where another error is being raised."""
    failed = trainer.callbacks.end(state, reason)
    if failed is not None:
        print(f"ludus: {failed}", file=sys.stderr)


def conclude(trainer: Trainer) -> None:
    trainer.run.close()
    trainer.display.status("asking the doctor about the whole run, and writing the report")
    trainer.doctor.conclude(trainer.progress.agent_steps)
    write_report(trainer.run)
