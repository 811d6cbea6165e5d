"""What evaluations have measured: which way is better, what it is called, what is worth showing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ludus.intervals import GREEDY, HIGH, LOW, is_plain

FALLS = ("loss_rate", "draw_rate")  # beside goal metrics, what is better low


def lower_is_better(name: str, layout: Mapping[str, Any]) -> bool:
    """`layout`: the game's, as game.json and Layout.describe() have it."""
    last = name.removesuffix(GREEDY).rpartition("/")[2]
    return last in FALLS or not layout.get("goal_metrics", {}).get(last, {}).get(
        "higher_is_better", True
    )


def as_good(value: float, best: float, lower: bool) -> bool:
    """Is it at least as good as the best so far?"""
    return value <= best if lower else value >= best


def newest(lines: Sequence[Mapping[str, Any]], name: str | None) -> dict[str, Any] | None:
    """The last value of an evaluated metric, its interval and the step it was measured at; None: it
    never was."""
    line = next(
        (line for line in reversed(lines) if name is not None and line.get(name) is not None), None
    )
    if line is None or name is None:
        return None
    parts = {
        "value": name,
        "low": name + LOW,
        "high": name + HIGH,
        "step": "progress/agent_steps",
    }
    return {"metric": name, **{part: line.get(key) for part, key in parts.items()}}


def in_words(name: str) -> str:
    """eval/bot:flee/catch_rate → catch_rate against bot:flee."""
    _, against, *rest = name.split("/")
    what = " ".join(rest)
    return what if against == "self" else f"{what} against {against}"


def measurements(names: Iterable[str], lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """The evaluated metrics worth a reader's time: without ends of intervals, lengths and greedy
    play, and without the rates of outcomes that repeat a goal metric (win and win_rate)."""
    shown = [n for n in names if n.startswith("eval/") and is_plain(n) and not n.endswith("length")]
    return [
        n
        for n in shown
        if not (n.endswith("_rate") and _repeats(n, n.removesuffix("_rate"), shown, lines))
    ]


def _repeats(
    name: str, other: str, names: Sequence[str], lines: Sequence[Mapping[str, Any]]
) -> bool:
    return other in names and all(line.get(name) == line.get(other) for line in lines)
