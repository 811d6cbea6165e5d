"""Envs of other libraries, one by one: how they are made, and how a step of each fills its row of
the batch's arrays.

A source is "gym:ID", "pettingzoo:MODULE" (its `parallel_env`) or "env:MODULE:FUNCTION" (a function
of yours that returns a Gymnasium env or a PettingZoo parallel env; `handed_over` has those that
cannot be imported). Nothing here needs torch: worker processes import it.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import reprlib
import sys
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ludus.config.handed_over import HERE, maker_of
from ludus.errors import FAULTS, LudusError
from ludus.external import pictures
from ludus.external.codec import MASKED_KEYS, Codec
from ludus.external.faults import told
from ludus.external.roles import roles_by_name, why_unusable
from ludus.imports import import_object
from ludus.sim.episode import RANDOM


def make_env(source: str, film: bool = False) -> Any:
    """One env; or a LudusError that says why there is none. `film`: one that draws itself, of those
    that can (`can_film`)."""
    kind, _, name = source.partition(":")
    options: dict[str, Any] = {"render_mode": pictures.MODE} if film else {}
    try:
        if kind == "gym":
            return _gym_env(name, options)
        if kind == "pettingzoo":
            return _parallel_env(name, options)
        function = _function_of(source)
        made = function(**(options if _takes_render_mode(function) else {}))
    except LudusError:
        raise
    except FAULTS as error:
        raise LudusError(
            f"{source} cannot be made: {type(error).__name__}: {told(error)}"
        ) from error
    if not hasattr(made, "possible_agents") and not isinstance(made, gymnasium.Env):
        raise LudusError(
            f"{source} returned a {type(made).__name__}, not a Gymnasium env or a PettingZoo "
            "parallel env"
        )
    return made


def _function_of(source: str) -> Any:
    return (
        maker_of(source)
        if source.startswith(HERE)
        else import_object(source.removeprefix("env:"), "env")
    )


def _gym_env(name: str, options: dict[str, Any]) -> Any:
    """`MODULE:ID` imports the module first. Some packages (minatar) register their envs only when
    `register_envs` is called."""
    module, _, registered = name.rpartition(":")
    if module:
        register = getattr(importlib.import_module(module), "register_envs", None)
        if register is not None and registered not in gymnasium.registry:
            register()
    return gymnasium.make(name, disable_env_checker=True, **options)


def can_film(source: str, env: Any) -> bool:
    """Can `make_env` make one of these that draws itself? `env` is one that was made without."""
    if source.startswith("env:") and not _takes_render_mode(_function_of(source)):
        return getattr(env, "render_mode", None) == pictures.MODE
    return pictures.draws(env)


def _takes_render_mode(function: Any) -> bool:
    try:
        return "render_mode" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _parallel_env(name: str, options: dict[str, Any]) -> Any:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise LudusError(
            f"pettingzoo:{name}: there is no module {error.name}; install it, or write it as "
            "package.module"
        ) from None
    if not hasattr(module, "parallel_env"):
        raise LudusError(
            f"pettingzoo:{name} has no parallel_env: its agents take turns, and Ludus steps all at "
            "once; write a function that "
            f"returns a parallel env, and train on your_module:function"
        )
    return module.parallel_env(**options)


def roles_of(env: Any) -> dict[str, list[str]]:
    """Agents by role. Where agents named role_0, role_1, … see or act differently, each kind is a
    role, named as its first one."""
    if not hasattr(env, "possible_agents"):
        return {"agent": ["agent"]}
    for agent in env.possible_agents:
        if why := why_unusable(agent):
            raise LudusError(f"the agent {reprlib.repr(agent)} of this env {why}")
    roles: dict[str, list[str]] = {}
    for name, members in roles_by_name(env.possible_agents).items():
        kinds: list[list[str]] = []
        for agent in members:
            alike = [kind for kind in kinds if spaces_of(env, kind[0]) == spaces_of(env, agent)]
            if alike:
                alike[0].append(agent)
            else:
                kinds.append([agent])
        roles |= {name if len(kinds) == 1 else kind[0]: kind for kind in kinds}
    return roles


def agents_of(env: Any) -> list[str]:
    """In the order of the batch: role after role."""
    return [agent for members in roles_of(env).values() for agent in members]


def spaces_of(env: Any, agent: str) -> tuple[spaces.Space, spaces.Space]:
    """What an agent sees and does. A mask inside a Dict observation is no part of what it sees."""
    seen, does = _spaces(env, agent)
    return (seen["observation"] if _has_mask(seen) else seen), does


def _spaces(env: Any, agent: str) -> tuple[Any, spaces.Space]:
    if hasattr(env, "possible_agents"):
        return env.observation_space(agent), env.action_space(agent)
    return env.observation_space, env.action_space


def _has_mask(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Dict) and space.spaces.keys() == MASKED_KEYS


def gives_masks(source: str, env: Any, seed: int) -> list[bool]:
    """Does a mask come with the first observation? For each agent."""
    try:
        _, info = env.reset(seed=seed)
    except FAULTS as error:
        raise LudusError(
            f"env 0 of {source} raised {type(error).__name__} in reset: {told(error)}"
        ) from error
    infos = info if hasattr(env, "possible_agents") else {"agent": info}
    return [
        _has_mask(_spaces(env, name)[0]) or "action_mask" in infos.get(name, {})
        for name in agents_of(env)
    ]


def close_quietly(env: Any) -> None:
    """One that fails while closing must not hide what went wrong before, nor end training."""
    with contextlib.suppress(*FAULTS):
        env.close()


class Guest:
    """An env and its row. The batch says in `resetting` what to do; what came of it is written into
    the arrays."""

    def __init__(
        self, source: str, env: Any, number: int, codecs: list[Codec], arrays: dict[str, np.ndarray]
    ) -> None:
        self.source, self.env, self.number, self.codecs, self.arrays = (
            source,
            env,
            number,
            codecs,
            arrays,
        )
        # few envs have pictures
        self.row = {name: array[number] for name, array in arrays.items() if number < len(array)}
        # views of every agent's row: making them in each step would cost as much as a step of a
        # small env
        self.chosen = [
            tuple(self.row[kind][a] for kind in ("continuous", "binary", "choices"))
            for a in range(len(codecs))
        ]
        self.shown = [self.row["observation"][a] for a in range(len(codecs))]
        self.allowed = [
            self.row["action_mask"][a, : codec.num_masked] for a, codec in enumerate(codecs)
        ]
        self.pictures = [
            {name: self.row[f"seen_{name}"][a] for name in codec.seen}
            for a, codec in enumerate(codecs)
        ]
        self.steps = 0  # of the episode
        self._check_spaces()

    def advance(self, resetting: bool) -> None:
        """One step or, in a reset row, the start of an episode."""
        try:
            if resetting:
                begin = time.perf_counter()
                seed = int(self.arrays["seeds"][self.number])
                self.reset(seed if seed >= 0 else None)
                self.steps = 0
                self.arrays["reset_seconds"][self.number] += time.perf_counter() - begin
            else:
                self.steps += 1
                self.step()
            self._refuse_standstill()
        except LudusError:
            raise
        except FAULTS as error:
            where = "reset" if resetting else f"step {self.steps}"
            raise LudusError(
                f"env {self.number} of {self.source} raised {type(error).__name__} in {where}: "
                f"{told(error)}"
            ) from error

    def wrong(self, cause: str) -> LudusError:
        where = "the reset" if self.arrays["resetting"][self.number] else f"step {self.steps}"
        return LudusError(f"env {self.number} of {self.source}, {where}: {cause}")

    def _refuse_standstill(self) -> None:
        """Of those that play on, somebody must be able to do something."""
        alive = self.row["alive"]
        if alive.any() and self.row["idle"][alive].all():
            who = ", ".join(
                name for name, plays in zip(agents_of(self.env), alive, strict=True) if plays
            )
            raise self.wrong(
                f"the action mask of {who} allows nothing, and the episode goes on: allow "
                "something, or end the episode "
                f"(terminated or truncated) in the step before"
            )

    def _check_spaces(self) -> None:
        for agent, codec in zip(agents_of(self.env), self.codecs, strict=True):
            for kind, mine, first in zip(
                ("observation", "action"),
                spaces_of(self.env, agent),
                (codec.observation_space, codec.action_space),
                strict=True,
            ):
                if mine != first:
                    raise LudusError(
                        f"env {self.number} of {self.source} has the {kind} space {mine}, env 0 "
                        f"has {first}: all must be the same"
                    )

    def observe(self, agent: int, observation: Any, info: Any, over: bool = False) -> None:
        """What an agent sees and may do. It need not be allowed anything where its episode is
        `over`, or where others play:
        then it is idle."""
        codec = self.codecs[agent]
        observation, mask = codec.split(observation, info)
        try:
            codec.encode(observation, self.shown[agent], self.pictures[agent])
            if codec.masked:
                if mask is None and not over:
                    raise self.wrong(
                        "no action mask came, and one did with the first observation: give one "
                        "with each"
                    )
                if mask is None:
                    self.allowed[agent][:] = True
                    something = True
                else:
                    something = codec.encode_mask(mask, self.allowed[agent], over)
                self.row["idle"][agent] = not (something or over)
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise self.wrong(
                f"the observation does not match its space {codec.observation_space}: {error}"
            ) from None

    def action(self, agent: int) -> Any:
        if int(self.row["controller"][agent]) == RANDOM:
            return self.codecs[agent].sample(self.allowed[agent])
        return self.codecs[agent].decode(*self.chosen[agent])

    def reset(self, seed: int | None) -> None:
        raise NotImplementedError

    def step(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        close_quietly(self.env)


class GymGuest(Guest):
    def reset(self, seed: int | None) -> None:
        observation, info = self.env.reset(seed=seed)
        if seed is not None:
            self.env.action_space.seed(seed)
        self.observe(0, observation, info)
        self.row["alive"][0] = True

    def step(self) -> None:
        observation, reward, terminated, truncated, info = self.env.step(self.action(0))
        self.observe(0, observation, info, over=terminated or truncated)
        row = self.row
        row["reward"][0] = reward
        if terminated or truncated:
            row["terminated"][0], row["truncated"][0], row["alive"][0] = (
                terminated,
                truncated,
                False,
            )


class ParallelGuest(Guest):
    """All agents of a PettingZoo env. They are the same in every episode; they may die before its
    end."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.names = agents_of(self.env)

    def reset(self, seed: int | None) -> None:
        observations, infos = self.env.reset(seed=seed)
        if seed is not None:
            for i, name in enumerate(self.names):
                self.env.action_space(name).seed(seed + i)
        self._refuse_change(self.names, self.env.agents)
        for i, name in enumerate(self.names):
            self.observe(i, observations[name], infos.get(name, {}))
        self.row["alive"][:] = True

    def step(self) -> None:
        row = self.row
        acting = [i for i, alive in enumerate(row["alive"]) if alive]
        observations, rewards, terminated, truncated, infos = self.env.step(
            {self.names[i]: self.action(i) for i in acting}
        )
        for i in acting:
            name = self.names[i]
            if name not in rewards or name not in observations:
                raise self.wrong(
                    f"agent {name} acted and got no "
                    f"{'reward' if name not in rewards else 'observation'}"
                )
            over = bool(terminated[name] or truncated[name])
            self.observe(i, observations[name], infos.get(name, {}), over)
            row["reward"][i], row["terminated"][i], row["truncated"][i] = (
                rewards[name],
                terminated[name],
                truncated[name],
            )
            row["alive"][i] = not over
        self._refuse_change([self.names[i] for i in acting if row["alive"][i]], self.env.agents)

    def _refuse_change(self, expected: list[str], agents: list[str]) -> None:
        if set(agents) != set(expected):
            gone, new = sorted(set(expected) - set(agents)), sorted(set(agents) - set(expected))
            what = " and ".join(
                [
                    f"{', '.join(n)} {verb}"
                    for n, verb in ((gone, "left without an end"), (new, "came in"))
                    if n
                ]
            )
            raise self.wrong(
                f"its agents changed: {what}; Ludus needs the same agents in every episode, and "
                "none that comes back"
            )


def _filmable(source: str) -> Any:
    """An env that draws itself; one that cannot be made so is played without pictures."""
    try:
        return make_env(source, film=True)
    except LudusError:
        return make_env(source)


def invite(
    source: str, env: Any, number: int, codecs: list[Codec], arrays: dict[str, np.ndarray]
) -> Guest:
    kind = ParallelGuest if hasattr(env, "possible_agents") else GymGuest
    return kind(source, env, number, codecs, arrays)


class Guests:
    """Envs `first` to `last`, one after the other in this process."""

    def __init__(
        self,
        source: str,
        first: int,
        last: int,
        codecs: list[Codec],
        arrays: dict[str, np.ndarray],
        env: Any = None,
        *,
        check_bounds: bool = True,
    ) -> None:
        made = [env] if env is not None else []
        self.guests: list[Guest] = []
        filmed = len(arrays.get("picture", ()))
        for number in range(first, last):
            if number < filmed:
                one = _filmable(source)
            else:
                one = made.pop() if made else make_env(source)
            self.guests.append(invite(source, one, number, codecs, arrays))
        for unused in made:
            close_quietly(unused)
        self.arrays, self.part = arrays, slice(first, last)
        entries = arrays["observation"].shape[-1]
        bounds = [codec.bounds(entries) for codec in codecs]
        self.low, self.high = (np.stack([pair[i] for pair in bounds]) for i in (0, 1))
        self.check_bounds, self.told = check_bounds, False
        self.filmed = [guest for guest in self.guests if guest.number < filmed]

    def step(self) -> None:
        busy, first = self.arrays["busy_with"], self.part.start
        for guest, resetting in zip(
            self.guests, self.arrays["resetting"][self.part].tolist(), strict=True
        ):
            busy[first] = guest.number
            guest.advance(resetting)
        for guest in self.filmed:
            if self.arrays["picture_wanted"][guest.number]:
                pictures.photograph(guest.env, guest.number, self.arrays)
        self._refuse_values()

    def _refuse_values(self) -> None:
        """One look at all rows: NaN, infinity and what is out of bounds stop here, with the env
        they came from."""
        reward, shown = self.arrays["reward"][self.part], self.arrays["observation"][self.part]
        if not np.isfinite(reward).all():
            env, agent = np.argwhere(~np.isfinite(reward))[0]
            raise self.guests[env].wrong(f"the reward is {reward[env, agent]}")
        inside = (shown >= self.low) & (shown <= self.high)  # neither NaN nor infinity is
        if inside.all():
            return
        outside = ~inside if self.check_bounds else ~np.isfinite(shown)
        if outside.any():
            fix = (
                "widen the space or clip the value, or use --train.check-bounds False to train "
                "on it as it is"
            )
            raise self._outside(outside, shown, fix)
        if not self.told:
            self.told = True
            print(
                f"ludus: {self._outside(~inside, shown, 'trained on as it is, said once')}",
                file=sys.stderr,
                flush=True,
            )

    def _outside(self, wrong: np.ndarray, shown: np.ndarray, what_then: str) -> LudusError:
        env, agent, entry = np.argwhere(wrong)[0]
        guest, value = self.guests[env], shown[env, agent, entry]
        codec = guest.codecs[agent]
        text = f"the observation entry {codec.observation_names[entry]} is {value:g}"
        if np.isfinite(value):
            low, high = codec.limits[entry]
            text += f", but its space says {low:g} to {high:g}: {what_then}"
        return guest.wrong(text)

    def close(self) -> None:
        for guest in self.guests:
            guest.close()
