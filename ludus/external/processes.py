"""Worker processes that step foreign envs. Rows live in shared memory; a pipe to each worker
carries one byte per step.

Run as a module this is the worker: it holds its envs, steps them when told, and ends when its pipe
closes, so that no process outlives the trainer. Workers are started as fresh programs: forking a
process with threads is not safe, and multiprocessing would run the caller's main module again.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import select
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.errors import LudusError
from ludus.machine import resident_mb

GO, DONE, FAILED = b"g", b"d", b"f"
SHARED_MEMORY = "/dev/shm"
MOST_WRITTEN = 1 << 20  # bytes at once
MOST_TEXT = 4000  # of an error: a pipe takes it in one piece
START_SECONDS, STEP_SECONDS, CLOSE_SECONDS = 120.0, 60.0, 2.0

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]  # array → (dtype, shape)


class SharedArrays:
    """Named arrays in memory that worker processes can map too. The memory goes when the last
    process that has it ends."""

    def __init__(self, shapes: Shapes, descriptor: int | None = None) -> None:
        sizes = {
            n: int(np.prod(shape)) * np.dtype(dtype).itemsize
            for n, (dtype, shape) in shapes.items()
        }
        total = sum(_aligned(size) for size in sizes.values())
        self.descriptor = _allocate(max(total, 1)) if descriptor is None else descriptor
        descriptor = self.descriptor
        memory = mmap.mmap(descriptor, max(total, 1))
        self.arrays: dict[str, np.ndarray] = {}
        at = 0
        for name, (dtype, shape) in shapes.items():
            self.arrays[name] = np.frombuffer(memory, dtype, int(np.prod(shape)), at).reshape(shape)
            at += _aligned(sizes[name])


def _allocate(size: int) -> int:
    """A file of zeros without a name, in memory where there is room, else in the folder for
    temporary files. Its space is taken now: who writes into a mapped file for which there is none
    is killed by a signal (SIGBUS)."""
    folders = (
        [SHARED_MEMORY, tempfile.gettempdir()]
        if os.path.isdir(SHARED_MEMORY)
        else [tempfile.gettempdir()]
    )
    for folder in folders:
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                for start in range(0, size, MOST_WRITTEN):
                    file.write(bytes(min(MOST_WRITTEN, size - start)))
                file.flush()
                descriptor = os.dup(file.fileno())
        except OSError as error:
            why = f"{folder}: {error.strerror}"
            continue
        if folder != folders[0]:
            print(
                f"ludus: {SHARED_MEMORY} has no room for the {size / 1e6:.1f} MB that env "
                f"processes share: they lie in {folder}, which "
                f"may be slower (containers: docker run --shm-size)",
                file=sys.stderr,
            )
        return descriptor
    raise LudusError(
        f"the {size / 1e6:.1f} MB that env processes share fit neither into "
        f"{' nor into '.join(folders)} ({why}): make room there "
        f"(containers: docker run --shm-size), set TMPDIR to another folder, or lower --envs"
    )


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


class Worker:
    """A process with envs `first` to `last`."""

    def __init__(
        self,
        source: str,
        first: int,
        last: int,
        masked: list[bool],
        shapes: Shapes,
        descriptor: int,
        check_bounds: bool,
    ) -> None:
        self.source, self.first, self.last = source, first, last
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        task = dict(
            source=source,
            first=first,
            last=last,
            masked=masked,
            shapes=shapes,
            memory=descriptor,
            orders=orders,
            answers=answers,
            path=sys.path,
            check_bounds=check_bounds,
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ludus.external.processes", json.dumps(task)],
            pass_fds=(descriptor, orders, answers),
            stdin=subprocess.DEVNULL,
            # Ctrl-C is for the trainer: it stops after the iteration, which needs its envs
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        os.close(orders)
        os.close(answers)

    def order(self) -> None:
        # a process that is gone is noticed when its answer is awaited
        with contextlib.suppress(BrokenPipeError):
            os.write(self.orders, GO)

    def close(self, wait: float) -> None:
        for descriptor in (self.orders, self.answers):
            os.close(descriptor)
        try:
            self.process.wait(wait)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


_running: weakref.WeakSet[Processes] = weakref.WeakSet()


def memory_mb() -> float | None:
    """Resident memory of all workers of this process."""
    workers = [worker for host in list(_running) for worker in host.workers]
    return sum(resident_mb(worker.process.pid) for worker in workers) if workers else None


class Processes:
    """Envs split over workers. Stands in for `Guests`."""

    def __init__(
        self,
        source: str,
        num_envs: int,
        workers: int,
        masked: list[bool],
        shapes: Shapes,
        shared: SharedArrays,
        *,
        check_bounds: bool = True,
        start_seconds: float = START_SECONDS,
        step_seconds: float = STEP_SECONDS,
    ) -> None:
        self.source, self.arrays, self.step_seconds = source, shared.arrays, step_seconds
        ends = [num_envs * (k + 1) // workers for k in range(workers)]
        self.workers: list[Worker] = []
        try:
            for first, last in zip([0, *ends], ends, strict=False):
                self.workers.append(
                    Worker(source, first, last, masked, shapes, shared.descriptor, check_bounds)
                )
            self._await(start_seconds, "start")
            _running.add(self)
        except BaseException:
            self.close(0.0)
            raise

    def step(self) -> None:
        for worker in self.workers:
            worker.order()
        try:
            self._await(self.step_seconds, "step")
        except LudusError:
            self.close(0.0)  # what the others did is lost with the step
            raise

    def _await(self, seconds: float, what: str) -> None:
        """Waits for every worker's answer, at most so long."""
        waiting = {worker.answers: worker for worker in self.workers}
        deadline = time.monotonic() + seconds
        while waiting:
            readable, _, _ = select.select(
                list(waiting), [], [], max(0.0, deadline - time.monotonic())
            )
            if not readable:
                raise LudusError(
                    f"{self._where(next(iter(waiting.values())))} gave no answer for {seconds:.0f} "
                    f"s in its {what}: it hangs, or is too slow"
                )
            for descriptor in readable:
                worker = waiting.pop(descriptor)
                answer = os.read(descriptor, 1 + MOST_TEXT)
                if answer[:1] == FAILED:
                    raise LudusError(answer[1:].decode(errors="replace"))
                if answer != DONE:
                    status = worker.process.wait()
                    how = (
                        f"was killed by signal {-status}"
                        if status < 0
                        else f"ended with status {status}"
                    )
                    raise LudusError(
                        f"the process of {self._where(worker)} {how} in its {what}: the env crashed"
                    )

    def _where(self, worker: Worker) -> str:
        """The env that a worker was busy with, and its step."""
        env = int(self.arrays["busy_with"][worker.first])
        return (
            f"env {env} of {self.source} (step "
            f"{int(self.arrays['episode_length'][env].max()) + 1} of its episode)"
        )

    def close(self, wait: float = CLOSE_SECONDS) -> None:
        workers, self.workers = self.workers, []
        for worker in workers:
            worker.close(wait)


def main(text: str) -> None:
    """The worker."""
    task: dict[str, Any] = json.loads(text)
    sys.path[:] = task["path"]
    from ludus.external.guests import Guests, make_env
    from ludus.external.layout import codecs_of

    def answer(message: bytes) -> None:
        os.write(task["answers"], message[: 1 + MOST_TEXT])

    shared = SharedArrays(task["shapes"], task["memory"])
    guests: Guests | None = None
    try:
        env = make_env(task["source"])
        codecs = codecs_of(env, task["masked"])
        guests = Guests(
            task["source"],
            task["first"],
            task["last"],
            codecs,
            shared.arrays,
            env,
            check_bounds=task["check_bounds"],
        )
        answer(DONE)
        while os.read(task["orders"], 1):
            guests.step()
            shared.arrays["worker_cpu"][task["first"]] = time.process_time()
            answer(DONE)
    except BrokenPipeError:
        pass  # the trainer is gone
    except BaseException as error:
        text = (
            str(error)
            if isinstance(error, LudusError)
            else f"{task['source']}: {type(error).__name__}: {error}"
        )
        with contextlib.suppress(BrokenPipeError):
            answer(FAILED + text.encode())
    finally:
        if guests is not None:
            guests.close()


if __name__ == "__main__":
    main(sys.argv[1])
