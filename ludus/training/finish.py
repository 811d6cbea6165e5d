"""Training to the end: what is noted of how a run ended, the doctor's last word and the report."""

from __future__ import annotations

import contextlib

from ludus.errors import LudusError
from ludus.runs.run import ON_REQUEST
from ludus.runs.sinks import open_sinks
from ludus.training.loop import Trainer
from ludus.training.report import write_report


def finish(trainer: Trainer) -> None:
    """Trains to the end, notes how it ended, asks the doctor and writes the report, whatever
    happens on the way. The first error is the one that is told."""
    trainer.run.forget_end()
    try:
        trainer.run.sinks = open_sinks(trainer.run.path, trainer.config)
        trainer.train()
    except KeyboardInterrupt:  # at once: no report either
        with contextlib.suppress(OSError):
            trainer.run.note_end(
                "stopped", "interrupted: what came after the last checkpoint is lost"
            )
            trainer.run.close()
        raise
    except BaseException as error:
        for_doctor = isinstance(error, LudusError) and trainer.doctor.acts_on is not None
        with contextlib.suppress(OSError, LudusError):
            trainer.run.note_end(
                "stopped" if for_doctor else "crashed", str(error) or type(error).__name__
            )
            conclude(trainer)
        if not for_doctor:
            raise
        return
    finding = trainer.doctor.acts_on
    if finding is not None:
        trainer.run.note_end("stopped", f"by the doctor: {finding.cause}")
    elif trainer.share < 1.0:
        trainer.run.note_end("stopped", ON_REQUEST)
    else:
        trainer.run.note_end("finished")
    conclude(trainer)


def conclude(trainer: Trainer) -> None:
    trainer.run.close()
    trainer.display.status("asking the doctor about the whole run, and writing the report")
    trainer.doctor.conclude(trainer.progress.agent_steps)
    write_report(trainer.run)
