"""How a run ends: what is noted of it, the doctor's last word and the report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ludus.errors import LudusError
from ludus.runs.run import ON_REQUEST
from ludus.runs.sinks import open_sinks
from ludus.training.loop import Trainer
from ludus.training.report import write_report


@contextlib.contextmanager
def concluding(trainer: Trainer) -> Iterator[None]:
    """Around training: notes how it ended, asks the doctor and writes the report, however it ended.
    An error of training is raised again, unless the doctor stopped the run because of it; errors of
    the conclusion do not hide it."""
    trainer.run.forget_end()
    try:
        trainer.run.sinks = open_sinks(trainer.run.path, trainer.config)
        yield
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
