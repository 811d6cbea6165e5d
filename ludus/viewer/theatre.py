"""Where films and sessions come from: a run's replay, its newest policies, a game with bots."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ludus.batches import is_foreign, of_game, try_bots
from ludus.batches import make_batch as batch_of
from ludus.errors import LudusError
from ludus.films.film import Film
from ludus.films.recorded import RecordedFilm
from ludus.films.replayed import KEPT, FilmMaker
from ludus.films.resimulate import Script, make_batch
from ludus.films.shows import Shows
from ludus.games.own_bots import with_bots
from ludus.play.replay import Replay
from ludus.protocols import Batch
from ludus.runs import checkpoint
from ludus.sim.conformance import try_rules
from ludus.viewer.library import Library
from ludus.viewer.session import Session, seat_bots, take_over


class Theatre:
    def __init__(self, library: Library, shows: Shows) -> None:
        self.library, self.shows = library, shows
        self._films: OrderedDict[tuple[str, str, float], Film | RecordedFilm] = OrderedDict()
        self.maker = FilmMaker(shows)
        # one simulation is made at a time: compiling twice at once costs twice
        self._lock = threading.Lock()

    # -- replays -----------------------------------------------------------------------------------

    def film(self, run: str, file: str) -> Film | RecordedFilm:
        path = self.library.replay(run, file)
        key = (run, file, path.stat().st_mtime)
        with self._lock:
            if key not in self._films:
                self._films[key] = self.maker.make(self.library.run(run), path)
                while len(self._films) > KEPT:
                    self._films.popitem(last=False)
            self._films.move_to_end(key)
            return self._films[key]

    # -- sessions ----------------------------------------------------------------------------------

    def from_replay(self, run: str, file: str, at: int) -> Session:
        with self._lock:
            script = Script(Replay(self.library.replay(run, file)), self.shows)
            policies, note = self.maker.policies_near(self.library.run(run), script)
            return take_over(
                script, at, policies, {"title": f"{run}: on from step {at}", "thinks": note}
            )

    def from_run(self, name: str, cast: Sequence[str] = ()) -> Session:
        """The newest policies of a run, in its own game; newer ones take their place between
        episodes."""
        run = self.library.run(name)
        config = replace(run.settings(), device="cpu")
        if is_foreign(config.game):
            raise LudusError(
                f"{name} plays {config.game}, an env of another library: what evaluations recorded "
                "is on the run's page"
            )
        show = self.shows.find(config.game)
        newest = checkpoint.find(run, None)
        with self._lock:
            seed, own = config.eval.seed + 2, self.shows.own_bots(cast)
            try_bots(config, own)
            batch = of_game(batch_of(config, 1, seed, held_out=True, bots=own))
            policies = self.maker.load(run, newest, batch.layout)
            seat_bots(batch, cast, policies)
        current = [newest]

        def renew() -> tuple[dict[str, Any], str] | None:
            step = checkpoint.find(run, None)
            if step == current[0]:
                return None
            current[0] = step
            return self.maker.load(run, step, batch.layout), f"the policy of step {step:,}"

        header = {"title": name, "thinks": f"the policy of step {newest:,}"}
        return Session(show, batch, policies=policies, header=header, renew=renew)

    def from_game(
        self, source: str, cast: Sequence[str], overrides: Mapping[str, float], seed: int = 0
    ) -> Session:
        """Bots, before any training; policies where the cast names a run (ROLE=run:NAME)."""
        show = self.shows.find(source)
        bots = [entry for entry in cast if not _run_of(entry)]
        guests = {entry: run for entry in cast if (run := _run_of(entry))}
        with self._lock:
            if own := self.shows.own_bots(bots):
                try_rules(with_bots(show.game, own), overrides, show.preset)
            batch = make_batch(show, overrides, show.preset, seed, own)
            policies: dict[str, Any] = {}
            for entry, name in guests.items():
                policies |= self._guests(entry, name, batch)
            seat_bots(batch, bots, policies, show.bots)
        thinks = (
            f"policies of {', '.join(guests.values())}"
            if guests
            else "bots keep their thoughts to themselves"
        )
        return Session(
            show, batch, policies=policies or None, header={"title": source, "thinks": thinks}
        )

    def _guests(self, entry: str, name: str, batch: Batch) -> dict[str, Any]:
        run = self.library.run(name)
        policies = self.maker.load(run, checkpoint.find(run, None), batch.layout)
        role = entry.rpartition("=")[0]
        if role and role not in policies:
            raise LudusError(
                f"{name} has no policy for '{role[:80]}': it has {', '.join(policies)}"
            )
        return {role: policies[role]} if role else policies

    def open(self, wanted: Mapping[str, Any]) -> Callable[[], Session]:
        """A session as an address names it: run and replay with a step, a run, or a game."""
        if wanted.get("replay"):
            return lambda: self.from_replay(
                str(wanted.get("run")), str(wanted["replay"]), _whole(wanted.get("at") or "0", "at")
            )
        if wanted.get("run"):
            return lambda: self.from_run(str(wanted["run"]), wanted["agents"])
        if wanted.get("game"):
            return lambda: self.from_game(
                str(wanted["game"]),
                wanted["agents"],
                wanted["values"],
                _whole(wanted.get("seed") or "0", "seed"),
            )
        raise LudusError("nothing to show: name a game, a run, or a run and a replay")


def _run_of(entry: str) -> str:
    name = entry.rpartition("=")[2]
    return name.removeprefix("run:") if name.startswith("run:") else ""


def _whole(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise LudusError(f"{what} is '{text[:40]}': use a whole number")
    return int(text)
