"""A batch of envs of another library, with the same arrays and the same episode semantics as
`ludus.sim.Batch`.

Envs run in this process, or in worker processes where that is faster; the results are the same.
"""

from __future__ import annotations

import hashlib
import json
import time
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ludus import machine
from ludus.config.handed_over import HERE
from ludus.errors import LudusError, nearest
from ludus.external import pictures
from ludus.external.codec import Codec
from ludus.external.gate import Gate
from ludus.external.guests import (
    Guests,
    can_film,
    close_quietly,
    gives_masks,
    invite,
    make_env,
    roles_of,
)
from ludus.external.layout import ForeignGame, ForeignLayout, codecs_of
from ludus.external.processes import Processes, Shapes, SharedArrays, memory_mb
from ludus.external.remote import RemoteHost
from ludus.external.roles import roles_by_name
from ludus.machine import fitting
from ludus.sim.episode import RANDOM
from ludus.sim.game import Role

if TYPE_CHECKING:
    import torch

# What a step of worker processes costs beyond the steps of their envs: waking them and hearing from
# them.
EXCHANGE_SECONDS = 3e-4
WORTH_IT = 1.3  # how much faster workers must promise to be
DEFAULT_STEP_SECONDS = 0.1  # of a step when it is looked at, where the env does not say
PROBE_STEPS, PROBE_SECONDS = 200, 0.05
_measured: dict[str, float] = {}  # seconds of a step, by source: every evaluation makes a batch

machine.measured_elsewhere["memory/workers_mb"] = memory_mb


class ForeignBatch:
    """`num_envs` envs of a source (`ludus.external.guests`). `workers`: processes; 0: none; None:
    whatever is faster.

    `longest`: steps after which an episode is cut. A policy may play on for ever in an env that has
    no limit of its own. `filmed`: the first so many envs can be asked for pictures
    (`arrays["picture_wanted"]`), where they can draw themselves. `check_bounds`: an observation
    outside of its space is an error.
    """

    def __init__(
        self,
        source: str,
        num_envs: int,
        *,
        seed: int = 0,
        device: str = "cpu",
        workers: int | None = None,
        longest: int | None = None,
        filmed: int = 0,
        check_bounds: bool = True,
        **limits: float,
    ) -> None:
        if device != "cpu":
            raise LudusError(f"{source} is no compiled game and runs on the CPU: use --device cpu")
        self.source, self.num_envs, self.device, self.seed, self.longest = (
            source,
            num_envs,
            device,
            seed,
            longest,
        )
        self.filmed, self.can_draw, self.seconds_per_step = (
            min(filmed, num_envs),
            False,
            DEFAULT_STEP_SECONDS,
        )
        self.check_bounds = check_bounds
        self.layout: ForeignLayout
        self.arrays: dict[str, np.ndarray]
        self.host: Guests | Processes | RemoteHost
        with fitting(f"{num_envs:,} envs of {source}", "use fewer (--envs)"):
            if source.startswith("remote:"):
                self._reach(source.removeprefix("remote:"), limits)
            else:
                self._make(workers, limits)
        weakref.finalize(self, self.host.close)
        self.game = ForeignGame(source, [Role(s.role, s.count) for s in self.layout.seats])
        self.controllers = {s.role: {"random": RANDOM} for s in self.layout.seats}
        self._add_bookkeeping()
        self.step()

    def _make(self, workers: int | None, limits: Mapping[str, float]) -> None:
        """Envs in this process, or in workers."""
        env = make_env(self.source)
        masked = gives_masks(self.source, env, int(self._seeds()[0]))
        codecs = codecs_of(env, masked)
        self.layout = ForeignLayout(self.source, roles_of(env), codecs)
        if self.source.startswith(HERE):
            workers = 0  # no other process has it
        if workers is None:
            if self.source not in _measured:
                _measured[self.source] = step_seconds(self.source, self.layout, codecs, env)
            workers = choose_workers(_measured[self.source], self.num_envs)
        self.can_draw = can_film(self.source, env)
        self.filmed = self.filmed if self.can_draw else 0
        self.seconds_per_step = 1 / (pictures.frames_per_second(env) or 1 / DEFAULT_STEP_SECONDS)
        shapes = self.layout.shapes(self.num_envs, self.filmed)
        if workers:
            close_quietly(env)
            shared = SharedArrays(shapes)
            self.arrays = shared.arrays
            self.host = Processes(
                self.source,
                self.num_envs,
                workers,
                masked,
                shapes,
                shared,
                check_bounds=self.check_bounds,
                **limits,
            )
        else:
            self.arrays = zeros(shapes)
            self.host = Guests(
                self.source,
                0,
                self.num_envs,
                codecs,
                self.arrays,
                env,
                check_bounds=self.check_bounds,
            )

    def _reach(self, address: str, limits: Mapping[str, float]) -> None:
        """Envs elsewhere."""
        gate = Gate.at(address)
        hello = gate.layout()
        self.filmed = 0
        self.layout = ForeignLayout(
            self.source, roles_by_name(hello.agents), [hello] * len(hello.agents)
        )
        self.arrays = zeros(self.layout.shapes(self.num_envs))
        self.host = RemoteHost(gate, self.num_envs, self.arrays, seed=self.seed, **limits)

    def _add_bookkeeping(self) -> None:
        envs, rows = self.num_envs, (self.num_envs, self.layout.num_agents)
        self.arrays |= {
            "valid": np.zeros(rows, bool),
            "was_alive": np.zeros(rows, bool),
            "agent_terminated": np.zeros(rows, bool),
            "agent_truncated": np.zeros(rows, bool),
            "episode_return": np.zeros(rows, np.float32),
            "term_totals": np.zeros((*rows, 1), np.float32),
            "outcome": np.zeros(rows, np.int8),
            "goals": np.zeros((*rows, 0), np.float32),
            "finished": np.ones(envs, bool),
            "counted": np.zeros(envs, bool),
        }
        self.arrays["action_mask"][...] = True
        if self.filmed:
            self.arrays["picture_wanted"][...] = True  # of the start of the first episode
        self.arrays["seeds"][...] = self._seeds()
        self._episodes: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._valid_steps = 0
        self._worker_cpu = 0.0

    def _seeds(self) -> np.ndarray:
        return (self.seed * 1_000_003 % 2**31 + np.arange(self.num_envs)) % 2**31

    # -- stepping ----------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of every env. A finished one starts its next episode instead, and ignores its
        action."""
        a = self.arrays
        a["resetting"][...] = a["finished"]
        going = ~a["finished"][:, None]
        a["was_alive"][...] = a["alive"] & going
        deciding = a["was_alive"] & ~a["idle"]
        for name in ("reward", "terminated", "truncated", "lost"):
            a[name][...] = 0
        if a["finished"].any():
            for name in ("episode_return", "episode_length"):
                a[name][a["finished"]] = 0
        self.host.step()
        if self.longest is not None:
            late = going & a["alive"] & (a["episode_length"] + 1 >= self.longest)
            a["truncated"][late], a["alive"][late] = True, False
        a["seeds"][a["resetting"]] = -1  # later episodes go on with the env's own randomness
        was = a["was_alive"]
        np.logical_and(deciding, ~a["lost"][:, None], out=a["valid"])
        np.logical_and(a["terminated"], was, out=a["agent_terminated"])
        np.logical_and(a["truncated"] & ~a["terminated"], was, out=a["agent_truncated"])
        a["episode_return"] += a["reward"] * was
        a["episode_length"] += was
        a["term_totals"][..., 0] = a["episode_return"]
        np.logical_not(a["alive"].any(1), out=a["finished"])
        a["counted"][...] = a["finished"] & was.any(1) & ~a["lost"]
        self._valid_steps += int(a["valid"].sum())
        if a["counted"].any():
            over = a["counted"]
            self._episodes.append(
                (a["episode_return"][over], a["episode_length"][over], a["agent_truncated"][over])
            )

    # -- what the trainer asks of a batch ----------------------------------------------------------

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def tensor(self, name: str) -> torch.Tensor:
        import torch

        return torch.from_numpy(self.arrays[name])

    def numpy(self, name: str) -> np.ndarray:
        return self.arrays[name].copy()

    def set_controller(
        self, role: str, name: str, envs: Any = slice(None), team: int | None = None
    ) -> None:
        if name not in ("", "policy", "random"):
            raise LudusError(f"{self.source} has no bot '{name}': there is random")
        if role not in self.controllers:
            raise LudusError(
                f"{self.source} has no role '{role}': {nearest(role, self.controllers)}"
            )
        seats = next(s for s in self.layout.seats if s.role == role)
        self.arrays["controller"][envs, seats.agents] = RANDOM if name == "random" else 0

    def read_statistics(self) -> dict[str, dict[str, float]]:
        episodes, self._episodes = self._episodes, []
        if not episodes:
            return {s.role: {"episodes": 0.0} for s in self.layout.seats}
        columns = [np.concatenate(column) for column in zip(*episodes, strict=True)]
        out = {}
        for seats in self.layout.seats:
            returns, lengths, cut = (
                column[:, seats.agents].astype(float).ravel() for column in columns
            )
            out[seats.role] = {
                "episodes": float(len(returns)),
                "return": returns.mean(),
                "return_std": returns.std(),
                "return_min": returns.min(),
                "return_max": returns.max(),
                "length": lengths.mean(),
                "won": 0.0,
                "lost": 0.0,
                "drawn": 1 - cut.mean(),
                "truncated": cut.mean(),
                "term/reward": returns.mean(),
            }
        return out

    def read_valid_steps(self) -> int:
        count, self._valid_steps = self._valid_steps, 0
        return count

    def read_spent(self) -> tuple[float, float, float]:
        """Since the last call: seconds of training that went into resets and into waiting for envs
        elsewhere, and CPU time that worker processes used (so that waiting for those is
        simulating)."""
        resets, used = (
            float(self.arrays["reset_seconds"].sum()),
            float(self.arrays["worker_cpu"].sum()),
        )
        workers = int(np.count_nonzero(self.arrays["worker_cpu"]))
        self.arrays["reset_seconds"][...] = 0.0
        used, self._worker_cpu = used - self._worker_cpu, used
        waited = 0.0
        if isinstance(self.host, RemoteHost):
            waited, self.host.waited = self.host.waited, 0.0
        return resets / max(1, workers), waited, used

    def received(self) -> dict[str, Any]:
        """As a game's; and the spaces, so that a run's policy can act without an env."""
        return {
            "game": self.source,
            "sizes": {},
            "params": {},
            "rewards": {},
            "spaces": self.layout.spaces,
        }

    def check_received(self, varied: Mapping[str, Any] | None = None) -> None:
        """Nothing is handed to a foreign env, so nothing can be lost on the way."""

    def fingerprint(self) -> str:
        return hashlib.sha256(
            json.dumps([self.source, self.layout.describe()]).encode()
        ).hexdigest()[:16]

    def state(self) -> dict[str, np.ndarray]:
        """What is shown now. The envs themselves cannot be saved: after a resume their episodes
        start again."""
        shown = ("observation", "action_mask", *(f"seen_{name}" for name in self.layout.seen))
        return {name: self.arrays[name].copy() for name in shown}

    def resume_state(self, state: Mapping[str, np.ndarray], seed: int) -> bool:
        """Cuts the episodes that were open: what they showed last is shown again, as their final
        observation, and the next step starts others, from this seed."""
        for name, values in state.items():
            self.arrays[name][...] = values
        self.seed = seed
        self.arrays["seeds"][...] = self._seeds()
        self.arrays["finished"][:] = True
        if isinstance(self.host, RemoteHost):
            self.host.seed = seed
        return False


def zeros(shapes: Shapes) -> dict[str, np.ndarray]:
    return {name: np.zeros(shape, dtype) for name, (dtype, shape) in shapes.items()}


def step_seconds(source: str, layout: ForeignLayout, codecs: list[Codec], env: Any) -> float:
    """Seconds of a step with random actions, resets included. (Its first episode in the batch is
    seeded anew.)"""
    arrays = zeros(layout.shapes(1))
    arrays["controller"][...], arrays["action_mask"][...], arrays["resetting"][...] = (
        RANDOM,
        True,
        True,
    )
    guest = invite(source, env, 0, codecs, arrays)
    begin, steps = time.perf_counter(), 0
    while steps < PROBE_STEPS and time.perf_counter() - begin < PROBE_SECONDS:
        guest.advance(bool(arrays["resetting"][0]))
        arrays["resetting"][...] = not arrays["alive"].any()
        steps += 1
    return (time.perf_counter() - begin) / steps


def choose_workers(seconds: float, num_envs: int) -> int:
    """Processes to step `num_envs` envs with, each step taking so long; 0 where one process alone
    is about as fast."""
    workers = min(machine.cores(), num_envs)
    alone, shared = seconds * num_envs, EXCHANGE_SECONDS + seconds * -(-num_envs // max(1, workers))
    return workers if workers > 1 and alone > WORTH_IT * shared else 0
