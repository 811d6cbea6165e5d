"""ludus view"""

from __future__ import annotations

import contextlib
import os
import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ludus.batches import is_foreign
from ludus.commands.parsing import parse
from ludus.errors import LudusError
from ludus.games import REGISTRY, load_game
from ludus.games.own_bots import load_bot, with_bots
from ludus.machine import set_threads
from ludus.runs.run import Run
from ludus.who import own_bots

PORT = 8600


@dataclass(kw_only=True)
class View:
    """Shows runs, replays and games in the browser, on this machine only. Without a name: every run
    under --root."""

    what: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """RUN …, or a GAME to watch bots play before any training."""
    agents: tuple[str, ...] = ()
    """Who plays a GAME: bot:NAME, ROLE=bot:NAME, team0=bot:NAME, RUN or ROLE=RUN (default: the
    game's own bots)."""
    set: tuple[str, ...] = ()
    """Sizes, parameters and rewards of a GAME, as NAME=VALUE."""
    root: str = "runs"
    """Folder whose runs are listed."""
    games: tuple[str, ...] = ()
    """Games of your own that runs and replays may use, as package.module:GAME."""
    port: int = PORT
    """Port on 127.0.0.1; 0 takes any that is free."""
    seed: int = 0
    """Seed of a GAME."""
    headless: bool = False
    """Do not open a browser."""


def main(arguments: list[str]) -> int:
    options = parse(
        View,
        arguments,
        "view",
        "ludus view hide_and_seek --agents seeker=bot:seeker hider=bot:hider",
    )
    return show(options)


def show(options: View, take: int | None = None) -> int:
    """Serves until interrupted. `take`: the agent a person plays from the start."""
    from ludus.viewer.app import Viewer, link, listen, serve

    game, runs = sort_out(options)
    if take is not None and len(runs) == 1:
        refuse_foreign(runs[0])
    guests = {entry: path for entry in options.agents if (path := run_in(entry))}
    own = [*options.games, *([game] if game and ":" in game else [])]
    bots = own_bots(entry.rpartition("=")[2] for entry in options.agents if entry not in guests)
    for bot in bots:
        load_bot(bot)
    viewer = Viewer(Path(options.root), [*runs, *guests.values()], own, bots)
    names = {path.resolve(): name for name, path in viewer.library.runs().items()}
    cast = [
        f"{e.rpartition('=')[0]}=run:{names[guests[e].resolve()]}".lstrip("=") if e in guests else e
        for e in options.agents
    ]
    page = ""
    if game:
        with_bots(viewer.shows.find(game).game, bots)  # refuses what is not a bot of this game
        page = link(
            page="watch",
            game=game,
            agents=cast,
            value=list(options.set),
            seed=options.seed,
            take=take,
        )
    elif len(runs) == 1:
        name = names[runs[0].resolve()]
        page = (
            link(page="run", path=(name,))
            if take is None
            else link(page="watch", run=name, agents=cast, take=take)
        )
    elif len(runs) == 2:
        page = link(page="compare", path=tuple(names[run.resolve()] for run in runs))
    elif take is not None:
        page = link(page="games")
    listener = listen(options.port)
    with contextlib.suppress(OSError):
        os.nice(10)  # looking on must not slow a training down

    def started(address: str) -> None:
        print(f"ludus: {address}{page}   (Ctrl-C ends)", file=sys.stderr, flush=True)
        if not options.headless:
            webbrowser.open(address + page)

    set_threads(1)
    serve(viewer, listener, started)
    return 0


def sort_out(options: View) -> tuple[str | None, list[Path]]:
    """A game, or runs."""
    runs = [name for name in options.what if (Path(name) / "config.json").exists()]
    others = [name for name in options.what if name not in runs]
    if len(others) > 1 or (others and runs):
        raise LudusError(
            f"'{others[0]}' is no run, and {len(options.what)} things were named: name runs, or "
            "one game"
        )
    if others:
        name = others[0]
        if is_foreign(name):
            raise LudusError(
                f"{name} is an env of another library, which the viewer does not run: `ludus train "
                f"{name}`, and view the run"
            )
        if "/" in name or (
            name.split(":")[0] not in REGISTRY and ":" not in name and Path(name).exists()
        ):
            Run(name)  # says what is missing
        load_game(name)
        return name, []
    if options.agents and not runs:
        raise LudusError(
            "--agents says who plays a game: name the game, as in `ludus view pursuit --agents "
            "bot:flee`"
        )
    return None, [Path(name) for name in runs]


def refuse_foreign(path: Path) -> None:
    """Nobody can play in an env of another library: the viewer does not run it."""
    game = Run(path).settings().game
    if is_foreign(game):
        raise LudusError(
            f"{path} plays {game}, an env of another library: `ludus view {path}` shows what "
            "evaluations recorded"
        )


def run_in(entry: str) -> Path | None:
    """The run folder that an entry of --agents names."""
    path = Path(entry.rpartition("=")[2])
    return path if (path / "config.json").exists() else None
