"""Settings of what changes while the agent learns: stages and tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from ludus.config.limits import AtLeast, Below
from ludus.errors import LudusError

if TYPE_CHECKING:
    from ludus.config.experiment import Config

VARY = "curriculum.tasks.vary."  # followed by the name of a game parameter


@dataclass(kw_only=True)
class Stage:
    """A part of a curriculum: it ends when the win rate against an opponent, or another metric, is
    surely good enough."""

    mix: str = ""
    """Opponents of this stage, as in league.mix."""
    opponent: str = ""
    """Whose defeat ends the stage, such as bot:constant. The last stage has no end."""
    win_rate: float = 0.9
    """The lower confidence bound of the win rate that must be reached."""
    metric: str = ""
    """Instead of an opponent: what ends the stage, a goal metric of its training episodes
    (goal/ROLE/GOAL) or a metric of evaluations (eval/AGAINST/METRIC)."""
    threshold: float | None = None
    """What the metric's lower confidence bound must reach; its upper one where less is better."""
    least_episodes: int = 200
    """Training episodes it is measured over, at least."""
    least_agent_steps: int = 0
    """The stage lasts at least so many agent-steps."""
    most_agent_steps: int | None = None
    """The stage ends after so many agent-steps, whatever was reached (default: never)."""
    game: dict[str, float] = field(default_factory=dict)
    """Game parameters, reward.TERM weights and sizes of this stage. What a stage leaves out is as
    the run's game has it."""

    def check(self, where: str, is_last: bool) -> None:
        """Refuses a stage that never ends, or that waits although nothing follows it."""
        if is_last:
            self._check_last(where)
            return
        if not self.opponent and not self.metric and self.most_agent_steps is None:
            raise LudusError(
                f"{where} never ends: give it an opponent whose defeat ends it, such as "
                "bot:random, a metric and its threshold, or most_agent_steps"
            )
        if self.opponent and self.metric:
            raise LudusError(
                f"{where} ends by {self.opponent} and by {self.metric}: use one of them"
            )
        if self.opponent and not 0 < self.win_rate < 1:
            raise LudusError(
                f"{where} ends at a win rate of {self.win_rate}, which a lower bound never "
                "reaches: use less than 1"
            )
        if self.metric and self.threshold is None:
            raise LudusError(
                f"{where} ends by {self.metric} but has no threshold: say what it must reach"
            )
        least = max(1, self.least_agent_steps)
        if self.most_agent_steps is not None and self.most_agent_steps < least:
            raise LudusError(
                f"{where} lasts at most {self.most_agent_steps:,} agent-steps but at least "
                f"{least:,}: raise most_agent_steps or lower least_agent_steps"
            )

    def _check_last(self, where: str) -> None:
        if self.opponent or self.metric or self.most_agent_steps is not None:
            asked = self.opponent and f"{self.opponent} to be beaten"
            waits = asked or self.metric or f"{self.most_agent_steps} agent-steps to pass"
            raise LudusError(
                f"{where} waits for {waits}, but nothing follows it: leave opponent, metric and "
                "most_agent_steps of the last stage empty"
            )


@dataclass(kw_only=True)
class TasksConfig:
    """Every env plays a task of its own: other values of some game parameters, drawn anew in its
    reset rows."""

    vary: dict[str, str] = field(default_factory=dict)
    """Values of a parameter or reward.TERM to choose from, "1, 3, 5", or their bounds, "0.1 to 0.5"
    (default: no tasks)."""
    sampler: str = "learning_progress"
    """learning_progress (tasks whose score moves, or is above that of random play), uniform, or
    package.module:function of your own."""
    pool: Annotated[int, AtLeast(2)] = 1000
    """Tasks to draw from; all of them where fewer are possible."""
    goal: str | None = None
    """Goal metric that is a task's score (default: the game's first)."""
    baseline: float | None = None
    """Score of random play (default: measured at the start)."""
    fast_rate: float = 0.1
    """How far the fast average of a task's scores moves per completed episode."""
    slow_rate: float = 0.02
    """The same of the slow average."""
    evict_share: Annotated[float, Below(1)] = 0.4
    """Share of the tasks, those of least progress, that make room for new ones."""
    evict_after: Annotated[int, AtLeast(1)] = 5
    """Completed episodes before a task may be evicted."""

    def check(self) -> None:
        """Refuses settings that cannot work together."""
        if not self.vary and self != TasksConfig():
            raise LudusError(
                "curriculum.tasks has settings but no tasks: say what varies with "
                "curriculum.tasks.vary.PARAMETER"
            )
        if not 0 < self.slow_rate < self.fast_rate <= 1:
            raise LudusError(
                f"curriculum.tasks: the slow rate {self.slow_rate:g} and the fast rate "
                f"{self.fast_rate:g} must rise, between 0 and 1"
            )


@dataclass(kw_only=True)
class CurriculumConfig:
    """What changes while the agent learns. Game parameters may also be schedules: --game.trees "0
    -> 20"."""

    stages: tuple[Stage, ...] = ()
    """Stages, one after the other (set in recipes)."""
    first_stage: int = 1
    """The stage to begin with, for a run that goes on from a policy trained on the earlier ones
    (--init-from)."""
    tasks: TasksConfig = field(default_factory=TasksConfig)

    def check(self, config: Config) -> None:
        """Refuses settings that cannot work together."""
        count = len(self.stages)
        if not 1 <= self.first_stage <= max(count, 1):
            raise LudusError(
                f"curriculum.first_stage is {self.first_stage}, but there are {count} stages: use "
                f"1 to {max(count, 1)}"
            )
        for number, stage in enumerate(self.stages, 1):
            stage.check(f"stage {number} of {count}", is_last=number == count)
        if self.stages and config.league.mix:
            raise LudusError(
                "league.mix and curriculum.stages are both set: a stage brings its own mix; leave "
                "league.mix empty"
            )
        if self.tasks.vary and any(stage.game for stage in self.stages):
            raise LudusError(
                "curriculum.tasks and stages with game values would both set parameters: use one "
                "of them"
            )
        self.tasks.check()
