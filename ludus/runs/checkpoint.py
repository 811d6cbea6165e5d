"""Checkpoints: everything needed to go on bit for bit. Weights, optimizer and simulator as
safetensors, the rest as JSON.

The manifest is the commit point: a folder without one is not a checkpoint. It holds the sizes and
hashes of the other files and of the logs up to here, the configuration, the named layouts, and a
hash of itself, so that nothing is ever read wrongly.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file

from ludus.errors import LudusError, reason
from ludus.files import read_json, regular, settle, sync_folder, write_atomically
from ludus.imports import is_path
from ludus.runs.budget import BUDGETS
from ludus.runs.run import Run, remove, split_reference

FORMAT = 2
STEP_DIGITS = 12  # of a checkpoint's folder
PARTS = ("policy", "optimizer", "state")  # each a file of tensors


def folder(run: Run, step: int) -> Path:
    return run.path / "checkpoints" / f"{step:0{STEP_DIGITS}d}"


def steps(run: Run) -> list[int]:
    """Steps of all complete checkpoints, oldest first."""
    names = (p.parent.name for p in run.path.glob("checkpoints/*/manifest.json"))
    return sorted(
        int(name)
        for name in names
        if name.isascii() and name.isdigit() and len(name) == STEP_DIGITS
    )


def save(
    run: Run,
    step: int,
    tensors: Mapping[str, Mapping[str, torch.Tensor]],
    manifest: Mapping[str, Any],
) -> None:
    """Writes a checkpoint. Logs are flushed first; if the disk is full, everything saved before
    stays as it was."""
    path = folder(run, step)
    try:
        run.flush()
        path.mkdir(parents=True, exist_ok=True)
        # a file that is safe in a folder that is not is lost with it
        for above in (path.parent, run.path):
            sync_folder(above)
        files = {}
        for part in PARTS:
            name = f"{part}.safetensors"
            data = {k: v.detach().cpu().contiguous() for k, v in tensors[part].items()}
            save_file(data, path / name)
            settle(path / name)
            with open(path / name, "rb") as file:
                files[name] = {
                    "bytes": os.fstat(file.fileno()).st_size,
                    "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
                }
        sync_folder(path)
        whole = {
            "format": FORMAT,
            "step": step,
            "files": files,
            "logs": run.log_marks(),
            "config": run.stored()["values"],
            "game_json": game_hash(run),
            **manifest,
        }
        write_atomically(path / "manifest.json", json.dumps(sealed(whole), indent=1))
    except (OSError, SafetensorError) as error:
        if not (path / "manifest.json").exists():
            remove([path])
        raise LudusError(
            f"the checkpoint at {path} could not be written ({reason(error)}): earlier checkpoints "
            "are intact; put that right, or free space, and resume"
        ) from None


def prune(run: Run, keep: int, always: set[int]) -> None:
    """Drops old checkpoints."""
    complete = steps(run)
    wanted = {*complete[-keep:], *complete[:1], *always}
    for step in complete:
        if step not in wanted:
            # first: what is left of the folder is not a checkpoint
            (folder(run, step) / "manifest.json").unlink()
            remove([folder(run, step)])


def snapshots_of(run: Run) -> set[int]:
    """The snapshots that any complete checkpoint refers to."""
    leagues = (read_manifest(run, step).get("league") for step in steps(run))
    return {
        int(snapshot)
        for league in leagues
        if league
        for snapshot in (*league["snapshots"], *league["retired"])
    }


def find(run: Run, mark: str | None) -> int:
    """The step a mark means: None (newest), 'best', or a number."""
    complete = steps(run)
    if not complete:
        raise LudusError(
            f"{run.path} has no complete checkpoint: the run ended before its first one was written"
        )
    if mark is None:
        return complete[-1]
    if mark == "best":
        best = read_manifest(run, complete[-1])["progress"]["best"]
        if not best:
            raise LudusError(
                f"{run.path} has no best checkpoint yet: nothing was evaluated; leave @best out"
            )
        if best["step"] not in complete:
            raise LudusError(
                f"the best checkpoint of {run.path}, @{best['step']}, is gone: use "
                f"@{complete[-1]}, the newest"
            )
        return int(best["step"])
    if not mark.isdecimal() or int(mark) not in complete:
        near = min(complete, key=lambda s: abs(s - int(mark))) if mark.isdecimal() else complete[-1]
        raise LudusError(
            f"{run.path} has no checkpoint @{mark}: the nearest is @{near} (there are "
            f"{len(complete)})"
        )
    return int(mark)


def read_manifest(run: Run, step: int) -> dict[str, Any]:
    path = folder(run, step) / "manifest.json"
    try:
        manifest = read_json(path)
    except (OSError, ValueError) as error:
        raise LudusError(
            f"{path} cannot be read ({reason(error)}): {_alternative(run, step)}"
        ) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else "none"
        raise LudusError(
            f"{path} has the checkpoint format {str(found)[:40]}, and this version of Ludus reads "
            f"{FORMAT}: use the version that "
            f"wrote it"
        )
    if manifest.pop("sha256", None) != hash_of(manifest) or manifest["step"] != step:
        raise LudusError(
            f"{path} is not what was written (its hash differs): {_alternative(run, step)}"
        )
    return manifest


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """With the hash of all the rest, which tells a damaged manifest."""
    plain = json.loads(json.dumps(manifest))
    return {"sha256": hash_of(plain), **plain}


def hash_of(values: Mapping[str, Any]) -> str:
    """Of plain data, however it is laid out in a file."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def game_hash(run: Run) -> str:
    """Of game.json: a policy acts by what it says of spaces."""
    return hash_of(run.read_json("game.json")) if (run.path / "game.json").exists() else ""


def refuse_changed_settings(run: Run, manifest: Mapping[str, Any]) -> None:
    """The same weights compute something else under other settings. Only budgets may change; keys
    may join in a newer version."""
    now, step = run.stored()["values"], manifest["step"]
    for name, value in manifest["config"].items():
        if name not in BUDGETS and (name not in now or now[name] != value):
            raise LudusError(
                f"{run.path / 'config.json'} was changed: {name} is {str(now.get(name))[:80]} "
                f"there, and the checkpoint @{step} was "
                f"made with {str(value)[:80]}: put that back (`ludus fork` makes a new run with "
                "other settings)"
            )
    if game_hash(run) != manifest["game_json"]:
        raise LudusError(
            f"{run.path / 'game.json'} is not what was written when the run began: put back the "
            "file of then"
        )


class Checkpoint:
    """A complete checkpoint. Each of its files is read and hashed once, however often it is asked
    for."""

    def __init__(self, run: Run, step: int) -> None:
        self.run, self.step = run, step
        self.manifest = read_manifest(run, step)
        self.where = f"{run.path}@{step}"
        self._tensors: dict[str, dict[str, torch.Tensor]] = {}
        refuse_changed_settings(run, self.manifest)

    def verify(self) -> None:
        """Its files are all there and whole, and the logs begin as they were."""
        for part in PARTS:
            self.tensors(part)
        self.run.check_logs(self.manifest["logs"])

    def tensors(self, part: str) -> dict[str, torch.Tensor]:
        """Of policy, optimizer or state, after making sure that the file is the one that was
        written."""
        if part not in self._tensors:
            self._tensors[part] = self._read(f"{part}.safetensors")
        return self._tensors[part]

    def _read(self, name: str) -> dict[str, torch.Tensor]:
        path, expected = folder(self.run, self.step) / name, self.manifest["files"][name]
        try:
            size = regular(path).stat().st_size
            if size != expected["bytes"]:
                raise LudusError(
                    f"{path} is {size:,} bytes instead of {expected['bytes']:,}: it was cut off or "
                    f"replaced; {_alternative(self.run, self.step)}"
                )
            data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() != expected["sha256"]:
                raise LudusError(
                    f"{path} is not the file that was written (its hash differs); "
                    f"{_alternative(self.run, self.step)}"
                )
            return dict(sorted(load(data).items()))
        except (OSError, SafetensorError) as error:
            raise LudusError(
                f"{path} cannot be read ({reason(error)}): {_alternative(self.run, self.step)}"
            ) from None


def find_checkpoint(reference: str | Path) -> Checkpoint:
    """Of RUN (its newest), RUN@STEP or RUN@best."""
    path, mark = split_reference(str(reference))
    run = Run(path)
    return Checkpoint(run, find(run, mark))


def _alternative(run: Run, step: int) -> str:
    older = [s for s in steps(run) if s < step]
    return (
        f"an older checkpoint is there: {run.path}@{older[-1]}"
        if older
        else "there is no older checkpoint"
    )


def split(tensors: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    """Those whose names begin with `prefix/`, without it."""
    return {
        name.removeprefix(prefix + "/"): t
        for name, t in tensors.items()
        if name.startswith(prefix + "/")
    }


# -- optimizer state without pickle ----------------------------------------------------------------


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Adam's moments by position of the parameter."""
    state = optimizer.state_dict()["state"]
    return {
        f"{i}/{name}": torch.as_tensor(value)
        for i, values in state.items()
        for name, value in values.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]) -> None:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split("/")
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict(
        {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
    )


# -- layouts ---------------------------------------------------------------------------------------


def fit_layout(
    tensors: dict[str, torch.Tensor],
    saved: Mapping[str, Any],
    now: Mapping[str, Any],
    where: str,
    network: str,
) -> dict[str, torch.Tensor]:
    """Weights for today's layout from weights of the saved one: the same entries in another order
    are moved by name, in a network of ours."""
    for part in ("action", "actions_by_role"):
        if saved.get(part) != now.get(part):
            raise LudusError(
                f"{where} was trained with other actions ({saved.get(part)}) than the game has now "
                f"({now.get(part)})"
            )
    before, after = list(saved["observation"]), list(now["observation"])
    if before == after:
        return tensors
    lost, new = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    if lost or new:
        raise LudusError(
            f"{where} was trained with other observations: it expects {lost[:5] or 'no more'} and "
            f"does not know {new[:5] or 'any new'}"
        )
    inputs_now = tensors["observation_norm.mean"].shape[0]
    order = torch.tensor(
        [before.index(name) for name in after] + list(range(len(after), inputs_now))
    )
    moved = dict(tensors)
    inputs = [
        n
        for n in tensors
        if n.endswith(("actor.network.encoder.0.weight", "critic.network.encoder.0.weight"))
    ]
    if not inputs or is_path(network):
        raise LudusError(
            f"{where} has its observation in another order, which only the first layer of the "
            "standard network can follow: train again from the start"
        )
    for name in inputs:
        moved[name] = tensors[name][:, order]
    for name in ("observation_norm.mean", "observation_norm.var"):
        moved[name] = tensors[name][order]
    return moved


def as_tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Numpy arrays as tensors; unsigned 64-bit ones travel as signed."""
    return {
        n: torch.from_numpy(a.view(np.int64) if a.dtype == np.uint64 else np.ascontiguousarray(a))
        for n, a in arrays.items()
    }


def as_arrays(
    tensors: Mapping[str, torch.Tensor], like: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    return {
        n: t.numpy().view(like[n].dtype) if n in like and like[n].dtype == np.uint64 else t.numpy()
        for n, t in tensors.items()
    }
