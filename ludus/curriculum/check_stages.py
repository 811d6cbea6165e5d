"""A curriculum that could never move on, or cannot be played, is refused before anything is
trained."""

from __future__ import annotations

from collections.abc import Mapping

from ludus.batches import GameInfo, values_at
from ludus.config import Config, Stage
from ludus.errors import LudusError, nearest
from ludus.league.tally import RECENT
from ludus.play.evaluated import evaluated, refuse_unevaluated
from ludus.play.lineups import make_lineups
from ludus.protocols import Layout as LayoutProtocol
from ludus.sim.game import Game
from ludus.sim.layout import Layout
from ludus.who import read_mix


def check_stages(config: Config, info: GameInfo) -> None:
    """Refuses a curriculum that can never move on in this game, or changes it in a way that it
    cannot be changed."""
    stages, layout, bots, game = (config.curriculum.stages, info.layout, info.bots, info.game)
    if stages and game is None:
        raise LudusError(
            f"{config.game} has no opponents and no parameters that stages could change: leave "
            "curriculum.stages empty"
        )
    for i, stage in enumerate(stages):
        where = f"stage {i + 1} of {len(stages)}"
        _check_opponent(stage, where, layout, bots)
        _check_metric(stage, where, layout, game)
        if stage.metric.startswith("eval/"):
            names = evaluated(config, info)
            refuse_unevaluated(f"metric of stage {i + 1}", stage.metric, names, greedy=False)
    for i, stage in enumerate(stages):
        _check_values(stage, f"stage {i + 1} of {len(stages)}", config, info)


def _check_values(stage: Stage, where: str, config: Config, info: GameInfo) -> None:
    """Game values must fit the game, and other sizes must leave the policy as it is."""
    game = info.game
    assert game is not None
    settings = game.resolve({**values_at(config, 0.0), **stage.game}, info.preset)
    layout, first = Layout(game, settings), info.layout.describe()
    other = layout.describe()
    sizes = {n: v for n, v in stage.game.items() if n in game.sizes}
    for part in ("observation", "seen", "action"):
        if other.get(part) != first.get(part):
            named = ", ".join(f"{n}={v:g}" for n, v in sizes.items())
            raise LudusError(
                f"{where} has {named}, with which agents have another {part}: a policy cannot "
                "carry over; use sizes that leave it alone"
            )
    if sizes:
        config.check({s.role: s.count * s.teams * config.envs for s in layout.seats})


def _check_opponent(
    stage: Stage, where: str, layout: LayoutProtocol, bots: Mapping[str, Mapping[str, int]]
) -> None:
    if not stage.opponent:
        return
    met = [lineup.key for lineup in make_lineups(layout, bots, read_mix(stage.mix)) if lineup.side]
    if stage.opponent not in met:
        raise LudusError(
            f"{where} waits for {stage.opponent} to be beaten but never meets it: it meets "
            f"{', '.join(met) or 'only itself'}"
        )
    if stage.least_episodes > RECENT:
        raise LudusError(
            f"{where} needs {stage.least_episodes} episodes, but win rates are kept over the last "
            f"{RECENT}: use at most {RECENT}"
        )
    most = 1 / (1 + 1.96**2 / RECENT)
    if stage.win_rate > most:
        raise LudusError(
            f"{where} needs a lower bound of {stage.win_rate}, but winning all of the last "
            f"{RECENT} episodes gives {most:.3f}"
        )


def _check_metric(stage: Stage, where: str, layout: LayoutProtocol, game: Game | None) -> None:
    kind, _, rest = stage.metric.partition("/")
    if not stage.metric or (kind == "eval" and rest):
        return
    goals = game.goal_metrics if game is not None else {}
    known = [
        f"goal/{s.role}/{name}"
        for s in layout.seats
        for name, goal in goals.items()
        if goal.concerns(s.role)
    ]
    if stage.metric not in known:
        raise LudusError(
            f"{where} ends by the metric '{stage.metric}': {nearest(stage.metric, known)} (or one "
            "of an evaluation, "
            f"such as eval/self/{next(iter(goals), 'return')})"
        )
