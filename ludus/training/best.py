"""Which checkpoint of a run is the best: the score of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ludus.errors import LudusError


def score(record: Mapping[str, Any], chosen: str | None, goals: Mapping[str, Any]) -> tuple[str | None, float]:
    """The chosen metric, or the mean of all goal metrics against strong bots: its name, and a value that is better if higher.

    `record` has the metrics of an evaluation, `goals` the goal metrics of the game.
    """
    names = [chosen] if chosen else default_metrics(record, goals)
    if not names:
        return None, 0.0
    if names[0] not in record:
        raise LudusError(
            f"checkpoint.best_metric={chosen} is not evaluated: there is {', '.join(n for n in record if n.startswith('eval/'))}"
        )
    worse = {n for n in names if _goal(n) in goals and not goals[_goal(n)].higher_is_better}
    value = sum(-record[n] if n in worse else record[n] for n in names) / len(names)
    return (names[0] if len(names) == 1 else f"mean of {', '.join(names)}"), value


def default_metrics(record: Mapping[str, Any], goals: Mapping[str, Any]) -> list[str]:
    """Goal metrics against bots that are no mere random or still ones; else against those; else the game's first goal
    metric wherever it was evaluated; else the first number."""
    evaluated = [n for n in record if n.startswith("eval/") and not n.endswith(("_low", "_high", "_greedy"))]
    of_goals = [n for n in evaluated if _goal(n) in goals]
    # opponents that get better with the policy say nothing about it
    others = [n for n in of_goals if not n.startswith(("eval/self", "eval/snapshots"))]
    strong = [n for n in others if not n.startswith(("eval/bot:random", "eval/bot:still"))]
    return strong or others or of_goals[:1] or evaluated[:1]


def _goal(name: str) -> str:
    return name.rsplit("/", 1)[-1]
