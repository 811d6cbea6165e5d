"""Code of the user's own that is called while a run trains: callbacks.

A class is named by its import path, config.json keeps that, and every process makes the callback
again. An object that a program hands over is known to this process alone: config.json notes the
name of its class, which has no colon. Calls are made in the order in which callbacks were given.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ludus.config import flatten
from ludus.doctor.finding import SEVERITIES
from ludus.doctor.live import Record
from ludus.errors import FAULTS, LudusError, nearest
from ludus.imports import import_class, is_path, where_raised
from ludus.runs import checkpoint
from ludus.training.progress import stream_seed

if TYPE_CHECKING:
    from ludus.training.loop import Trainer

METHODS = ("start", "iteration", "evaluation", "checkpoint", "finding", "end")


class Training:
    """What a callback is told of the run: where it stands, and a way to stop it."""

    def __init__(self, run: Path, config: dict[str, Any]) -> None:
        self.run = run
        """The run's folder."""
        self.config = config
        """Every setting by its dotted name, as in config.json."""
        self.agent_steps = 0
        self.iteration = 0
        """Iterations so far."""
        self.seconds = 0.0
        """Seconds of training so far, over all resumes."""
        self.stop_reason: str | None = None

    def stop(self, reason: str) -> None:
        """Ends the run after the current iteration, with a checkpoint. `ludus resume` goes on."""
        if self.stop_reason is None:
            self.stop_reason = " ".join(str(reason).split()) or "without a reason"


class Callback:
    """A base class: override what you need. docs/callbacks.md has an example."""

    def start(self, training: Training) -> None:
        """Training begins, or goes on after a resume."""

    def iteration(self, training: Training, metrics: dict[str, Any]) -> None:
        """An iteration is over; `metrics` is its line of metrics.jsonl."""

    def evaluation(self, training: Training, metrics: dict[str, float]) -> None:
        """An evaluation took place in this iteration."""

    def checkpoint(self, training: Training, step: int, folder: Path) -> None:
        """A checkpoint is complete. Also called after `start`, for the one that training starts
        from."""

    def finding(self, training: Training, finding: dict[str, Any]) -> None:
        """The doctor sees something new, or something that has become worse."""

    def end(self, training: Training, state: str, reason: str) -> None:
        """The run has finished, stopped or crashed (`state`). Nothing is called after it."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of the callback: anything that JSON holds."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """A run goes on: what `state` returned for the checkpoint. Called before `start`."""


class Callbacks:
    """Those of one run."""

    def __init__(
        self, members: Mapping[str, Any] | None = None, handed_over: Mapping[str, Any] | None = None
    ) -> None:
        """`members`: name → callback; `handed_over`: those that only this process has."""
        self.members, self.handed_over = dict(members or {}), dict(handed_over or {})
        self.failure: LudusError | None = None
        """The first error of a callback while the run trained."""
        self._trainer: Trainer | None = None
        self._training: dict[str, Training] = {}  # of the callbacks that were started
        self._states: dict[str, Any] = {}  # name → as of the newest checkpoint
        self._told: dict[Record, int] = {}  # finding → severity
        self._trains = False

    def __bool__(self) -> bool:
        return bool(self.members)

    @property
    def stopped_by(self) -> str | None:
        """The callback that stopped the run, and why."""
        for name, training in self._training.items():
            if training.stop_reason is not None:
                return f"{name}: {training.stop_reason}"
        return None

    @property
    def over(self) -> bool:
        """Should training end here?"""
        return self.failure is not None or self.stopped_by is not None

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    # -- what happens ------------------------------------------------------------------------------

    def start(self, trainer: Trainer) -> None:
        """Where one cannot start, those that did are told the end, and nothing is trained."""
        self._trainer = trainer
        self._told = {r: _severity(r) for r in trainer.doctor.watcher.records}
        try:
            for name in self.members:
                config = json.loads(json.dumps(flatten(trainer.config)))
                training = Training(trainer.run.path, config)
                failed = self._call(name, training, "start")
                if failed is not None:
                    raise failed
                self._training[name] = training
        except BaseException as error:
            self.end("crashed", str(error))
            raise
        self._trains = True
        self.saved(trainer.progress.agent_steps)

    def after_iteration(self, line: Mapping[str, Any], evaluated: Mapping[str, Any]) -> None:
        self._keep(self._call_all("iteration", _plain(line)))
        if evaluated:
            self._keep(self._call_all("evaluation", _plain(evaluated)))
        self._keep(self._tell_findings())

    def saved(self, step: int) -> None:
        """A checkpoint is complete. Before `start` there is no run folder yet."""
        if self._training and self._trainer is not None:
            folder = checkpoint.folder(self._trainer.run, step)
            self._keep(self._call_all("checkpoint", step, folder))

    def end(self, state: str, reason: str = "") -> LudusError | None:
        """Also tells what the doctor found in the whole run. An error does not change how the run
        ended: it is returned."""
        self._trains = False
        told = self._tell_findings()
        return self._call_all("end", state, reason) or told

    def _tell_findings(self) -> LudusError | None:
        failed = None
        for record in self._trainer.doctor.watcher.records if self._trainer is not None else ():
            if record.gone is None and _severity(record) > self._told.get(record, -1):
                self._told[record] = _severity(record)
                finding = dataclasses.asdict(record.finding)
                failed = self._call_all("finding", finding) or failed
        return failed

    # -- calls -------------------------------------------------------------------------------------

    def _call_all(self, method: str, *arguments: Any) -> LudusError | None:
        """Every callback that was started; returns the first error, and prints further ones."""
        first = None
        for name, training in self._training.items():
            failed = self._call(name, training, method, *arguments)
            if failed is not None and first is not None:
                print(f"ludus: {failed}", file=sys.stderr)
            first = first or failed
        return first

    def _call(
        self, name: str, training: Training, method: str, *arguments: Any
    ) -> LudusError | None:
        called = getattr(self.members[name], method, None)
        if called is None or self._trainer is None:
            return None
        p, config = self._trainer.progress, self._trainer.config
        training.agent_steps, training.iteration, training.seconds = (
            p.agent_steps,
            p.iteration,
            p.seconds,
        )
        seed = stream_seed(config.seed, p.iteration, f"callbacks/{name}/{method}")
        try:
            with _own_random_numbers(seed):
                called(training, *copy.deepcopy(arguments))
        except FAULTS as error:
            return self._failed(name, f"failed in {method} ({where_raised(error)})", error)
        return None

    def _failed(self, name: str, what: str, error: BaseException) -> LudusError:
        text = f"the callback {name} {what}"
        if self._trains and self._trainer is not None:
            path = self._trainer.run.path
            resume = f"`ludus resume {path}`"
            if not is_path(name):
                resume = f'ludus.resume("{path}", callbacks=[…])'
            text += f": training stopped with a checkpoint; correct it, and {resume} goes on"
        failed = LudusError(text)
        failed.__cause__ = error
        return failed

    def _keep(self, failed: LudusError | None) -> None:
        """An error while the run trains: it ends with a checkpoint, then the error is raised."""
        if self.failure is None:
            self.failure = failed
        elif failed is not None:
            print(f"ludus: {failed}", file=sys.stderr)

    # -- in and out of checkpoints -----------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """name → state. Where one fails its last state is kept, and that of a callback that this
        process does not have."""
        for name, callback in self.members.items():
            if not _defines(callback, "state"):
                continue
            try:
                state = callback.state()
                if not isinstance(state, dict):
                    raise TypeError(f"state returns a {type(state).__name__}, not a dict")
            except FAULTS as error:
                what = f"failed in state ({where_raised(error)})"
                self._keep(self._failed(name, what, error))
                continue
            try:
                self._states[name] = json.loads(json.dumps(state))
            except (TypeError, ValueError, RecursionError) as error:
                what = f"has a state that JSON cannot hold ({error})"
                self._keep(self._failed(name, what, error))
        return self._states

    def load_state(self, states: Mapping[str, Any]) -> None:
        self._states = dict(states)
        for name, callback in self.members.items():
            if name in states and _defines(callback, "load_state"):
                try:
                    callback.load_state(copy.deepcopy(states[name]))
                except FAULTS as error:
                    what = f"failed in load_state ({where_raised(error)})"
                    raise self._failed(name, what, error) from error


def _severity(record: Record) -> int:
    return SEVERITIES.index(record.finding.severity)


def _plain(line: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of numpy as Python's own."""
    return {n: v.item() if hasattr(v, "item") else v for n, v in line.items()}


@contextmanager
def _own_random_numbers(seed: int) -> Iterator[None]:
    """What a callback draws changes nothing in training, and is the same after a resume. (The
    generators of GPUs are seeded before every iteration.)"""
    python, arrays = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(arrays)


# -- making them -----------------------------------------------------------------------------------


def named(given: Sequence[Any]) -> dict[str, Any]:
    """What a program gives, by the names that config.json keeps: import paths, classes, objects.
    Two objects of one class are NAME and NAME-2."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise LudusError(
            f"callbacks={given!r} is of type {type(given).__name__}: use a list, callbacks=[…]"
        )
    out: dict[str, Any] = {}
    for callback in given:
        base = name = _name_of(callback)
        number = 1
        while name in out and not is_path(name):
            number += 1
            name = f"{base}-{number}"
        _refuse_twice(name, out)
        out[name] = callback
    return out


def handed_over(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of what `named` returned, what no other process finds."""
    return {n: c for n, c in given.items() if not is_path(n) and not isinstance(c, str)}


def _name_of(given: Any) -> str:
    if isinstance(given, str):
        return given
    kind = given if isinstance(given, type) else type(given)
    module, name = kind.__module__, kind.__qualname__
    found = getattr(sys.modules.get(module), name, None)
    if given is kind and module != "__main__" and found is kind:
        return f"{module}:{name}"
    return kind.__name__


def make_callbacks(names: Sequence[str], handed_over: Mapping[str, Any]) -> Callbacks:
    """Refuses what is not a callback or cannot be made. This executes the user's code."""
    members: dict[str, Any] = {}
    for name in names:
        _refuse_twice(name, members)
        found = handed_over[name] if name in handed_over else import_class(name, "callback")
        _refuse_useless(name, found)
        if isinstance(found, type):
            try:
                found = found()
            except FAULTS as error:
                raise LudusError(
                    f"the callback {name} cannot be made ({where_raised(error)}): its class is "
                    "called without arguments"
                ) from error
        members[name] = found
    return Callbacks(members, handed_over)


def known_here(
    names: Sequence[str], handed_over: Mapping[str, Any], of_run: Sequence[str], where: str
) -> tuple[str, ...]:
    """`names` without the objects that a program gave to the run `of_run` and that this one does
    not have, which is said."""
    missing = [n for n in names if not is_path(n) and n in of_run and n not in handed_over]
    for name in missing:
        print(
            f"ludus: {where} goes on without the callback {name}, an object that a program handed "
            "over: in Python, callbacks=[…] brings it again",
            file=sys.stderr,
        )
    return tuple(n for n in names if n not in missing)


def refuse_others(given: Mapping[str, Any], names: Sequence[str], run: Path) -> None:
    """A run goes on with its own callbacks."""
    for name in given:
        if name not in names:
            raise LudusError(
                f"{run} was started without the callback {name}: {nearest(name, names)}; "
                "ludus.fork(…, callbacks=[…]) makes a new run with others"
            )


def _refuse_twice(name: str, before: Mapping[str, Any]) -> None:
    if name in before:
        raise LudusError(f"the callback {name} is given twice: give it once")


def _refuse_useless(name: str, found: Any) -> None:
    for method in METHODS:
        if inspect.iscoroutinefunction(getattr(found, method, None)):
            raise LudusError(
                f"the method {method} of the callback {name} is async, and nothing would await it: "
                "write def instead of async def"
            )
    if not any(_defines(found, method) for method in METHODS):
        raise LudusError(
            f"the callback {name} has none of the methods {', '.join(METHODS)}: it would never be "
            "called"
        )
    has = [m for m in ("state", "load_state") if _defines(found, m)]
    if len(has) == 1:
        lacks = "load_state" if has == ["state"] else "state"
        raise LudusError(
            f"the callback {name} has the method {has[0]} and not {lacks}: a resume needs both"
        )


def _defines(found: Any, method: str) -> bool:
    """Does this class or object have a method of its own, not the base class's?"""
    defined = getattr(found, method, None)
    own = getattr(defined, "__func__", defined)
    return callable(defined) and own is not getattr(Callback, method)
