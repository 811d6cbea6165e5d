"""Stages of a curriculum: each has its opponents and game parameters, and ends on the measured win rate's lower bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ludus.config import Stage
from ludus.errors import LudusError
from ludus.league.league import League
from ludus.league.lineups import make_lineups, parse_mix
from ludus.league.tally import RECENT


class Stages:
    """Where a run stands in its curriculum."""

    def __init__(self, stages: Sequence[Stage], league: League, batch: Any) -> None:
        self.stages, self.league, self.batch = stages, league, batch
        self.current = 0

    def enter(self, number: int) -> None:
        """From each env's next reset row on. What was counted before does not count for this stage."""
        self.current = number
        stage = self.stages[number]
        self.league.set_mix(stage.mix)
        self.batch.set_params(stage.game)
        self.league.tally.counts.pop(stage.opponent, None)

    def after_iteration(self) -> dict[str, float]:
        """Moves on where the stage's opponent is surely beaten."""
        stage = self.stages[self.current]
        metrics = {"curriculum/stage": float(self.current)}
        if not stage.opponent:
            return metrics
        counts = self.league.tally.counts.get(stage.opponent)
        low = self.league.tally.interval(stage.opponent)[0]
        metrics |= {"curriculum/win_rate_low": low, "curriculum/win_rate_needed": stage.win_rate}
        if counts is not None and counts[0] >= stage.least_episodes and low >= stage.win_rate:
            self.enter(self.current + 1)
        return metrics

    def state(self) -> dict[str, int]:
        return {"stage": self.current}

    def load_state(self, state: Mapping[str, int]) -> None:
        """Lineups, parameters and tally are restored with the simulator and the league."""
        self.current = int(state["stage"])
        self.league.lineups = self.league.make_lineups(self.stages[self.current].mix)


def check_stages(stages: Sequence[Stage], first: int, layout: Any, bots: Mapping[str, Mapping[str, int]]) -> None:
    """Refuses a curriculum that can never move on, or begins where there is no stage."""
    if not 1 <= first <= max(len(stages), 1):
        raise LudusError(f"curriculum.first_stage is {first}, but there are {len(stages)} stages: use 1 to {max(len(stages), 1)}")
    for i, stage in enumerate(stages):
        last = i == len(stages) - 1
        where = f"stage {i + 1} of {len(stages)}"
        if last and stage.opponent:
            raise LudusError(f"{where} waits for {stage.opponent} to be beaten, but nothing follows it: leave its opponent empty")
        if last:
            continue
        if not stage.opponent:
            raise LudusError(f"{where} never ends: give it an opponent whose defeat ends it, such as bot:random")
        met = [lineup.key for lineup in make_lineups(layout, bots, parse_mix(stage.mix)) if lineup.side]
        if stage.opponent not in met:
            raise LudusError(
                f"{where} waits for {stage.opponent} to be beaten but never meets it: it meets {', '.join(met) or 'only itself'}"
            )
        if not 0 < stage.win_rate < 1:
            raise LudusError(
                f"{where} ends at a win rate of {stage.win_rate}, which a lower bound never reaches: use less than 1"
            )
        if stage.least_episodes > RECENT:
            raise LudusError(
                f"{where} needs {stage.least_episodes} episodes, but win rates are kept over the last {RECENT}: use at most {RECENT}"
            )
        most = 1 / (1 + 1.96**2 / RECENT)
        if stage.win_rate > most:
            raise LudusError(
                f"{where} needs a lower bound of {stage.win_rate}, but winning all of the last {RECENT} episodes gives {most:.3f}"
            )
