"""The one metric of a run that chooses its best checkpoint and comes first wherever the run is
shown.

`prepare` writes its name into checkpoint.best_metric, so that whoever reads the config knows it.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ludus.batches import layout_of
from ludus.config import Config
from ludus.errors import LudusError
from ludus.intervals import GREEDY
from ludus.play.evaluate import metric_names
from ludus.play.opponents import spelled_out
from ludus.protocols import Layout
from ludus.sim.episode import RANDOM
from ludus.sim.game import Game
from ludus.sim.program import controllers
from ludus.who import POOL, SNAPSHOTS

WEAK = ("bot:random", "bot:still")


def evaluated(config: Config, layout: Layout, game: Game | None) -> list[str]:
    """The names of the metrics that this config's evaluations write, without those of their
    intervals."""
    bots = (
        controllers(game)
        if game is not None
        else {s.role: {"random": RANDOM} for s in layout.seats}
    )
    names = []
    for who in spelled_out(config.eval.against, layout, bots):
        seated = POOL if who.kind == SNAPSHOTS else str(who)
        names += [f"eval/{who}/{name}" for name in metric_names(layout, game, bots, seated)]
    return names


def refuse_unevaluated(setting: str, chosen: str, names: Sequence[str], greedy: bool) -> None:
    """A metric that something waits for must be one of those that evaluations write."""
    if chosen in names or (greedy and chosen.removesuffix(GREEDY) in names):
        return
    close = difflib.get_close_matches(chosen, names, 3, 0.5)
    opponents, metrics = (dict.fromkeys(name.split("/", 2)[k] for name in names) for k in (1, 2))
    first = f"use {' or '.join(close)}; there is" if close else "there is"
    raise LudusError(
        f"{setting}={chosen} will not be evaluated: {first} eval/AGAINST/METRIC with AGAINST one "
        f"of {', '.join(opponents) or 'nobody'} "
        f"and METRIC one of {', '.join(metrics) or 'nothing'}"
        + (", each also with _greedy" if greedy else "")
    )


def check_stage_metrics(config: Config) -> None:
    """A stage that ends by an evaluation waits for a metric that evaluations write."""
    layout, game = layout_of(config)
    names = evaluated(config, layout, game)
    for i, stage in enumerate(config.curriculum.stages):
        if stage.metric.startswith("eval/"):
            refuse_unevaluated(f"metric of stage {i + 1}", stage.metric, names, greedy=False)


def headline(config: Config) -> str | None:
    """checkpoint.best_metric, which must be evaluated; else the game's headline, or what is nearest
    to it. None: nothing is evaluated."""
    layout, game = layout_of(config)
    names = evaluated(config, layout, game)
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
