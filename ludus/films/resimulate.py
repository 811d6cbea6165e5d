"""Replays played again. Nothing in a file is trusted: its settings must pass the game's own limits,
its tensors must have the shapes of the game, and its keyframes are never loaded into the simulator
(compiled rules do not check their indices).

An env's start follows from its seed, number and episode, so the episode is simulated from there
with the recorded actions. The recorded rewards tell whether that is what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ludus.errors import LudusError
from ludus.films.film import MOST_BYTES, Camera, Film, plain
from ludus.films.instrumented import Minds
from ludus.films.shows import Show, Shows
from ludus.games.own_bots import with_bots
from ludus.play.replay import Replay
from ludus.sim import Batch
from ludus.sim.layout import Layout

MOST_STEPS = 100_000
MOST_STATE = 512 * 2**20  # bytes of the simulator, shared arrays included
ACTIONS = ("continuous", "binary", "choices")


class Script:
    """A replay file that was checked against its game: who acted how, from which start."""

    def __init__(
        self,
        replay: Replay,
        shows: Shows,
        make: Callable[[Show, Mapping[str, float]], Batch] | None = None,
    ) -> None:
        """`make` gives the batch it is played in: one that nobody else uses, or a new one."""
        self.where = replay.path.name
        header = replay.header
        self.source = self._text(header, "source", str(header.get("game")))
        self.show = shows.find(self.source)
        self.about = {name: header.get(name) for name in ("step", "against", "role", "label")}
        self.step = (
            header["step"]
            if isinstance(header.get("step"), int) and 0 <= header["step"] < 2**53
            else None
        )
        self.overrides = self._overrides(header)
        self.fingerprint = header.get("fingerprint")
        self.own_bots = self._own_bots(header)
        self.batch = self._batch(make or make_batch)
        self._check_tensors(replay)

    def _fault(self, what: str) -> LudusError:
        return LudusError(f"{self.where} is damaged: {what}")

    def _text(self, header: Mapping[str, Any], name: str, default: str) -> str:
        value = header.get(name, default)
        if not isinstance(value, str):
            raise self._fault(f"its {name} is {type(value).__name__}, not text")
        return value

    def _own_bots(self, header: Mapping[str, Any]) -> dict[int, str]:
        """Number → import path of the bots that the game does not have. Their code is not needed:
        what they did is recorded."""
        table = header.get("own_bots", {})
        if not isinstance(table, dict) or not all(isinstance(v, int) for v in table.values()):
            raise self._fault("its own_bots are not a table of numbers")
        return {number: path[:80] for path, number in table.items()}

    def _overrides(self, header: Mapping[str, Any]) -> dict[str, float]:
        values: dict[str, float] = {}
        for part, prefix in (("sizes", ""), ("params", ""), ("weights", "reward.")):
            table = header.get(part)
            if not isinstance(table, dict) or not all(_is_number(v) for v in table.values()):
                raise self._fault(f"its {part} are not a table of numbers")
            values |= {prefix + name: value for name, value in table.items()}
        return values

    def _batch(self, make: Callable[[Show, Mapping[str, float]], Batch]) -> Batch:
        settings = self.show.game.resolve(self.overrides)
        layout = Layout(self.show.game, settings)
        need = sum(
            int(np.prod(layout.shape(n, 1), dtype=float)) * np.dtype(f.dtype).itemsize
            for n, f in layout.arrays.items()
        )
        if need > MOST_STATE:
            raise self._fault(
                f"its sizes need {need / 2**20:,.0f} MB, more than the {MOST_STATE // 2**20} MB a "
                "replay may"
            )
        return make(self.show, self.overrides)

    def _check_tensors(self, replay: Replay) -> None:
        tensors, layout = replay.tensors, self.batch.layout
        self.steps = len(replay)
        if not 1 <= self.steps <= MOST_STEPS:
            raise self._fault(
                f"it has {self.steps} steps, between 1 and {MOST_STEPS:,} are possible"
            )
        recorded = replay.header.get("layout")
        if not isinstance(recorded, dict) or recorded.get("action") != plain(
            layout.describe()["action"]
        ):
            raise LudusError(
                f"{self.where} was recorded with other actions than {self.show.game.name} has now: "
                "it cannot be shown"
            )
        for name in ("continuous", "binary", "choices", "reward"):
            wanted = (self.steps, *layout.shape(name, 1)[1:])
            if tensors[name].shape != wanted:
                raise self._fault(
                    f"'{name}' has the shape {tensors[name].shape} instead of {wanted}"
                )
            if tensors[name].dtype.name != layout.arrays[name].dtype:
                raise self._fault(
                    f"'{name}' holds {tensors[name].dtype.name} instead of "
                    f"{layout.arrays[name].dtype}"
                )
        self.actions = {name: tensors[name] for name in ACTIONS}
        if not np.isfinite(self.actions["continuous"]).all():
            raise self._fault("an action is not a finite number")
        options = np.array([len(o) for o in layout.choices.values()], np.int32)
        if ((self.actions["choices"] < 0) | (self.actions["choices"] >= options)).any():
            raise self._fault("an action is none of its options")
        self.reward = tensors["reward"]
        self.seed = self._start(tensors, "seed", 0, 2**63 - 1)
        self.env_id = self._start(tensors, "env_id", 0, 2**31 - 1)
        self.episode = self._start(tensors, "episode", 0, 2**31 - 2)
        self.controllers = self._who_played(tensors)

    def _start(self, tensors: Mapping[str, np.ndarray], name: str, low: int, high: int) -> int:
        found = tensors.get(f"keyframe/{name}")
        if found is None or found.ndim != 1 or not len(found) or found.dtype.kind not in "iu":
            raise self._fault(f"its first keyframe has no {name}")
        value = int(found[0])
        if not low <= value <= high:
            raise self._fault(f"its {name} is {value}")
        return value

    def _who_played(self, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
        """[agents]: 0 a policy, above a bot; what is neither counts as a policy."""
        agents = self.batch.layout.num_agents
        found = tensors.get("keyframe/controller")
        if (
            found is None
            or found.dtype.kind not in "iu"
            or found.ndim != 2
            or found.shape[1] != agents
            or not len(found)
        ):
            raise self._fault("its first keyframe does not say who played")
        out = np.array(found[0], np.int32)
        for seats in self.batch.layout.seats:
            known = [*self.batch.controllers[seats.role].values(), *self.own_bots]
            out[seats.agents] = np.where(np.isin(out[seats.agents], known), out[seats.agents], 0)
        return out

    # -- playing -----------------------------------------------------------------------------------

    def begin(self) -> Batch:
        """The batch at the start of the episode, before its first step."""
        start_episode(self.batch, self.seed, self.env_id, self.episode)
        return self.batch

    def do(self, step: int) -> None:
        """One recorded step."""
        for name, values in self.actions.items():
            self.batch.arrays[name][0] = values[step]
        self.batch.step()

    def film(self, policies: Mapping[str, Any] | None = None, note: str = "") -> Film:
        """Every frame, with what the policies would have thought, and the step from which rewards
        differ, if they do."""
        batch = self.begin()
        minds = Minds(policies, batch) if policies else None
        played = players(batch, self.controllers, own_bots=self.own_bots)
        header = {"kind": "replay", "replay": self.about, "players": played, "thinks": note}
        film = Film(
            Camera(self.show, batch),
            header,
            range(batch.layout.num_agents) if self.show.seen else (),
        )
        differs: int | None = None

        def think() -> dict[str, np.ndarray]:
            if minds is None:
                return {}
            minds.act()
            return minds.thoughts(self.controllers == 0)

        film.shoot(think)
        for step in range(self.steps):
            self.do(step)
            film.shoot(think)
            if differs is None and not np.array_equal(
                batch["reward"][0], self.reward[step], equal_nan=True
            ):
                differs = step + 1
            if film.bytes > MOST_BYTES:
                raise LudusError(f"{self.where} is too long to show: {self.steps:,} steps")
            if bool(batch["finished"][0]):
                break
        film.header["differs"] = differs
        return film


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e30


def make_batch(
    show: Show,
    overrides: Mapping[str, float],
    preset: str | None = None,
    seed: int = 0,
    bots: Sequence[str] = (),
) -> Batch:
    """`bots`: import paths of bots that the game has beside its own."""
    game = with_bots(show.game, bots)
    return Batch(game, 1, overrides=overrides, preset=preset, seed=seed)


def start_episode(batch: Batch, seed: int, env_id: int, episode: int) -> None:
    batch.arrays["seed"][0] = seed
    batch.arrays["env_id"][0] = env_id
    batch.arrays["episode"][0] = episode - 1
    batch.arrays["controller_next"][0] = 0  # everyone does what is written
    batch.arrays["num_lineups"][0] = 0
    for name in ACTIONS:
        batch.arrays[name][0] = 0  # nobody has acted yet
    batch.reset()


def players(
    batch: Batch,
    controllers: np.ndarray,
    human: int | None = None,
    own_bots: Mapping[int, str] | None = None,
) -> list[str]:
    """Who plays each agent, in words. `own_bots`: number → name of those that a replay has and the
    batch has not."""
    names = {
        s.role: {
            **(own_bots or {}),
            **{number: name for name, number in batch.controllers[s.role].items()},
        }
        for s in batch.layout.seats
    }
    out = []
    for seats in batch.layout.seats:
        for agent in range(seats.start, seats.stop):
            number = int(controllers[agent])
            bot = names[seats.role].get(number)
            out.append(
                "you" if agent == human else f"bot:{bot}" if number > 0 and bot else "policy"
            )
    return out
