"""Where the lines of metrics.jsonl go as well: TensorBoard, Weights & Biases, and classes of the
user's own, by import path (log.sinks)."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from ludus.config import Config, LogConfig, flatten
from ludus.errors import FAULTS, LudusError
from ludus.imports import import_class, where_raised


class Sink(Protocol):
    def write(self, record: Mapping[str, Any], step: int) -> None:
        """A line of metrics at a number of agent-steps."""

    def flush(self) -> None: ...

    def close(self) -> None: ...


def numbers(record: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(v)
        for name, v in record.items()
        if isinstance(v, int | float) and math.isfinite(v)
    }


class TensorBoard:
    """Event files in the run's folder. `purge_step`: what an interrupted run logged from there on
    is dropped by TensorBoard."""

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self.writer = EventFileWriter(str(folder))
        if purge_step is not None:
            start = SessionLog(status=SessionLog.START)
            self.writer.add_event(Event(wall_time=time.time(), step=purge_step, session_log=start))

    def write(self, record: Mapping[str, Any], step: int) -> None:
        """All numbers as one event."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=v) for name, v in numbers(record).items()]
        self.writer.add_event(
            Event(wall_time=time.time(), step=step, summary=Summary(value=values))
        )

    def flush(self) -> None:
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class WeightsAndBiases:
    """A run of a project at Weights & Biases. It goes on there when the folder's run is resumed."""

    AXIS = "progress/agent_steps"

    def __init__(self, folder: Path, config: Config, project: str) -> None:
        import wandb

        identity = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
        try:
            self.run = wandb.init(
                project=project,
                name=folder.name,
                id=identity,
                resume="allow",
                dir=str(folder),
                config=flatten(config),
            )
        except Exception as error:  # no login, no network, no such project: its own kinds of error
            raise LudusError(
                f"log.wandb={project} cannot be opened: {error}; `wandb login`, or "
                "WANDB_MODE=offline, or leave it out"
            ) from error
        # after a resume steps repeat, which its own counter refuses
        self.run.define_metric("*", step_metric=self.AXIS)

    def write(self, record: Mapping[str, Any], step: int) -> None:
        self.run.log({**numbers(record), self.AXIS: step})

    def flush(self) -> None:
        """It sends by itself."""

    def close(self) -> None:
        self.run.finish()


METHODS = ("write", "flush", "close")


class OwnSink:
    """One of the user's own. When it raises it is closed, and training goes on without it:
    metrics.jsonl has every line."""

    def __init__(self, path: str, folder: Path, config: Config) -> None:
        self.path = path
        made = import_class(path, "sink", METHODS)
        try:
            self.inner: Any = made(folder, config)
        except FAULTS as error:
            raise LudusError(
                f"the sink '{path}' cannot be opened: {where_raised(error)}; fix it, or leave it "
                "out of log.sinks"
            ) from error

    def write(self, record: Mapping[str, Any], step: int) -> None:
        self._call("write", dict(record), step)

    def flush(self) -> None:
        self._call("flush")

    def close(self) -> None:
        self._call("close")
        self.inner = None

    def _call(self, method: str, *values: Any) -> None:
        if self.inner is None:
            return
        try:
            getattr(self.inner, method)(*values)
        except FAULTS as error:
            print(
                f"ludus: the sink '{self.path}' is closed, because its {method}() failed: "
                f"{where_raised(error)}; metrics.jsonl has every line",
                file=sys.stderr,
            )
            inner, self.inner = self.inner, None
            if method != "close":
                with contextlib.suppress(*FAULTS):
                    inner.close()


def require(log: LogConfig) -> None:
    """Refuses what is not installed or is not a sink before anything is written."""
    for path in log.sinks:
        import_class(path, "sink", METHODS)
    if log.wandb and importlib.util.find_spec("wandb") is None:
        raise LudusError(
            f"log.wandb={log.wandb} needs the package wandb: pip install 'ludus[wandb]'"
        )


def open_sinks(folder: Path, config: Config) -> list[Sink]:
    """Beyond the run's own files."""
    sinks: list[Sink] = []
    if config.log.wandb:
        sinks.append(WeightsAndBiases(folder, config, config.log.wandb))
    try:
        for path in config.log.sinks:
            sinks.append(OwnSink(path, folder, config))
    except LudusError:
        for sink in sinks:
            sink.close()
        raise
    return sinks
