"""A reward described in a file: what each term pays, how often, and what it takes to earn it."""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.errors import LudusError, nearest

SECTIONS = ("episode", "term")
NOTES = ("description", "comment", "note", "help", "source")
"""Keys of a term that are for people."""
KINDS = ("per_step", "event", "terminal", "shaping")


@dataclass(frozen=True, kw_only=True)
class Episode:
    max_steps: int
    gamma: float = 0.99
    reward_clip: float = 0.0
    """Rewards are cut to plus or minus this; 0: they are not."""
    num_agents: int = 1
    failure_probability: float = 0.0
    """Chance per step that random play ends the episode by failing."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """A part of the reward; it pays between `low` and `high` each time."""

    name: str
    kind: str
    low: float
    high: float
    goal: bool = False
    """Earning it means that the task is being done."""
    passive: bool = False
    """Earned by doing nothing."""
    max_times: int | None = None
    """Most often per episode; 0: no limit; None: not said, so as `kind` and `respawns_after` have
    it."""
    respawns_after: int = 0
    """Steps until it can be earned again; 0: once."""
    cycles: bool = False
    """Can be farmed by going back and forth."""
    cycle_steps: int = 0
    """Steps one such round takes; 0: not said."""
    varies: bool = False
    """The amount depends on how well the agent does."""
    random_share: float = 0.0
    """Share of it that random play earns."""
    potential_based: bool = False
    """Shaping that sums to zero over a cycle."""
    ends_episode: bool = False
    reach_probability: float | None = None
    """Chance that random play meets it in an episode; None: not said, taken as 1."""
    requires: str = ""
    """Another term that must be earned first."""


@dataclass(frozen=True)
class Reward:
    """A whole reward function, described."""

    episode: Episode
    terms: tuple[Term, ...]

    def term(self, name: str) -> Term:
        return next(t for t in self.terms if t.name == name)


def read_reward(path: Path | str) -> Reward:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LudusError(f"{path} cannot be read: {error}") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LudusError(f"{path} is not valid TOML: {error}") from None
    try:
        return parse_reward(data)
    except LudusError as error:
        raise LudusError(f"{path}: {error}") from None


def parse_reward(data: dict[str, Any]) -> Reward:
    """Checks and fills in defaults; refuses what means nothing, with the nearest name that does."""
    for name in data:  # other tables are the writer's own notes, unless they look like a slip
        if name not in SECTIONS and difflib.get_close_matches(name, SECTIONS, cutoff=0.7):
            raise LudusError(f"unknown section '{name}': {nearest(name, SECTIONS)}")
    episode = data.get("episode")
    if isinstance(episode, dict):
        _known(episode, [f.name for f in dataclasses.fields(Episode)], "[episode]")
    if not isinstance(episode, dict) or "max_steps" not in episode:
        raise LudusError(
            "max_steps is missing in [episode]: say how many steps an episode lasts at most"
        )
    terms = data.get("term", [])
    if not isinstance(terms, list) or not terms:
        raise LudusError("there is no [[term]]: a reward has at least one")
    reward = Reward(_episode(episode), tuple(_term(t, i) for i, t in enumerate(terms, 1)))
    _check_names(reward)
    return reward


def _episode(data: dict[str, Any]) -> Episode:
    whole = {"max_steps": 1, "num_agents": 1}
    values: dict[str, Any] = {
        k: _whole(v, k, "[episode]", whole[k]) if k in whole else _number(v, k, "[episode]")
        for k, v in data.items()
    }
    episode = Episode(**values)
    _inside(episode.gamma, 0, 1, "gamma in [episode]")
    _inside(episode.failure_probability, 0, 1, "failure_probability in [episode]")
    _inside(episode.reward_clip, 0, math.inf, "reward_clip in [episode]")
    return episode


def _term(data: Any, position: int) -> Term:
    if not isinstance(data, dict):
        raise LudusError(
            f"term {position} is a {type(data).__name__}: write it as [[term]] with name, kind and "
            "value"
        )
    where = f"term '{data.get('name', position)}'"
    fields = {f.name: f for f in dataclasses.fields(Term)}
    data = {k: v for k, v in data.items() if k not in NOTES}
    _known(data, [*fields, "value"], where)
    for name in ("name", "kind"):
        if not isinstance(data.get(name), str) or not data[name]:
            raise LudusError(f"{where} has no {name}: every term needs name, kind and a value")
    if data["kind"] not in KINDS:
        raise LudusError(f"{where}: unknown kind '{data['kind']}': {nearest(data['kind'], KINDS)}")
    values: dict[str, Any] = {"name": data["name"], "kind": data["kind"]}
    for name, value in data.items():
        if name in ("name", "kind", "value", "low", "high"):
            continue
        if isinstance(fields[name].default, bool):
            if not isinstance(value, bool):
                raise LudusError(f"{where}: {name} = {value!r} is neither true nor false")
            values[name] = value
        elif name == "requires":
            if not isinstance(value, str):
                raise LudusError(f"{where}: requires = {value!r} is not the name of a term")
            values[name] = value
        elif name in ("random_share", "reach_probability"):
            values[name] = _inside(_number(value, name, where), 0, 1, f"{name} of {where}")
        else:
            values[name] = _whole(value, name, where, 0)
    low, high = _amount(data, where, values.get("varies", False))
    return Term(**values, low=low, high=high)


def _amount(data: dict[str, Any], where: str, varies: bool) -> tuple[float, float]:
    """`value`, or `low` and `high`. A single value that varies is the most extreme one: it reaches
    from 0 to there."""
    if "value" in data:
        if "low" in data or "high" in data:
            raise LudusError(f"{where} has a value and a range: give value, or low and high")
        if isinstance(data["value"], list):
            raise LudusError(
                f"{where}: value = {data['value']} is a list: write a range as low and high"
            )
        value = _number(data["value"], "value", where)
        return (min(value, 0.0), max(value, 0.0)) if varies else (value, value)
    if "low" not in data and "high" not in data:
        raise LudusError(f"{where} has no value: give value, or low and high")
    low, high = (
        _number(data.get("low", 0.0), "low", where),
        _number(data.get("high", 0.0), "high", where),
    )
    if low > high and not ("low" in data and "high" in data):
        there, missing = ("high", "low") if "high" in data else ("low", "high")
        raise LudusError(
            f"{where} has {there} = {data[there]} and no {missing}: give both, the worst first"
        )
    if low > high:
        raise LudusError(f"{where}: low = {low:g} is above high = {high:g}: exchange them")
    return low, high


def _check_names(reward: Reward) -> None:
    names = [t.name for t in reward.terms]
    for name in names:
        if names.count(name) > 1:
            raise LudusError(f"two terms are called '{name}': give each its own name")
    for t in reward.terms:
        if t.requires and t.requires not in names:
            raise LudusError(
                f"term '{t.name}' requires '{t.requires}', which is no term: "
                f"{nearest(t.requires, names)}"
            )


def _known(data: dict[str, Any], known: list[str], where: str) -> None:
    for name in data:
        if name not in known:
            raise LudusError(f"{where}: unknown key '{name}': {nearest(name, known)}")


def _number(value: Any, name: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise LudusError(f"{where}: {name} = {value!r} is not a finite number")
    return float(value)


def _whole(value: Any, name: str, where: str, least: int) -> int:
    number = _number(value, name, where)
    if number != int(number) or number < least:
        raise LudusError(f"{where}: {name} = {value!r} must be a whole number of at least {least}")
    return int(number)


def _inside(value: float, low: float, high: float, what: str) -> float:
    if not low <= value <= high:
        raise LudusError(f"{what} is {value:g}: it must be between {low:g} and {high:g}")
    return value
