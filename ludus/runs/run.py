"""The run folder: everything a run is, on disk. Logs are appended; checkpoints remember how long
they were."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ludus import __version__
from ludus.config import Config, check_types, flatten, unflatten
from ludus.errors import LudusError, disk_in_one_sentence, nearest, reason
from ludus.files import read_json, read_lines, regular, write_atomically
from ludus.runs import trust
from ludus.runs.sinks import Sink, TensorBoard

LOGS = ("metrics.jsonl", "diagnostics.jsonl", "episodes.csv", "matches.jsonl")


ENDED, ENDS = "ended.json", ("finished", "stopped", "crashed")
ON_REQUEST = "on request"  # why a run stopped that a signal asked to
BY_CALLBACK = "by the callback "  # and one that the user's own code stopped: its name, and why


def versions() -> dict[str, str]:
    """What a result can depend on: the manifest and the config keep it."""
    libraries = {name: importlib.metadata.version(name) for name in ("torch", "numpy", "numba")}
    return {
        "ludus": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        **libraries,
    }


def default_name(game: str) -> str:
    return f"{game.replace(':', '-').replace('/', '-')}-{time.strftime('%Y%m%d-%H%M%S')}"


def split_reference(reference: str) -> tuple[Path, str | None]:
    """RUN, RUN@STEP or RUN@best as folder and mark."""
    path, at, mark = reference.rpartition("@")
    if not at or Path(reference).exists():  # a folder's name may have an @ of its own
        return Path(reference), None
    return Path(path), mark or None


def is_locked(folder: Path) -> bool:
    """Does a process train this run, or make it?"""
    import fcntl

    try:
        with open(regular(folder / "lock")) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


class Run:
    """A run folder that exists, or a new and empty one."""

    def __init__(self, path: Path | str, *, new: bool = False) -> None:
        self.path = Path(path)
        if new:
            self.path.mkdir(parents=True)
        elif not (self.path / "config.json").is_file():
            runs = (
                [p.parent.name for p in self.path.parent.glob("*/config.json")]
                if self.path.parent.exists()
                else []
            )
            raise LudusError(f"there is no run at {self.path}: {nearest(self.path.name, runs)}")
        self._tensorboard: TensorBoard | None = None
        self.sinks: list[Sink] = []  # get every line of metrics.jsonl too
        self._files: dict[str, Any] = {}
        self._hashes: dict[str, Any] = {}  # of everything that was ever written to a log
        self._lock: Any = None

    def lock(self) -> None:
        """Refuses to work on a run that another process is training. The lock goes with the
        process."""
        import fcntl

        if not os.access(self.path, os.W_OK):
            raise LudusError(
                f"{self.path} may not be written to, and training writes into the run's folder: "
                f"`ludus fork {self.path}` makes a new run"
            )
        with disk_in_one_sentence(self.path / "lock"):
            path = regular(self.path / "lock")
            self._lock = open(path, "w")  # noqa: SIM115 (held until it is closed)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LudusError(
                f"{self.path} is being trained by another process: wait for it, or stop it first"
            ) from None

    @property
    def locked(self) -> bool:
        """Does a process train it?"""
        return is_locked(self.path)

    # -- how it ended ------------------------------------------------------------------------------

    def note_end(self, state: str, reason: str = "") -> None:
        """finished (its budget is spent), stopped (someone asked for it, or the doctor) or
        crashed."""
        write_atomically(self.path / ENDED, json.dumps({"state": state, "reason": reason}))

    def forget_end(self) -> None:
        """It goes on."""
        (self.path / ENDED).unlink(missing_ok=True)

    def state(self) -> tuple[str, str]:
        """training, finished, stopped or crashed, and why. Who is killed notes no end."""
        if self.locked:
            return "training", ""
        if not (self.path / ENDED).exists():
            return (
                "crashed",
                "its process ended without a word: it was killed, or the machine went down",
            )
        ended = self.read_json(ENDED)
        if not isinstance(ended, dict) or ended.get("state") not in ENDS:
            raise LudusError(
                f"{self.path / ENDED} does not say how the run ended ({', '.join(ENDS)}): remove it"
            )
        return str(ended["state"]), str(ended.get("reason", ""))

    @staticmethod
    def refuse_existing(path: Path) -> None:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise LudusError(
                f"{path} exists already: a run is never overwritten; choose another --run, or "
                f"`ludus resume {path}`"
            )

    # -- what it is --------------------------------------------------------------------------------

    def read_json(self, name: str) -> Any:
        try:
            return read_json(self.path / name)
        except (OSError, ValueError) as error:  # also of bytes that are no text
            raise LudusError(f"{self.path / name} cannot be read: {reason(error)}") from None

    def stored(self) -> dict[str, Any]:
        """config.json as it is: the values of the configuration, where each came from, and more
        about the run."""
        data = self.read_json("config.json")
        if not isinstance(data, dict) or not all(
            isinstance(data.get(part), dict) for part in ("values", "origins")
        ):
            raise LudusError(
                f"{self.path / 'config.json'} holds no configuration: it is damaged, or from "
                "another program"
            )
        return data

    def settings(self) -> Config:
        """The configuration as data, with nothing of the user's own imported: whoever plays or
        learns asks for `config` instead."""
        return self._config_of(self.stored())

    def config(self, plays: bool = True) -> Config:
        """The configuration of a run whose code may be loaded, which executes it. `plays`: the game
        too, not only the network."""
        data = self.stored()
        read = self._config_of(data)
        trust.require(self.path, read, data.get("made_here"), plays)
        trust.refuse_links(self.path)
        own = trust.own_code(read)
        if not own:
            return read
        try:
            config = unflatten(data["values"])
            check_types(config)
        except LudusError as error:
            raise LudusError(
                f"{self.path} cannot be read with {', '.join(own)} as it is now: {error}"
            ) from None
        return config

    def _config_of(self, data: Mapping[str, Any]) -> Config:
        where = self.path / "config.json"
        if any(name.startswith("learn.") for name in data["values"]):  # PPO's section, once
            raise LudusError(
                f"{where} is of an older version of Ludus, whose runs this one cannot read: train "
                "again, or use the version that made it"
            )
        try:
            config = unflatten(data["values"], own_code=False)
            check_types(config)
        except (LudusError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise LudusError(
                f"{where} is of another version of Ludus, or changed by hand: {error}"
            ) from None
        return config

    def write_config(
        self, config: Config, origins: Mapping[str, str], extra: Mapping[str, Any] | None = None
    ) -> None:
        data = {
            "values": flatten(config),
            "origins": dict(origins),
            "versions": versions(),
            **(extra or {}),
        }
        data["made_here"] = trust.mark(config)
        write_atomically(self.path / "config.json", json.dumps(data, indent=1))

    def metrics(self) -> list[dict[str, Any]]:
        """Every complete line of metrics.jsonl."""
        return read_lines(self.path / "metrics.jsonl")

    # -- logs --------------------------------------------------------------------------------------

    def append(self, log: str, text: str) -> None:
        data = text.encode()
        with disk_in_one_sentence(self.path / log):
            if log not in self._files:
                self._hashes.setdefault(log, self._hash_of(log))
                self._files[log] = open(self.path / log, "ab")  # noqa: SIM115 (closed in close)
            self._files[log].write(data)
            self._files[log].flush()  # whoever looks at the run sees whole lines at once
        self._hashes[log].update(data)

    def _hash_of(self, log: str) -> Any:
        """Of what the log holds now."""
        path = self.path / log
        if not path.exists():
            return hashlib.sha256()
        with open(regular(path), "rb") as file:
            return hashlib.file_digest(file, "sha256")

    def append_json(self, log: str, record: Mapping[str, Any]) -> None:
        line = {k: _plain(v) for k, v in record.items()}
        self.append(log, json.dumps(line) + "\n")
        if log == "metrics.jsonl":
            for sink in self.sinks:
                sink.write(line, int(record["progress/agent_steps"]))

    def tensorboard(self, record: Mapping[str, Any], step: int) -> None:
        self._events().write(record, step)

    def _events(self, purge_step: int | None = None) -> TensorBoard:
        if self._tensorboard is None:
            self._tensorboard = TensorBoard(self.path, purge_step)
        return self._tensorboard

    def flush(self) -> None:
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        for sink in self._all_sinks():
            sink.flush()

    def _all_sinks(self) -> list[Sink]:
        return [*self.sinks, *([self._tensorboard] if self._tensorboard is not None else [])]

    def close(self) -> None:
        try:
            self.flush()
            for file in self._files.values():
                file.close()
        finally:  # a disk that is full must not keep the run locked
            self._files.clear()
            if self._lock is not None:
                self._lock.close()
                self._lock = None
        for sink in self._all_sinks():
            sink.close()
        self.sinks, self._tensorboard = [], None

    def log_marks(self) -> dict[str, dict[str, Any]]:
        """How long each log is now, and the hash of all of it."""
        marks = {}
        for log in LOGS:
            path = self.path / log
            if path.exists():
                digest = self._hashes.setdefault(log, self._hash_of(log))
                marks[log] = {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}
        return marks

    def check_logs(self, marks: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuses logs that do not begin with what was written up to a checkpoint."""
        for log, mark in marks.items():
            path = self.path / log
            with contextlib.suppress(OSError), open(regular(path), "rb") as file:
                digest = hashlib.sha256(file.read(mark["bytes"]))
                if file.tell() == mark["bytes"] and digest.hexdigest() == mark["sha256"]:
                    self._hashes[log] = digest
                    continue
            raise LudusError(
                f"{path} is not what was written up to the checkpoint (lines are missing or "
                "changed): resume an older checkpoint, "
                f"RUN@STEP, or start a new run from this one with `ludus fork`"
            )

    def cut_back(
        self, marks: Mapping[str, Mapping[str, Any]], step: int, tensorboard: bool
    ) -> None:
        """Logs as they were at a checkpoint; what came after goes to discarded/."""
        for log in LOGS:
            path, keep = self.path / log, marks.get(log, {"bytes": 0})["bytes"]
            if not path.exists() or path.stat().st_size <= keep:
                continue
            folder = self.path / "discarded"
            folder.mkdir(exist_ok=True)
            with open(path, "r+b") as file:
                file.seek(keep)
                with open(folder / f"{step}-{log}", "ab") as tail:
                    tail.write(file.read())
                file.truncate(keep)
                os.fsync(file.fileno())
        if tensorboard:
            self._events(purge_step=step + 1)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value


def remove(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
