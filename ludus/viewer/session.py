"""An env that is played now: bots, policies or a person; for one page, in real time."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ludus.errors import LudusError, nearest
from ludus.films.film import Camera, about, plain
from ludus.films.instrumented import Minds
from ludus.films.pack import pack
from ludus.films.resimulate import Script, players
from ludus.films.shows import Show
from ludus.sim import Batch
from ludus.who import BOT, SELF, bot_names, read

MOST_KEYS = 32
SPEEDS = (0.25, 16.0)

POLICY = "policy"  # what a batch calls the controller that is not a bot


class Fault(Exception):
    """A message of the page that makes no sense. The connection ends."""


class Session:
    """Steps one env. `say` takes the page's messages, `step` gives one for it.

    `renew` is asked at every episode's end for policies that are newer than those playing.
    """

    def __init__(
        self,
        show: Show,
        batch: Batch,
        *,
        policies: Mapping[str, Any] | None = None,
        header: Mapping[str, Any] | None = None,
        renew: Any = None,
    ) -> None:
        self.show, self.batch, self.renew = show, batch, renew
        self.camera = Camera(show, batch)
        self.header = dict(header or {})
        self.human: int | None = None
        self._before = 0  # who played the human's agent
        self.keys: set[str] = set()  # down now
        self.tapped: set[str] = set()  # and since the last step: a short press counts too
        self.watched = 0
        self.paused, self.speed = False, 1.0
        self.rare: dict[str, np.ndarray] = {}
        self.fresh = True  # the next message starts an episode
        self.count = 0
        self.seat_policies(policies)

    def seat_policies(self, policies: Mapping[str, Any] | None) -> None:
        self.minds = Minds(policies, self.batch) if policies else None

    # -- what the page says ------------------------------------------------------------------------

    def say(self, text: str) -> None:
        try:
            message = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            raise Fault("no JSON") from None
        if not isinstance(message, dict):
            raise Fault("no object")
        agents = self.batch.layout.num_agents
        for name, value in message.items():
            match name:
                case "keys" if (
                    isinstance(value, list)
                    and len(value) <= MOST_KEYS
                    and all(isinstance(k, str) for k in value)
                ):
                    self.keys = set(value)
                    self.tapped |= self.keys
                case "take" if value is None or _index(value, agents):
                    self.take(value)
                case "watch" if _index(value, agents):
                    self.watched = value
                case "paused" if isinstance(value, bool):
                    self.paused = value
                case "speed" if isinstance(value, int | float) and SPEEDS[0] <= value <= SPEEDS[1]:
                    self.speed = float(value)
                case "restart" if value is True:
                    self.batch.arrays["finished"][0] = True
                case _:
                    raise Fault(f"'{name[:40]}' with this value is unknown")

    def take(self, agent: int | None) -> None:
        """A person plays this agent from now on; whoever did takes it back otherwise."""
        controller = self.batch.arrays["controller"][0]
        following = self.batch.arrays["controller_next"][0]
        if self.human is not None:
            controller[self.human] = following[self.human] = self._before
        self.human = agent
        if agent is not None:
            if self.show.act is None:
                self.human = None
                raise Fault(
                    f"{self.show.game.name} cannot be played by hand: its view.py has no act()"
                )
            self._before = int(controller[agent])
            controller[agent] = following[agent] = 0
            self.watched = agent

    # -- playing -----------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        return self.show.step_seconds / self.speed

    def step(self) -> bytes:
        """One step and its message. An episode's first message carries what stays the same in
        it."""
        if self.fresh:
            self.fresh = False
            return self.message(opening=True)
        self._write_actions()
        self.batch.step()
        self.count += 1
        if bool(self.batch["resetting"][0]):
            if self.renew is not None and (newer := self.renew()) is not None:
                policies, self.header["thinks"] = newer
                self.seat_policies(policies)
            return self.message(opening=True)
        return self.message()

    def _think(self) -> dict[str, np.ndarray]:
        """Policies decide on what is seen now; the actions wait in the batch for the next step."""
        if self.minds is None:
            return {}
        self.minds.act()
        shown = self.batch["controller"][0] == 0
        if self.human is not None:
            shown = shown.copy()
            shown[self.human] = False
        return self.minds.thoughts(shown & self.minds.who)

    def _write_actions(self) -> None:
        if self.human is None or self.show.act is None:
            return
        layout = self.batch.layout
        for name in ("continuous", "binary", "choices"):
            self.batch.arrays[name][0, self.human] = 0
        for name, value in self.show.act(self.keys | self.tapped, self.batch, self.human).items():
            if name in layout.choices and isinstance(value, str):
                value = layout.choices[name].index(value)
            self.batch[f"action_{name}"][0, self.human] = value
        self.tapped.clear()

    def message(self, opening: bool = False) -> bytes:
        frame = self.camera.frame()
        arrays = {f"seen/{n}": v for n, v in self.camera.seen(self.watched).items()}
        arrays |= {f"step/{n}": v for n, v in {**frame, **self._think()}.items()}
        header: dict[str, Any] = {
            "kind": "step",
            "count": self.count,
            "over": bool(self.batch["finished"][0]),
        }
        if opening:
            self.rare = {}
            who = players(self.batch, self.batch["controller"][0], self.human)
            header = {
                **about(self.show, self.batch),
                **self.header,
                **header,
                "kind": "episode",
                "players": who,
            }
            arrays |= self.camera.static()
        for name, value in self.camera.rare().items():
            if name not in self.rare or not np.array_equal(self.rare[name], value):
                self.rare[name] = value
                arrays[f"rare/{name}"] = value
        return pack(plain({**header, "watched": self.watched, "human": self.human}), arrays)


def _index(value: Any, count: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count


def seat_bots(
    batch: Batch, cast: Sequence[str], policies: Collection[str], favourites: Sequence[str] = ()
) -> None:
    """Hands agents to bots: 'bot:NAME' wherever a role has it, 'ROLE=bot:NAME', 'team0=bot:NAME';
    'self', the policy, where one is there.

    `policies` are the roles that have one. A role that nobody names is played by its policy, or by
    a bot of the game's own.
    """
    chosen: dict[tuple[str, int], str] = {}
    for entry in cast:
        where, _, name = entry.rpartition("=")
        who = read(name, (SELF, BOT), bot_names(batch.controllers), f"'{entry[:80]}'")
        bot = who.name or POLICY
        places = [
            (s.role, t)
            for s in batch.layout.seats
            for t in range(s.teams)
            if where in ("", s.role, f"team{t}", f"{s.role}{t}")
        ]
        able = [(role, t) for role, t in places if bot in (POLICY, *batch.controllers[role])]
        if not able:
            roles = {s.role for s in batch.layout.seats}
            if not places:
                raise LudusError(
                    f"'{where[:80]}' is no role or team of {batch.game.name}: "
                    f"{nearest(where[:80], roles)}"
                )
            there = sorted({f"bot:{bot}" for role, _ in places for bot in batch.controllers[role]})
            raise LudusError(
                f"{batch.game.name} has no {who} for '{where[:80]}': there are {', '.join(there)}"
            )
        chosen |= dict.fromkeys(able, bot)
    for seats in batch.layout.seats:
        own = [n for n in batch.controllers[seats.role] if n not in ("still", "random")] or [
            "random"
        ]
        liked = [name for name in favourites if name in own] or own[:1]
        for team in range(seats.teams):
            name = chosen.get(
                (seats.role, team), POLICY if seats.role in policies else liked[team % len(liked)]
            )
            if name == POLICY and seats.role not in policies:
                raise LudusError(
                    f"{seats.role} has no policy here: name a run, or a bot such as bot:{own[0]}"
                )
            batch.set_controller(seats.role, name, team=team)
    batch.reset()


def take_over(
    script: Script, at: int, policies: Mapping[str, Any] | None, header: Mapping[str, Any]
) -> Session:
    """A session that goes on from a moment of a replay: the same others, bots as recorded."""
    if not 0 <= at < script.steps:
        raise LudusError(
            f"{script.where} has {script.steps} steps: there is no step {at} to take over at"
        )
    batch = script.begin()
    session = Session(script.show, batch, policies=policies, header=header)
    for step in range(at):
        if session.minds is not None:
            session.minds.act()
        script.do(step)
    # nobody is there to go on for a user's own bots, and maybe for the policies: the game's bots do
    absent = [*script.own_bots, *([0] if policies is None else [])]
    for seats in batch.layout.seats:
        table = batch.controllers[seats.role]
        own = [number for name, number in table.items() if name not in ("still", "random")]
        mine = script.controllers[seats.agents]
        mine = np.where(np.isin(mine, absent), own[0] if own else table["random"], mine)
        batch.arrays["controller"][0, seats.agents] = mine
        batch.arrays["controller_next"][0, seats.agents] = mine
    session.count = at
    return session
