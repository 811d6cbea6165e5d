"""The one metric of a run that chooses its best checkpoint and comes first wherever the run is
shown.

`prepare` writes its name into checkpoint.best_metric, so that whoever reads the config knows it.
"""

from __future__ import annotations

from ludus.batches import GameInfo
from ludus.config import Config
from ludus.play.evaluated import evaluated, refuse_unevaluated

WEAK = ("bot:random", "bot:still")


def headline(config: Config, info: GameInfo) -> str | None:
    """checkpoint.best_metric, which must be evaluated; else the game's headline, or what is nearest
    to it. None: nothing is evaluated."""
    names, game = evaluated(config, info), info.game
    chosen = config.checkpoint.best_metric
    if chosen is not None:
        refuse_unevaluated("checkpoint.best_metric", chosen, names, config.eval.greedy)
        return chosen
    declared = game.headline if game is not None else None
    goal = (
        declared.goal
        if declared
        else next(iter(game.goal_metrics if game is not None else ()), "return")
    )
    first = f"eval/{declared.against}/" if declared else ""
    ranked = sorted(
        (n for n in names if _last(n) == goal),
        key=lambda n: (not n.startswith(first), _weakness(n)),
    )
    return next(iter([*ranked, *(n for n in names if _last(n) == "return")]), None)


def _weakness(name: str) -> int:
    """Opponents that get better with the policy say less about it than a fixed bot, and one that
    plays at random least."""
    against = name.split("/")[1]
    return 3 if against == "snapshots" else 2 if against in WEAK else 1 if against == "self" else 0


def _last(name: str) -> str:
    return name.rpartition("/")[2]
