"""Snapshots: copies of the policies of all roles, one file per step, in the run's folder. They
never change once written.

A file stays as long as the pool or a kept checkpoint refers to it: a run can be resumed from each
of its checkpoints.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ludus.errors import LudusError, disk_in_one_sentence
from ludus.files import regular, settle, sync_folder
from ludus.protocols import ActingPolicy
from ludus.runs import checkpoint
from ludus.runs.run import Run


class Pool:
    """At most `size` snapshots; when there are too many, one is dropped where they lie closest, so
    that old ones stay."""

    def __init__(self, run: Run, size: int) -> None:
        self.run, self.size = run, size
        self.hashes: dict[int, str] = {}  # of the members' files, by step, oldest first
        self.retired: dict[int, str] = {}  # of former members that may still be in a slot

    @property
    def folder(self) -> Path:
        return self.run.path / "snapshots"

    @property
    def steps(self) -> list[int]:
        return list(self.hashes)

    @property
    def own(self) -> list[int]:
        """Snapshots of this run. Those of other runs, which it started with, have numbers below
        0."""
        return [step for step in self.hashes if step >= 0]

    def path(self, step: int) -> Path:
        return self.folder / f"{step:012d}.safetensors"

    def add(self, step: int, policies: Mapping[str, ActingPolicy]) -> None:
        """Writes the policies as they are now."""
        tensors = {
            f"{role}/{n}": t.detach().cpu().contiguous()
            for role, p in policies.items()
            for n, t in p.state_dict().items()
        }
        self.folder.mkdir(exist_ok=True)
        partial = self.path(step).with_suffix(".tmp")
        with disk_in_one_sentence(self.path(step)):
            save_file(tensors, partial)
            settle(partial)
        os.replace(partial, self.path(step))
        sync_folder(self.folder)
        self.hashes[step] = self.hash(step)
        if len(self.own) > self.size:
            out = crowded(self.own)
            self.retired[out] = self.hashes.pop(out)

    def forget_retired(self, in_slots: Collection[int]) -> None:
        """Former members that are in no slot any more are never needed again."""
        self.retired = {step: text for step, text in self.retired.items() if step in in_slots}

    def hash(self, step: int) -> str:
        try:
            return hashlib.sha256(regular(self.path(step)).read_bytes()).hexdigest()
        except OSError as error:
            raise LudusError(
                f"the snapshot {self.path(step)} cannot be read ({error}): resume from an older "
                "checkpoint"
            ) from None

    def read(self, step: int) -> dict[str, torch.Tensor]:
        """A snapshot's tensors, after making sure that the file is the one that was written."""
        self.verify(step)
        try:
            return load_file(self.path(step))
        except SafetensorError as error:
            raise LudusError(f"the snapshot {self.path(step)} cannot be read ({error})") from None

    def verify(self, step: int) -> None:
        """Refuses a file that is not the one that was written."""
        if self.hash(step) != (self.hashes | self.retired)[step]:
            raise LudusError(
                f"the snapshot {self.path(step)} is not the file that was written (its hash "
                "differs): resume from an older checkpoint"
            )

    def restore(self, hashes: Mapping[str, str], retired: Mapping[str, str]) -> None:
        """The pool as a checkpoint listed it."""
        self.hashes = {int(step): text for step, text in hashes.items()}
        self.retired = {int(step): text for step, text in retired.items()}


def verify_snapshots(run: Run, league: Mapping[str, Any] | None) -> None:
    """The files that a checkpoint's league refers to are those that were written: also of members
    of the pool that nobody plays now."""
    pool = Pool(run, size=0)
    if league is not None:
        pool.restore(league["snapshots"], league["retired"])
    for step in (*pool.hashes, *pool.retired):
        pool.verify(step)


def remove_unreferenced(run: Run) -> None:
    """Removes the files of snapshots that no checkpoint refers to: neither as a member of the pool
    nor in a slot. All stay where a checkpoint cannot be read, for it may refer to any of them."""
    files = list(run.path.glob("snapshots/*.safetensors"))
    try:
        referenced = checkpoint.snapshots_of(run) if files else set()
    except LudusError:
        return
    for path in files:
        if path.stem.lstrip("-").isdecimal() and int(path.stem) not in referenced:
            path.unlink()


def crowded(steps: Sequence[int]) -> int:
    """The inner step whose neighbours are closest together: the first and the last always stay."""
    return min(
        zip(steps, steps[1:], steps[2:], strict=False), key=lambda three: three[2] - three[0]
    )[1]


def evenly(steps: Sequence[int], count: int) -> list[int]:
    """So many of them, evenly spaced, the first and the last among them."""
    if count >= len(steps):
        return list(steps)
    return [steps[i * (len(steps) - 1) // max(1, count - 1)] for i in range(count)]
