"""Stages of a curriculum: each has its opponents, game parameters and sizes, and ends when a lower
bound is high enough.

A stage begins in each env's next reset row. An episode that began in the stage before counts in no
statistic: it was played against other opponents and with other parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ludus.config import Stage
from ludus.curriculum.measure import Measured
from ludus.league.league import League
from ludus.sim import Batch
from ludus.sim.game import Goal


class Stages:
    """Where a run stands in its curriculum. `resize` makes the run's batch anew with other sizes,
    and returns it."""

    def __init__(
        self,
        stages: Sequence[Stage],
        league: League | None,
        batch: Batch,
        resize: Callable[[Mapping[str, float]], Batch] | None = None,
    ) -> None:
        self.stages, self.league, self.batch, self.resize = stages, league, batch, resize
        self.own_values = own_values(batch.settings)
        self.current = 0
        self.agent_steps = self.begun_at = 0  # of the run: now, and when the current stage began
        self.measured = Measured()

    def enter(self, number: int) -> None:
        """From each env's next reset row on. What was counted before does not count for this
        stage."""
        self.current, self.begun_at, self.measured = number, self.agent_steps, Measured()
        self.take_sizes()
        if self.league is not None:
            self.league.set_mix(self.stages[number].mix)
            self.league.tally.counts.clear()
        self.batch.set_params(self.params())
        self.batch.set_stage(number)

    def values(self) -> dict[str, float]:
        """What any stage sets, as the current one has it: what only others set is as in the run's
        own config."""
        named = dict.fromkeys(name for stage in self.stages for name in stage.game)
        return {name: self.own_values[name] for name in named} | self.stages[self.current].game

    def params(self) -> dict[str, float]:
        """Those of `values` that can change without a new batch: parameters and reward weights."""
        return {n: v for n, v in self.values().items() if n not in self.batch.game.sizes}

    def take_sizes(self) -> None:
        """A batch of the sizes of the current stage."""
        has = self.batch.settings.sizes
        sizes = {n: v for n, v in self.values().items() if n in has}
        if self.resize is not None and any(has[n] != v for n, v in sizes.items()):
            self.batch = self.resize(sizes)

    def after_iteration(self, record: Mapping[str, Any], agent_steps: int) -> dict[str, float]:
        """Moves on where the stage's aim is surely reached, or its time is over."""
        stage, self.agent_steps = self.stages[self.current], agent_steps
        spent = agent_steps - self.begun_at
        metrics = {
            "curriculum/stage": float(self.current),
            "curriculum/stages": float(len(self.stages)),
            "curriculum/stage_agent_steps": float(spent),
        }
        if self.current == len(self.stages) - 1:
            return metrics
        reached = False
        if (aim := self.aim(record)) is not None:
            bound, needed, enough = aim
            metrics |= {"curriculum/bound": bound, "curriculum/needed": needed}
            reached = enough and (bound >= needed if self.higher_is_better else bound <= needed)
        over = stage.most_agent_steps is not None and spent >= stage.most_agent_steps
        if over or (reached and spent >= stage.least_agent_steps):
            self.enter(self.current + 1)
        return metrics

    def after_evaluation(self, record: Mapping[str, Any]) -> None:
        """For a stage that ends by an evaluation's metric."""
        self.measured.evaluated(record, self.stages[self.current].metric)

    def aim(self, record: Mapping[str, Any]) -> tuple[float, float, bool] | None:
        """The bound that decides, what it must reach, and whether there are enough episodes. None:
        nothing is measured yet."""
        stage = self.stages[self.current]
        if stage.opponent and self.league is not None:
            counts = self.league.tally.counts.get(stage.opponent)
            low = self.league.tally.interval(stage.opponent)[0]
            return (
                low,
                stage.win_rate,
                counts is not None and bool(counts[0] >= stage.least_episodes),
            )
        if not stage.metric:
            return None
        self.measured.trained(record, stage.metric)
        found = self.measured.bound(
            share=is_share(stage.metric, self.goals), upper=not self.higher_is_better
        )
        if found is None:
            return None
        bound, episodes = found
        return bound, stage.threshold or 0.0, episodes is None or episodes >= stage.least_episodes

    @property
    def goals(self) -> Mapping[str, Goal]:
        goals: Mapping[str, Goal] = self.batch.game.goal_metrics
        return goals

    @property
    def higher_is_better(self) -> bool:
        """Of what ends the current stage."""
        stage = self.stages[self.current]
        goal = self.goals.get(stage.metric.rsplit("/", 1)[-1])
        return bool(stage.opponent) or goal is None or goal.higher_is_better

    # -- checkpoints -------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {"stage": self.current, "begun_at": self.begun_at, "measured": self.measured.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """The batch has the stage's sizes from now on. Parameters are restored with the simulator,
        win rates with the league."""
        self.current, self.begun_at = int(state["stage"]), int(state["begun_at"])
        self.measured.load_state(state["measured"])
        self.take_sizes()
        if self.league is not None:
            self.league.lineups = self.league.make_lineups(self.stages[self.current].mix)


def own_values(settings: Any) -> dict[str, float]:
    """Sizes, parameters and reward weights by the names that a stage calls them."""
    return {
        **settings.sizes,
        **settings.params,
        **{f"reward.{term}": w for term, w in settings.weights.items()},
    }


def is_share(metric: str, goals: Mapping[str, Goal]) -> bool:
    """Does it lie between 0 and 1?"""
    name = metric.rsplit("/", 1)[-1]
    return goals[name].share if name in goals else name.endswith("_rate")
