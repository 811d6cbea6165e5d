"""Who plays, by name: the same words in the mix of a league, in evaluations, in the viewer and in
adapters.

    self             the policy that learns, or is measured
    bot:NAME         a bot of the game, or of the user's own: bot:package.module:NAME. Its import
                     path is its name everywhere; bots: all of them
    pool             a snapshot that the league chooses
    snapshot:STEP    a snapshot of the run; snapshots: some, evenly over its pool
    RUN              the policy of another run; RUN@STEP, RUN@best; run:RUN says that it is one

Which of them can be meant depends on the place, which says so when it asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ludus.errors import LudusError, nearest
from ludus.imports import is_path

SELF, BOT, BOTS, POOL, SNAPSHOT, SNAPSHOTS, RUN = (
    "self",
    "bot",
    "bots",
    "pool",
    "snapshot",
    "snapshots",
    "run",
)
SAMPLE = 8
"""How many snapshots `snapshots` stands for."""
SPELLED = {SNAPSHOT: "snapshot:STEP", RUN: "a run's folder"}


@dataclass(frozen=True)
class Who:
    """`kind` is one of the words above, `name` that of a bot, the step of a snapshot, or a run."""

    kind: str
    name: str = ""

    def __str__(self) -> str:
        if self.kind == RUN:
            return self.name
        return f"{self.kind}:{self.name}" if self.name else self.kind


def bot_names(controllers: Mapping[str, Iterable[str]]) -> list[str]:
    """Every bot that some role has: those of the game, then those of the user's own."""
    names = dict.fromkeys(name for bots in controllers.values() for name in bots)
    return sorted(names, key=is_path)


def own_bots(names: Iterable[str]) -> list[str]:
    """The import paths of the bots of the user's own in names of players, each once; also of names
    with a role or a metric, as chaser/bot:package.module:NAME."""
    parts = [part.partition(":") for name in names for part in name.split("/")]
    return list(dict.fromkeys(name for kind, _, name in parts if kind == BOT and is_path(name)))


def read(
    text: str,
    kinds: Collection[str],
    bots: Collection[str],
    where: str,
    error: type[LudusError] = LudusError,
) -> Who:
    """What a name means, of the `kinds` that can be meant. `where`: which setting or option named
    it, for the message when nobody is called so."""
    kind, colon, name = text.partition(":")
    if text in (SELF, BOTS, POOL, SNAPSHOTS) and text in kinds:
        return Who(text)
    if colon and kind in kinds and (kind in (SNAPSHOT, RUN) or (kind == BOT and name in bots)):
        return Who(kind, name)
    if RUN in kinds and kind not in (BOT, SNAPSHOT) and is_run(text):
        return Who(RUN, text)
    known = [
        *(SPELLED.get(kind, kind) for kind in kinds if kind not in (BOT, RUN)),
        *(f"bot:{name}" for name in bots if BOT in kinds),
        *(SPELLED[RUN] for _ in [0] if RUN in kinds),
    ]
    own = " (your own: bot:package.module:NAME)" if BOT in kinds and kind == BOT else ""
    raise error(f"{where}: unknown opponent '{text[:80]}': {nearest(text, known)}{own}")


def named(text: str) -> Who:
    """Of a name that was understood before, as logs and lineups have it."""
    kind, colon, name = text.partition(":")
    if colon and kind in (BOT, SNAPSHOT, RUN):
        return Who(kind, name)
    return Who(text) if text in (SELF, BOTS, POOL, SNAPSHOTS) else Who(RUN, text)


def is_run(text: str) -> bool:
    """Is there a run of this name, or is it written as only a run is: RUN@STEP, FOLDER/RUN?"""
    return "@" in text or "/" in text or (Path(text) / "config.json").exists()


def read_mix(text: str) -> dict[str, float]:
    """'self 70, pool 10, bot:based 20' → relative weights of those with one above 0. Whether there
    are such bots is up to `make_lineups`, which knows the game."""
    mix: dict[str, float] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, weight = part.rpartition(" ")
        try:
            value = float(weight)
        except ValueError:
            value = -1.0
        if not name or value < 0:
            raise LudusError(
                f"league.mix '{part}' is not an opponent and its weight: write it like 'self 70, "
                "pool 10, bot:random 20'"
            )
        mix[name.strip()] = value
    if mix and sum(mix.values()) <= 0:
        raise LudusError(
            f"league.mix '{text}' sums to 0: give at least one opponent a weight above 0"
        )
    return {name: weight for name, weight in mix.items() if weight > 0}
