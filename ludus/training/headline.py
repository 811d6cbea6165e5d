"""The one metric of a run that chooses its best checkpoint and comes first wherever the run is shown.

`prepare` writes its name into checkpoint.best_metric, so that whoever reads the config knows it.
"""

from __future__ import annotations

from typing import Any

from ludus.config import Config
from ludus.errors import LudusError
from ludus.sim.episode import RANDOM
from ludus.sim.game import Game
from ludus.sim.program import controllers
from ludus.training.evaluate import against_list, metric_names
from ludus.training.sources import layout_of

WEAK = ("bot:random", "bot:still")


def evaluated(config: Config, layout: Any, game: Game | None) -> list[str]:
    """The names of the metrics that this config's evaluations write, without those of their intervals."""
    bots = controllers(game) if game is not None else {s.role: {"random": RANDOM} for s in layout.seats}
    single = len(layout.seats) == 1 and layout.seats[0].teams == 1
    names = []
    for against in against_list(bots, config.eval.against, single):
        seated = "pool" if against == "snapshots" else against
        names += [f"eval/{against}/{name}" for name in metric_names(layout, game, bots, seated)]
    return names


def headline(config: Config) -> str | None:
    """checkpoint.best_metric, which must be evaluated; else the game's headline, or what is nearest to it. None: nothing is
    evaluated."""
    layout, game = layout_of(config)
    names = evaluated(config, layout, game)
    chosen = config.checkpoint.best_metric
    if chosen is not None:
        greedy = [f"{name}_greedy" for name in names if config.eval.greedy]
        if chosen not in (*names, *greedy):
            choice = ", ".join(names) + (" (each also with _greedy)" if greedy else "")
            raise LudusError(f"checkpoint.best_metric={chosen} will not be evaluated: use one of {choice or 'nothing'}")
        return chosen
    declared = game.headline if game is not None else None
    goal = declared.goal if declared else next(iter(game.goal_metrics if game is not None else ()), "return")
    first = f"eval/{declared.against}/" if declared else ""
    ranked = sorted((n for n in names if _last(n) == goal), key=lambda n: (not n.startswith(first), _weakness(n)))
    return next(iter([*ranked, *(n for n in names if _last(n) == "return")]), None)


def _weakness(name: str) -> int:
    """Opponents that get better with the policy say less about it than a fixed bot, and one that plays at random least."""
    against = name.split("/")[1]
    return 3 if against == "snapshots" else 2 if against in WEAK else 1 if against == "self" else 0


def _last(name: str) -> str:
    return name.rpartition("/")[2]
