"""A batch of envs of one game on one device: step, reset, parameters, bots, statistics, state in
and out.

Axes: arrays are [env, …] or [env, agent, …]. On the CPU they are numpy arrays, on CUDA torch
tensors; `tensor` gives a torch tensor on the same memory either way.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ludus.errors import LudusError, nearest
from ludus.machine import fitting, free_memory
from ludus.sim.episode import FROZEN
from ludus.sim.game import Game, Settings
from ludus.sim.interpret import FORWARD, interpreter
from ludus.sim.layout import LINEUPS, STATISTICS, Layout
from ludus.sim.link import fingerprint
from ludus.sim.program import Program, assemble, assemble_setup, controllers
from ludus.sim.watched import watched

if TYPE_CHECKING:
    import torch

# Not part of an env's state: the same for every batch of the same settings.
_CONSTANT = ("term_applies", "binary_mask_at", "choice_mask_at", "choice_options")


class Batch:
    """`num_envs` envs of a game, stepped together.

    seed, first_env: an env's randomness depends on the seed and its number, so a batch split in two
    gives the same games. stagger: the first episode of each env is cut (truncated) at a random
    length, so that envs are out of step from then on. jit=False: everything runs as plain Python,
    for a debugger (also LUDUS_JIT=0). checked: every index is checked, compiled (with a choice of
    lane order) or not; slow, for tests.
    """

    def __init__(
        self,
        game: Game,
        num_envs: int,
        *,
        device: str = "cpu",
        seed: int = 0,
        overrides: Mapping[str, float] | None = None,
        preset: str | None = None,
        threads: int = 1,
        first_env: int = 0,
        stagger: bool = False,
        jit: bool | None = None,
        checked: bool = False,
        lane_order: int = FORWARD,
    ) -> None:
        if num_envs < 1:
            raise LudusError(f"a batch of {num_envs} envs cannot be made: use at least 1")
        if seed < 0:
            raise LudusError(f"seed {seed} is negative: use 0 or more")
        if threads < 1:
            raise LudusError(f"{threads} threads cannot run anything: use at least 1")
        self.game = game
        self.num_envs = num_envs
        self.device = device
        self.threads = threads
        self.jit = os.environ.get("LUDUS_JIT", "1") != "0" if jit is None else jit
        self.settings: Settings = game.resolve(overrides, preset)
        self.layout = Layout(game, self.settings)
        self.controllers = controllers(game)
        self._program = assemble(game)
        _require_memory(
            self.layout, num_envs, _free_of_gpu() if device == "cuda" else free_memory()
        )
        with fitting(f"{num_envs:,} envs of {game.name}", "use fewer (--envs)"):
            self.arrays: dict[str, Any] = {
                name: self._zeros(self.layout.shape(name, num_envs), field.dtype)
                for name, field in self.layout.arrays.items()
            }
        self._views = self._named_views(self.arrays)

        self._fill("seed", np.full(num_envs, seed))
        self._fill("env_id", np.arange(first_env, first_env + num_envs))
        self._fill("episode", np.full(num_envs, -1))  # the first reset row makes it 0
        self._fill("term_applies", self.layout.applies())
        self._fill("binary_mask_at", np.array(self.layout.binary_mask_at))
        self._fill("choice_mask_at", np.array(self.layout.choice_mask_at))
        self._fill("choice_options", np.array([len(o) for o in self.layout.choices.values()]))
        if stagger:
            self._fill("first_length", self._staggered(seed, first_env))
        self.set_params(
            {**self.settings.params, **{f"reward.{t}": w for t, w in self.settings.weights.items()}}
        )
        if game.setup:
            self._set_up(checked)
        self._step = self._make_step(checked, lane_order)
        self.reset()

    # -- stepping ----------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of every env, with the actions now in `continuous`, `binary` and `choices`.
        Finished envs reset instead."""
        self._step()

    def reset(self) -> None:
        """Starts a new episode in every env."""
        self.arrays["finished"][...] = True
        self.step()

    def restart(self) -> None:
        """Starts over at the first episodes, with what was set since: parameters, controllers,
        lineups."""
        self._fill("episode", np.full(self.num_envs, -1))
        self.reset()

    def _set_up(self, checked: bool) -> None:
        """Fills the shared fields, on the CPU whatever the device: it happens once."""
        for name in ("float_params", "int_params"):
            self.arrays[name][...] = self.arrays[f"{name}_next"]
        program = assemble_setup(self.game)
        first = {
            n: self.numpy(n) if f.shared else self.numpy(n)[:1].copy()
            for n, f in self.layout.arrays.items()
        }
        values = {**self.layout.sizes, **first, **self._named_views(first)}
        # filling banks of maps uncompiled takes minutes
        if self.jit or (checked and os.environ.get("LUDUS_JIT", "1") != "0"):
            from ludus.sim import compile as compiler

            run = compiler.compile_cpu(self.layout, program, first, 1, 1, checked, FORWARD)
            if checked:
                run = self._located(run, program, FORWARD, first, values, 1)
            run()
        else:
            interpreter(program)(0, 1, watched(self.game.name, values) if checked else values)
        for name, field in self.layout.arrays.items():
            if field.shared and name in self.game.state:
                self._fill(name, first[name])

    def _make_step(self, checked: bool, lane_order: int) -> Any:
        program = self._program
        values: dict[str, Any] = {**self.layout.sizes, **self.arrays, **self._views}
        if not self.jit:
            if self.device == "cuda":
                raise LudusError("device cuda cannot run with the JIT off: use device cpu")
            run = interpreter(program, lane_order)
            if checked:
                values = watched(self.game.name, values)
            return lambda: run(0, self.num_envs, values)
        from ludus.sim import compile as compiler

        if self.device == "cuda":
            return compiler.compile_cuda(program, self.layout.sizes, values, self.num_envs)
        step = compiler.compile_cpu(
            self.layout, program, self.arrays, self.num_envs, self.threads, checked, lane_order
        )
        return (
            self._located(step, program, lane_order, self.arrays, values, self.num_envs)
            if checked
            else step
        )

    def _located(
        self,
        run: Callable[[], None],
        program: Program,
        lane_order: int,
        arrays: Mapping[str, np.ndarray],
        values: Mapping[str, Any],
        num_envs: int,
    ) -> Callable[[], None]:
        """`run`, where compiled code that finds an index out of range, and cannot say which, is run
        again uncompiled."""

        def located() -> None:
            before = {name: array.copy() for name, array in arrays.items()}
            try:
                run()
            except IndexError:
                for name, array in before.items():
                    arrays[name][...] = array
                interpreter(program, lane_order)(0, num_envs, watched(self.game.name, values))
                raise

        return located

    # -- arrays ------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        """An array by name: state, engine field, parameter, `action_NAME`, `term_NAME` …"""
        if name in self.arrays:
            return self.arrays[name]
        if name in self._views:
            return self._views[name]
        raise LudusError(
            f"the game {self.game.name} has no field '{name}': "
            f"{nearest(name, [*self.arrays, *self._views])}"
        )

    def tensor(self, name: str) -> torch.Tensor:
        """The same memory as a torch tensor."""
        import torch

        array = self[name]
        return array if isinstance(array, torch.Tensor) else torch.from_numpy(array)

    def numpy(self, name: str) -> np.ndarray:
        """A copy on the host."""
        return _host(self[name]).copy()

    def _named_views(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Parts of packed arrays under their own names."""
        views = {}
        for name, slot in self.layout.slots.items():
            packed = arrays[slot.packed]
            views[name] = (
                packed[..., slot.start]
                if slot.size is None
                else packed[..., slot.start : slot.start + slot.size]
            )
        return views

    def _zeros(self, shape: tuple[int, ...], dtype: str) -> Any:
        if self.device == "cpu":
            return np.zeros(shape, dtype)
        import torch

        return torch.zeros(shape, dtype=getattr(torch, dtype), device=self.device)

    def _fill(self, name: str, values: Any) -> None:
        target = self[name]
        values = np.asarray(values)
        if tuple(values.shape) != tuple(target.shape):
            raise LudusError(
                f"'{name}' has the shape {tuple(target.shape)} but was given {tuple(values.shape)}"
            )
        if isinstance(target, np.ndarray):
            target[...] = values
        else:
            import torch

            target.copy_(torch.from_numpy(np.ascontiguousarray(values)).to(target.dtype))

    def _staggered(self, seed: int, first_env: int) -> np.ndarray:
        """First-episode lengths, spread evenly up to the longest episode and dealt out by a hash of
        the env's number.

        A game with a parameter `stagger_least` keeps first episodes at least that long: long enough
        to earn something.
        """
        from ludus.sim import random

        with np.errstate(over="ignore"):
            shares = [
                float(random.uniform(random.key(seed, first_env + e, 0, 0), 9000, 0))
                for e in range(self.num_envs)
            ]
        longest = self.settings.params["max_steps"]
        least = min(self.settings.params.get("stagger_least", 0), longest)
        return np.ceil(least + np.array(shares) * (longest - least)).clip(1).astype(np.int32)

    # -- parameters --------------------------------------------------------------------------------

    def set_params(self, values: Mapping[str, Any], envs: Any = slice(None)) -> None:
        """New values (one, or one per env) of parameters and `reward.TERM` weights: each env takes
        them in its next reset row."""
        for name, value in values.items():
            limits = self.game.params.get(name)
            if limits is not None:
                packed, index = (
                    self.layout.slots[name].packed + "_next",
                    self.layout.slots[name].start,
                )
                lowest, highest = float(np.min(_host(value))), float(np.max(_host(value)))
                if lowest < limits.low or highest > limits.high:
                    raise LudusError(
                        f"parameter {name}={value} is outside {limits.low} to {limits.high}"
                    )
            elif name.removeprefix("reward.") in self.layout.terms:
                packed, index = (
                    "weights_next",
                    self.layout.terms.index(name.removeprefix("reward.")),
                )
            else:
                known = [*self.game.params, *(f"reward.{t}" for t in self.layout.terms)]
                raise LudusError(
                    f"the game {self.game.name} has no parameter '{name}': {nearest(name, known)}"
                )
            if self.device != "cpu" and isinstance(value, np.ndarray):
                import torch

                value = torch.from_numpy(value).to(self.device)
            self.arrays[packed][envs, index] = value

    def score_tasks(self, goal: str, roles: Sequence[str]) -> None:
        """Which goal metric of whose agents is the score of an episode's task."""
        scored = np.zeros(self.layout.num_agents, bool)
        for seats in self.layout.seats:
            scored[seats.agents] = seats.role in roles
        self._fill("task_goal", np.array([self.layout.goals.index(goal)]))
        self._fill("task_scored", scored)

    def set_tasks(self, numbers: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        """The number of the task that each env plays next, and its values of parameters and
        `reward.TERM` weights."""
        self._fill("task_next", numbers)
        self.set_params(values)

    def read_task_results(self) -> np.ndarray:
        """[envs, (task before the next one, the next one), (episodes, sum of scores)] since the
        last call."""
        results = self.numpy("task_results").astype(np.float64)
        self.arrays["task_results"][...] = 0
        return results

    def received(self) -> dict[str, Any]:
        """The game as the simulator holds it now: sizes, parameters and weights read back from its
        arrays.

        A value that differs between envs is given as {"low", "high"}.
        """

        def summary(column: np.ndarray) -> Any:
            low, high = column.min().item(), column.max().item()
            return low if low == high else {"low": low, "high": high}

        floats, ints, weights = (
            _host(self.arrays[n]) for n in ("float_params", "int_params", "weights")
        )
        params = {n: summary(floats[:, i]) for i, n in enumerate(self.layout.float_params)}
        params |= {n: summary(ints[:, i]) for i, n in enumerate(self.layout.int_params)}
        return {
            "game": self.game.name,
            "sizes": dict(self.settings.sizes),
            "params": {n: params[n] for n in self.game.params},
            "rewards": {n: summary(weights[:, i]) for i, n in enumerate(self.layout.terms)},
        }

    def held(self, name: str) -> np.ndarray:
        """[envs]: what every env holds now of a parameter or a `reward.TERM` weight."""
        if name in self.game.params:
            slot = self.layout.slots[name]
            return _host(self.arrays[slot.packed][:, slot.start]).astype(np.float32)
        return _host(
            self.arrays["weights"][:, self.layout.terms.index(name.removeprefix("reward."))]
        )

    def check_received(self, varied: Mapping[str, np.ndarray] | None = None) -> None:
        """Raises if the simulator does not hold the values this batch was made with, or those that
        each env was given since."""
        weights = {f"reward.{t}": w for t, w in self.settings.weights.items()}
        asked: dict[str, Any] = {**self.settings.params, **weights, **(varied or {})}
        wrong = []
        for name, value in asked.items():
            held = self.held(name)
            differ = np.flatnonzero(held != np.broadcast_to(np.float32(value), held.shape))
            if len(differ):
                found, wanted = (
                    held[differ[0]],
                    np.broadcast_to(np.float32(value), held.shape)[differ[0]],
                )
                where = (
                    f" in {len(differ)} of {self.num_envs} envs"
                    if len(differ) < self.num_envs
                    else ""
                )
                wrong.append(f"{name} is {found!s} instead of {wanted!s}{where}")
        if wrong:
            raise LudusError(
                f"the simulator of {self.game.name} does not hold what was asked for: "
                f"{'; '.join(wrong)}"
            )

    def fingerprint(self) -> str:
        """A hash of the game as received: rules, layouts, sizes, parameters, weights."""
        rules = fingerprint([phase.function for phase in (*self._program.phases, *self.game.setup)])
        text = json.dumps([rules, self.layout.describe(), self.received()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    # -- bots --------------------------------------------------------------------------------------

    def controller_number(self, role: str, name: str) -> int:
        """The value of `controller` for a bot of a role ('' or 'policy': actions come from
        outside)."""
        if name in ("", "policy"):
            return 0
        if role not in self.controllers:
            raise LudusError(
                f"the game {self.game.name} has no role '{role}': {nearest(role, self.controllers)}"
            )
        if name not in self.controllers[role]:
            raise LudusError(
                f"the role {role} of {self.game.name} has no bot '{name}': "
                f"{nearest(name, self.controllers[role])}"
            )
        return self.controllers[role][name]

    def set_controller(
        self, role: str, name: str, envs: Any = slice(None), team: int | None = None
    ) -> None:
        """Hands the agents of a role (of one team) to a bot, or back to the policy, from each env's
        next reset row on."""
        number = self.controller_number(role, name)
        seats = next(s for s in self.layout.seats if s.role == role)
        agents = (
            seats.agents
            if team is None
            else slice(seats.start + team * seats.count, seats.start + (team + 1) * seats.count)
        )
        self.arrays["controller_next"][envs, agents] = number

    def set_lineups(
        self, controllers: np.ndarray, weights: np.ndarray, frozen_share: float | None = None
    ) -> None:
        """Who plays: `controllers` [lineups, agents] with relative `weights`. Every env draws one
        in each reset row from now on.

        Where a slot is open, `frozen_share` of the games are against frozen opponents (default: as
        the weights say); elsewhere none. Without any lineup, controllers are as `set_controller`
        left them.
        """
        count = len(weights)
        if count > LINEUPS:
            raise LudusError(
                f"{count} lineups are more than the {LINEUPS} a batch can draw from: use fewer "
                "opponents in the mix"
            )
        table = np.zeros((LINEUPS, self.layout.num_agents), np.int16)
        until = np.ones((2, LINEUPS), np.float32)
        if count:
            table[:count] = controllers
            frozen = np.where((controllers == FROZEN).any(1), weights, 0.0)
            live = weights - frozen
            if live.sum() <= 0:
                raise LudusError(
                    "every lineup has a frozen opponent: add self or a bot, for envs whose slot is "
                    "being refilled"
                )
            share = frozen.sum() / weights.sum() if frozen_share is None else frozen_share
            alone = live / live.sum()
            both = (1.0 - share) * alone + share * frozen / frozen.sum() if frozen.any() else alone
            until[:, :count] = np.cumsum([alone, both], axis=1)
        self._fill("lineup_controller", table)
        self._fill("lineup_until", until)
        self._fill("num_lineups", np.array([count]))

    def set_stage(self, number: int) -> None:
        """Episodes that began before count in no statistic from now on."""
        self._fill("current_stage", np.array([number]))

    def read_lineup_results(self, blocks: Sequence[slice]) -> np.ndarray:
        """[blocks of envs, lineups, (episodes, won, drawn, lost)] of the learning side, since the
        last call."""
        array = self.arrays["lineup_results"]
        results = np.zeros((len(blocks), *array.shape[1:]), np.float32)
        for k, block in enumerate(blocks):
            results[k] = _host(array[block].sum(0))
        array[...] = 0
        return results

    # -- statistics --------------------------------------------------------------------------------

    def read_statistics(self) -> dict[str, dict[str, float]]:
        """Per role, over the episodes finished since the last call: count, return, length,
        outcomes, terms, goal metrics."""
        array = self.arrays["statistics"]
        out: dict[str, dict[str, float]] = {}
        names = [
            *STATISTICS,
            *(f"term/{t}" for t in self.layout.terms),
            *(f"goal/{g}" for g in self.layout.goals),
        ]
        for seats in self.layout.seats:
            rows = array[:, seats.agents].reshape(-1, array.shape[-1])
            rows = rows[rows[:, 0] > 0]
            rows = rows.double() if hasattr(rows, "double") else rows.astype(np.float64)
            if not len(rows):
                out[seats.role] = {"episodes": 0.0}
                continue
            sums = dict(zip(names, rows.sum(0).tolist(), strict=True))
            episodes = sums.pop("episodes")
            mean = {name: value / episodes for name, value in sums.items()}
            spread = mean.pop("return_squared") - mean["return"] ** 2
            out[seats.role] = {
                "episodes": episodes,
                **mean,
                "return_std": max(0.0, spread) ** 0.5,
                "return_min": float(rows[:, STATISTICS.index("return_min")].min()),
                "return_max": float(rows[:, STATISTICS.index("return_max")].max()),
            }
        array[...] = 0
        return out

    def read_valid_steps(self) -> int:
        """Agent-steps since the last call. Reset rows, dead and idle agents do not count."""
        array = self.arrays["valid_steps"]
        count = int(array.sum())
        array[...] = 0
        return count

    def read_spent(self) -> tuple[float, float, float]:
        """Seconds of resets and of waiting, and CPU time elsewhere: a compiled game resets within a
        step, and waits for nobody."""
        return 0.0, 0.0, 0.0

    # -- the whole state ---------------------------------------------------------------------------

    def state(self, *, setup: bool = True) -> dict[str, np.ndarray]:
        """Everything the simulator holds, as copies on the host. setup=False: without what setup
        filled, such as a bank of maps: it never changes, and a batch of the same settings and seed
        has the same."""
        left_out = {*_CONSTANT, *(() if setup else self._of_setup())}
        return {name: self.numpy(name) for name in self.arrays if name not in left_out}

    def _of_setup(self) -> list[str]:
        return [name for name, field in self.game.state.items() if field.shared]

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues exactly from `state()` of a batch of the same game and sizes; without what
        setup filled, also of the same seed."""
        wanted = [name for name in self.arrays if name not in _CONSTANT]
        missing, foreign = (
            sorted(set(wanted) - set(state) - set(self._of_setup())),
            sorted(set(state) - set(wanted)),
        )
        if missing or foreign:
            raise LudusError(
                f"this is not a state of {self.game.name}: missing {missing or 'nothing'}, unknown "
                f"{foreign or 'nothing'}"
            )
        for name in state:
            self._fill(name, state[name])

    def resume_state(self, state: Mapping[str, np.ndarray], seed: int) -> bool:
        """Goes on from `state()`: True, since the episodes go on as well."""
        self.load_state(state)
        return True


def _host(value: Any) -> np.ndarray:
    return np.asarray(value.cpu() if hasattr(value, "cpu") else value)


def _free_of_gpu() -> int:
    try:
        import torch
    except ImportError:
        raise LudusError("device cuda needs torch: pip install torch") from None
    if not torch.cuda.is_available():
        raise LudusError(
            "device cuda was asked for but torch finds no CUDA GPU on this machine: use --device "
            "cpu"
        )
    return int(torch.cuda.mem_get_info()[0])


def _require_memory(layout: Layout, num_envs: int, free: int | None) -> None:
    """Refuses at once: on the CPU, what does not fit is given out all the same, and the system
    kills the process that uses it."""
    need = layout.bytes_per_env() * num_envs
    if free is not None and need > free:
        fits = free // layout.bytes_per_env()
        raise LudusError(
            f"{num_envs:,} envs of {layout.game.name} need {need / 1e9:.1f} GB but "
            f"{free / 1e9:.1f} GB are free: set --envs to at most "
            f"{fits:,}"
        )
