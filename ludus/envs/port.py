"""What the outside sees of a batch of a Ludus game: Gymnasium spaces, and values in them.

`at` is an index of agents: (envs, agents), each a number, a slice or an array; values have the
shape of that index. What a game shows as bytes (a camera, a map around the agent) is part of the
observation, which is then a Dict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from ludus.errors import LudusError
from ludus.games import load_game
from ludus.games.own_bots import with_bots
from ludus.sim import Batch
from ludus.sim.conformance import OBSERVATION_LIMIT, try_rules
from ludus.who import own_bots

NUMBERS = "numbers"  # the key of the named entries in a Dict observation


def make_batch(
    game: str,
    num_envs: int,
    preset: str | None = None,
    values: Mapping[str, float] | None = None,
    opponent: str | Mapping[str, str] = "",
) -> Batch:
    """A batch of "NAME", "NAME:PRESET" or "package.module:GAME" with some sizes, parameters and
    reward.TERM weights changed. `opponent`: who will play in it, maybe a bot of the user's own."""
    found, of_name = load_game(game)
    bots = own_bots([opponent] if isinstance(opponent, str) else opponent.values())
    if bots:
        found = with_bots(found, bots)
        try_rules(found, values, preset or of_name)
    return Batch(found, num_envs, preset=preset or of_name, overrides=values)


class Port:
    """Reads observations from a batch and writes actions into it.

    box_action: one Box for every action entry, for libraries that know no mixed actions: a key is
    pressed above 0, the options of a choice share [-1, 1] in equal parts.
    """

    def __init__(self, batch: Batch, *, box_action: bool = False) -> None:
        self.batch, self.box_action = batch, box_action
        layout = batch.layout
        self.seen = {name: f"seen_{name}" for name in layout.seen}
        self.options = np.array([len(o) for o in layout.choices.values()], np.int32)
        self.masked = layout.sizes["num_masked"] > 0
        self.observation_space = self._observation_space()
        self.action_space = self._action_space()

    def _observation_space(self) -> spaces.Space:
        numbers = spaces.Box(
            -OBSERVATION_LIMIT, OBSERVATION_LIMIT, (len(self.batch.layout.observation),), np.float32
        )
        if not self.seen:
            return numbers
        boxes = {
            key: spaces.Box(0, 255, self.batch[field].shape[2:], np.uint8)
            for key, field in self.seen.items()
        }
        return spaces.Dict({NUMBERS: numbers, **boxes})

    def _action_space(self) -> spaces.Space:
        layout = self.batch.layout
        continuous, binary = len(layout.continuous), len(layout.binary)
        if self.box_action:
            return spaces.Box(-1.0, 1.0, (continuous + binary + len(self.options),), np.float32)
        kinds: dict[str, spaces.Space] = {}
        if continuous:
            kinds["continuous"] = spaces.Box(-1.0, 1.0, (continuous,), np.float32)
        if binary:
            kinds["binary"] = spaces.MultiBinary(binary)
        if len(self.options) == 1 and not kinds:
            return spaces.Discrete(int(self.options[0]))
        if len(self.options):
            kinds["choices"] = spaces.MultiDiscrete(self.options)
        return next(iter(kinds.values())) if len(kinds) == 1 else spaces.Dict(kinds)

    # -- values ------------------------------------------------------------------------------------

    def observation(self, at: Any) -> Any:
        numbers = self.batch["observation"][at].copy()
        if not self.seen:
            return numbers
        return {
            NUMBERS: numbers,
            **{key: self.batch[field][at].copy() for key, field in self.seen.items()},
        }

    def mask(self, at: Any) -> np.ndarray:
        """What is allowed now: an entry for every masked key and every option of a masked choice,
        as 0 or 1."""
        return self.batch["action_mask"][at].astype(np.int8)

    def goals(self, at: Any) -> dict[str, Any]:
        """What success means in this game, as `goal_NAME`; at the end of an episode, its
        outcome."""
        return {
            f"goal_{name}": self.batch[f"goal_{name}"][at].copy()
            for name in self.batch.layout.goals
        }

    def act(self, at: Any, action: Any) -> None:
        """Writes an action of `action_space`, or a batch of them in the shape of `at`."""
        if self.box_action:
            action = self._from_box(np.asarray(action, np.float32))
        elif not isinstance(self.action_space, spaces.Dict):
            kind = (
                "continuous"
                if self.batch.layout.continuous
                else "binary"
                if self.batch.layout.binary
                else "choices"
            )
            action = {kind: action}
        for kind, value in action.items():
            target = self.batch[kind]
            value = np.asarray(value)
            self._refuse(kind, value)
            target[at] = value.reshape(target[at].shape)

    def _from_box(self, action: np.ndarray) -> dict[str, np.ndarray]:
        layout = self.batch.layout
        self._refuse("continuous", action)
        keys_at = len(layout.continuous)
        choices_at = keys_at + len(layout.binary)
        share = (action[..., choices_at:].clip(-1, 1) + 1) / 2
        parts = {
            "continuous": action[..., :keys_at],
            "binary": action[..., keys_at:choices_at] > 0,
            "choices": np.minimum((share * self.options).astype(np.int32), self.options - 1),
        }
        return {kind: part for kind, part in parts.items() if part.shape[-1]}

    def _refuse(self, kind: str, value: np.ndarray) -> None:
        """The rules trust their actions: what is not in the space stops here."""
        if kind == "continuous" and not np.isfinite(value).all():
            raise LudusError(
                f"the action {value.ravel()[~np.isfinite(value.ravel())][0]} is not a number "
                "between -1 and 1"
            )
        if kind == "choices":
            options = (
                self.options
                if value.ndim and value.shape[-1] == len(self.options)
                else self.options[0]
            )
            wrong = (value < 0) | (value >= options)
            if wrong.any():
                raise LudusError(
                    f"the choice {value[wrong].flat[0]} is not there: options are numbered from 0 "
                    f"to {np.max(options) - 1}"
                )


class Restarts:
    """Starts new episodes in some envs at once, while the others stay where they are.

    Inside, a finished env resets in the next step of the whole batch; the conventions outside want
    it before. A batch of one env does it: an env goes in, is reset, and comes back.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._one: Batch | None = None

    def __call__(self, envs: np.ndarray) -> None:
        batch = self.batch
        if self._one is None:
            values = {**batch.settings.sizes, **batch.settings.params}
            values |= {f"reward.{name}": weight for name, weight in batch.settings.weights.items()}
            self._one = Batch(batch.game, 1, overrides=values, jit=batch.jit)
            self._own = [name for name, field in batch.layout.arrays.items() if not field.shared]
        for env in envs:
            for name in self._own:
                self._one.arrays[name][0] = batch.arrays[name][env]
            self._one.reset()
            for name in self._own:
                batch.arrays[name][env] = self._one.arrays[name][0]


def seed_envs(batch: Batch, seeds: Any) -> None:
    """Every env as the first of its own seed, before its first episode: what follows depends on
    nothing that was."""
    seeds = np.asarray(seeds, np.int64)
    if (seeds < 0).any():
        raise LudusError(f"seed {seeds.min()} is negative: use 0 or more")
    batch["seed"][...] = seeds
    batch["env_id"][...] = 0
    batch["episode"][...] = -1


def fresh_seed() -> int:
    """For whoever resets without a seed."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def own_agents(batch: Batch, role: str | None, count: int) -> np.ndarray:
    """The first `count` agents of a role's first team (default: of the game's first role)."""
    role = role or batch.layout.seats[0].role
    batch.controller_number(role, "random")  # refuses a role that is not there
    seats = next(s for s in batch.layout.seats if s.role == role)
    if not 1 <= count <= seats.count:
        raise LudusError(
            f"agents={count} cannot be: the role {role} of {batch.game.name} has 1 to "
            f"{seats.count} in a team"
        )
    return np.arange(seats.start, seats.start + count)
