"""How two runs differ and what that did: settings, game, versions, where their curves part, where
the time went, who is suspect.

Pure: it reads the two run folders' files. How two effective games differ is told by whoever knows
games, and handed in.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ludus.doctor.log import Curve, Log, read_log
from ludus.doctor.options import sections_of
from ludus.doctor.statistics import Noise, noise
from ludus.errors import LudusError
from ludus.files import read_json
from ludus.intervals import is_plain

SURE = 3.0
"""Standard errors by which curves must differ to have parted."""
FEWEST_SEEDS = 3
"""With fewer runs a side their spread says too little, and the curves' own noise is taken."""
WINDOWS = 10
ROWS = 3
"""Curves are compared window by window, none of which has fewer rows than this."""
ENOUGH = 40
ALIKE = 0.5
"""With fewer rows than ENOUGH it cannot be measured how much a row resembles the last: this much is
assumed."""
# Settings that do not change what is learnt, only how much of it is seen or kept.
BOOKKEEPING = ("log.", "checkpoint.", "doctor.", "eval.", "train.threads", "seed", "callbacks")
# How often a difference of this kind has turned out to be the cause, from the failures in
# docs/doctor/clinic.md and common sense.
SUSPICION = (
    ("game", 0.9),
    ("reward", 0.95),
    ("learning_rate", 0.9),
    ("reward_scale", 0.7),
    ("gamma", 0.7),
    ("clip", 0.6),
    ("entropy", 0.7),
    ("epsilon", 0.6),
    ("target_", 0.6),
    ("normalise", 0.6),
    ("epochs", 0.5),
    ("rollout", 0.4),
    ("minibatches", 0.4),
    ("memory", 0.5),
    ("bptt", 0.4),
    ("league", 0.4),
    ("policy.", 0.3),
    ("algorithm", 0.8),
)
UNKNOWN = 0.2
FOLD = 3.0
"""A number that differs by this factor is twice as suspect as one that hardly differs."""


@dataclass(frozen=True)
class Difference:
    """One thing that differs. `origin`: where each run had its value from."""

    key: str
    a: Any
    b: Any
    kind: str
    origin: tuple[str, str] = ("", "")
    text: str = ""


@dataclass(frozen=True)
class Parting:
    """Where two curves part for good, and how far apart they end."""

    curve: str
    step: int
    a: float
    b: float
    noise: float
    """Standard error of the difference of the last windows: between seeds, or with few of them the
    curves' own."""
    seeds: tuple[int, int]
    seconds: tuple[float, float]

    @property
    def errors(self) -> float:
        return (
            (self.b - self.a) / self.noise
            if self.noise
            else math.copysign(math.inf, self.b - self.a)
        )


@dataclass
class Comparison:
    a: str
    b: str
    settings: list[Difference] = field(default_factory=list)
    game: list[Difference] = field(default_factory=list)
    different_games: bool = False
    """Not one game with other settings: curves of the same name mean other things."""
    versions: list[Difference] = field(default_factory=list)
    partings: list[Parting] = field(default_factory=list)
    phases: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def suspects(self) -> list[tuple[float, Difference]]:
        """What may have caused it, likeliest first. What only keeps books is left out."""
        found = [*self.game, *self.settings, *self.versions]
        rated = [(suspicion(d), d) for d in found if not d.key.startswith(BOOKKEEPING)]
        return sorted(rated, key=lambda pair: -pair[0])

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"a": self.a, "b": self.b}
        for name in ("settings", "game", "versions", "phases"):
            out[name] = [asdict(d) for d in getattr(self, name)]
        out["curves"] = [
            {**asdict(p), "errors": p.errors if math.isfinite(p.errors) else None}
            for p in self.partings
        ]
        out["suspects"] = [
            {"key": d.key, "a": d.a, "b": d.b, "suspicion": round(s, 2)} for s, d in self.suspects
        ]
        return {**out, "notes": self.notes}


def suspicion(d: Difference) -> float:
    """0 to 1, from what kind of setting it is and by how much it differs."""
    if d.kind == "version":
        return 0.15 if d.key == "ludus" else 0.1
    base = max(
        (
            weight
            for word, weight in SUSPICION
            if word in d.key or (word == "game" and d.kind == "game")
        ),
        default=UNKNOWN,
    )
    numbers = [v for v in (d.a, d.b) if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) == 2 and min(map(abs, numbers)) > 0:
        fold = abs(math.log(abs(numbers[1] / numbers[0]))) / math.log(FOLD)
        base *= 0.5 + 0.5 * min(1.0, fold)
    # what was derived follows from something else
    return base * (0.5 if "derived" in d.origin else 1.0)


# -- reading ---------------------------------------------------------------------------------------


def compare(a: Path | str, b: Path | str, game: Iterable[Mapping[str, Any]] = ()) -> Comparison:
    """Two runs, or two folders of runs that differ in their seed. `game`: differences of the
    effective games as {"key", "a", "b", "text"}."""
    game = list(game)
    sides = (seeds_of(a), seeds_of(b))
    first, second = _config(sides[0][0]), _config(sides[1][0])
    out = Comparison(str(a), str(b))
    out.settings = setting_differences(first, second)
    out.versions = [
        Difference(n, x, y, "version")
        for n, x, y in _unequal(first.get("versions", {}), second.get("versions", {}))
    ]
    named = {d.key.removeprefix("game.") for d in out.settings}
    out.game = [
        Difference(f"game.{d['key']}", d["a"], d["b"], "game", text=str(d["text"]))
        for d in game
        if str(d["key"]) not in named
    ]
    logs = [[read_log(run) for run in side] for side in sides]
    out.different_games = any(d["key"] == "game" for d in game)
    out.partings = [] if out.different_games else partings(*logs)
    out.phases = phase_differences(logs[0][0], logs[1][0])
    out.notes = [f"{log.source}: {note}" for side in logs for log in side for note in log.notes]
    if not any(log.curves for side in logs for log in side):
        out.notes.append("neither run has a metrics line yet: curves were not compared")
    return out


def seeds_of(path: Path | str) -> list[Path]:
    """A run, or the runs in a folder of them."""
    if (Path(path) / "config.json").exists():
        return [Path(path)]
    runs = sorted(p.parent for p in Path(path).glob("*/config.json"))
    if not runs:
        raise LudusError(
            f"there is no run at {path}: give a run folder, or a folder of runs that differ in "
            "their seed"
        )
    return runs


def _config(path: Path | str) -> dict[str, Any]:
    file = Path(path) / "config.json"
    try:
        data = read_json(file)
        if isinstance(data["values"], dict):
            return dict(data)
        raise ValueError("no settings")
    except (OSError, ValueError, KeyError, TypeError):
        raise LudusError(
            f"{file} cannot be read as the settings of a run: is it being written, or from another "
            "program?"
        ) from None


def setting_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    """Of two configs as stored, {"values", "origins"}: every key whose value differs, chosen ones
    before derived ones. Where the runs have different algorithms or networks, the settings of these
    belong to that one difference; those that both have are told beside it."""
    origins = (a.get("origins", {}), b.get("origins", {}))
    changed = _changed_sections(a["values"], b["values"])
    apart = tuple(section for pair in changed for section in pair)
    found = [
        Difference(n, x, y, "setting", (origins[0].get(n, "default"), origins[1].get(n, "default")))
        for n, x, y in _unequal(a["values"], b["values"])
        if not n.startswith(apart)
    ]
    for one, other in changed:
        theirs = [
            {n.removeprefix(s): v for n, v in values.items() if n.startswith(s)}
            for s, values in ((one, a["values"]), (other, b["values"]))
        ]
        found += [
            Difference(f"{one}{n}, {other}{n}", x, y, "of a component")
            for n, x, y in _unequal(*theirs)
            if n in theirs[0] and n in theirs[1]
        ]
    return sorted(found, key=lambda d: (d.key.startswith(BOOKKEEPING), "derived" in d.origin))


def _changed_sections(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Sections of the algorithms and networks that the two runs do not share."""
    mine, theirs = sections_of(a), sections_of(b)
    return [
        (mine[choice], theirs[choice])
        for choice in mine
        if choice in theirs and mine[choice] != theirs[choice]
    ]


def _unequal(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(n, a.get(n), b.get(n)) for n in dict.fromkeys([*a, *b]) if a.get(n) != b.get(n)]


# -- curves ----------------------------------------------------------------------------------------


def partings(a: list[Log], b: list[Log]) -> list[Parting]:
    """Of the curves that tell success, those that part: returns, goal metrics, evaluations; the
    surest first."""
    everywhere = set.intersection(*(set(log.curves) for log in (*a, *b)))
    found = [
        p
        for n in a[0].curves
        if n in everywhere and _tells_success(n) and (p := parting(a, b, n)) is not None
    ]
    return sorted(found, key=lambda p: -abs(p.errors))


def _tells_success(name: str) -> bool:
    return (
        (name.startswith("episode/") and name.endswith("/return"))
        or name.startswith("goal/")
        or (
            name.startswith("eval/")
            and is_plain(name)
            and not name.endswith(("length", "draw_rate", "loss_rate"))
        )
    )


def parting(a: list[Log], b: list[Log], name: str) -> Parting | None:
    """The first window from which on the curves differ by more than SURE standard errors, in the
    same direction, to the end."""
    sides = [[log.curves[name] for log in side] for side in (a, b)]
    if any(len(c) < ROWS for side in sides if len(side) < FEWEST_SEEDS for c in side):
        return None  # too short to have a noise of its own
    until = min(c.last_step for side in sides for c in side)
    since: int | None = None
    sign, last = 0.0, None
    count = max(1, min(WINDOWS, *(len(c) // ROWS for side in sides for c in side)))
    for low, high in itertools.pairwise(np.linspace(0, until, count + 1)):
        levels = [_level(side, low, high) for side in sides]
        if levels[0] is None or levels[1] is None:
            continue
        (one, one_error), (other, other_error) = levels[0], levels[1]
        error, gap = math.hypot(one_error, other_error), other - one
        apart = abs(gap) > SURE * error and gap != 0
        if apart and (since is None or np.sign(gap) != sign):
            since, sign = int(low), float(np.sign(gap))
        elif not apart:
            since = None
        last = (one, other, error)
    if since is None or last is None:
        return None
    return Parting(
        name,
        since,
        *last,
        seeds=(len(a), len(b)),
        seconds=(_seconds_at(a[0], since), _seconds_at(b[0], since)),
    )


def _level(curves: list[Curve], low: float, high: float) -> tuple[float, float] | None:
    """Mean of a window and its standard error: between seeds where there are several, else the
    curve's own."""
    parts = [c.values[(c.steps > low) & (c.steps <= high)] for c in curves]
    parts = [p for p in parts if len(p)]
    if not parts:
        return None
    means = np.array([p.mean() for p in parts])
    if len(means) >= FEWEST_SEEDS:
        return float(means.mean()), float(means.std(ddof=1)) / math.sqrt(len(means))
    own = [_noise(c).error(len(p)) for c, p in zip(curves, parts, strict=False)]
    return float(means.mean()), float(np.mean(own)) / math.sqrt(len(means))


def _noise(curve: Curve) -> Noise:
    if len(curve) >= ENOUGH:
        return noise(curve.values)
    return Noise(float(np.std(np.diff(curve.values))) / math.sqrt(2 * (1 - ALIKE)), ALIKE)


def _seconds_at(log: Log, step: int) -> float:
    clock = log.get("progress/seconds")
    return float(np.interp(step, clock.steps, clock.values)) if clock is not None else math.nan


# -- time ------------------------------------------------------------------------------------------


def phase_differences(a: Log, b: Log) -> list[Difference]:
    """Seconds per million agent-steps of each phase where they differ by a quarter and matter, and
    the speed itself."""
    times = (_phase_times(a), _phase_times(b))
    totals = [sum(t.values()) for t in times]
    out = []
    for name in dict.fromkeys([*times[0], *times[1]]):
        x, y = (t.get(name, 0.0) for t in times)
        if max(x, y) > 0.05 * max(totals) and max(x, y) > 1.25 * min(x, y):
            out.append(
                Difference(
                    name, round(x, 2), round(y, 2), "phase", text="seconds per million agent-steps"
                )
            )
    speeds = [c.values for log in (a, b) if (c := log.get("speed/agent_steps_per_s")) is not None]
    if len(speeds) == 2:
        x, y = (float(np.median(s)) for s in speeds)
        if max(x, y) > 1.25 * min(x, y):
            out.append(
                Difference("speed", round(x), round(y), "phase", text="agent-steps per second")
            )
    return out


def _phase_times(log: Log) -> dict[str, float]:
    """A phase's share of the time, over the speed."""
    speed = log.get("speed/agent_steps_per_s")
    if speed is None or float(np.median(speed.values)) <= 0:
        return {}
    per_million = 1e6 / float(np.median(speed.values))
    return {
        c.name.removeprefix("speed/share/"): float(np.sum(c.values)) / len(speed) * per_million
        for c in log.starting("speed/share/")
    }


# -- words -----------------------------------------------------------------------------------------


def as_text(c: Comparison) -> str:
    lines = [f"a: {c.a}", f"b: {c.b}", ""]
    chosen = [d for d in c.settings if not d.key.startswith(BOOKKEEPING)]
    kept = [d for d in c.settings if d.key.startswith(BOOKKEEPING)]
    lines += _section(
        "Settings that differ",
        [f"{d.key}: {_word(d.a)} → {_word(d.b)}{_origins(d)}" for d in chosen],
    )
    lines += _section("The game as received", [f"{d.text}  ({d.key})" for d in c.game])
    lines += _section("Versions", [f"{d.key}: {_word(d.a)} → {_word(d.b)}" for d in c.versions])
    if kept:
        lines += [
            f"Also different, without effect on what is learnt: {', '.join(d.key for d in kept)}",
            "",
        ]
    told = [
        f"{p.curve}: apart since step {p.step:,}; at the end {p.a:.4g} and {p.b:.4g}, "
        + (
            f"{abs(p.errors):.1f} standard errors "
            f"{'between seeds' if min(p.seeds) >= FEWEST_SEEDS else 'of their own noise'}"
            if math.isfinite(p.errors)
            else "without any noise"
        )
        for p in c.partings
    ]
    none = (
        "not compared: these are different games"
        if c.different_games
        else "nowhere that is surely more than noise"
    )
    lines += _section("Where curves part", told or [none])
    lines += _section(
        "Where the time goes", [f"{d.key}: {d.a:g} and {d.b:g} {d.text}" for d in c.phases]
    )
    rated = [f"{score:.2f}  {d.key}: {_word(d.a)} → {_word(d.b)}" for score, d in c.suspects[:8]]
    lines += _section(
        "Suspects, likeliest first",
        rated or ["none: the runs do not differ in anything that changes what is learnt"],
    )
    if rated and c.partings:
        lines += [f"To prove it: ludus doctor bisect {c.a} {c.b}", ""]
    lines += _section("Not seen", c.notes)
    return "\n".join(lines).rstrip()


def _section(title: str, lines: list[str]) -> list[str]:
    return [title, *(f"  {line}" for line in lines), ""] if lines else []


def _origins(d: Difference) -> str:
    return f"  ({' → '.join(d.origin)})" if any(d.origin) else ""


def _word(value: Any) -> str:
    return "unset" if value is None else str(value)
