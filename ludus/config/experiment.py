"""The whole configuration of one experiment."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated

from ludus.config.algorithm import AlgorithmConfig
from ludus.config.curriculum import CurriculumConfig
from ludus.config.handed_over import source_of
from ludus.config.league import LeagueConfig
from ludus.config.limits import AtLeast, OneOf, check_limits
from ludus.config.policy import PolicyConfig
from ludus.config.running import CheckpointConfig, DoctorConfig, EvalConfig, LogConfig, TrainConfig
from ludus.config.schedules import Scalar
from ludus.errors import LudusError
from ludus.imports import in_one_sentence, section_name
from ludus.registry import ALGORITHMS


def settings_of_algorithm(name: str) -> type[AlgorithmConfig]:
    """The dataclass of an algorithm's settings."""
    taken = {*(f.name for f in fields(Config)), *dir(Config), "learn"}
    ALGORITHMS.refuse_taken(name, taken, "the config's own")
    return ALGORITHMS.settings_of(name, AlgorithmConfig)


@dataclass(kw_only=True)
class Config:
    """One experiment."""

    game: str
    """A game, game:preset, package.module:GAME, gym:ID, pettingzoo:MODULE, or an env or a function
    that makes one."""
    game_values: dict[str, Scalar] = field(default_factory=dict)
    """Sizes, parameters and reward.TERM weights that differ from the game's own; game.KEY on the
    command line."""
    envs: Annotated[int, AtLeast(1)] = 1024
    """Number of envs."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of everything."""
    device: Annotated[str, OneOf(("cpu", "cuda"))] = "cpu"
    """cpu or cuda."""
    algorithm: str = "ppo"
    """ppo, rainbow or your own, package.module:Class; its settings are the section of its name."""
    learner: AlgorithmConfig = None  # type: ignore[assignment]  # filled in below
    """Settings of the algorithm: the section `section` (default: as the algorithm has them)."""
    other_learners: dict[str, AlgorithmConfig] = field(default_factory=dict)
    """Settings of other algorithms, by their names: a recipe may suit several."""
    callbacks: tuple[str, ...] = ()
    """Classes of your own that are called while the run trains: package.module:Class."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    league: LeagueConfig = field(default_factory=LeagueConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    log: LogConfig = field(default_factory=LogConfig)
    doctor: DoctorConfig = field(default_factory=DoctorConfig)

    @property
    def section(self) -> str:
        """The section with the settings of the algorithm."""
        return section_name(self.algorithm)

    def choose_algorithm(self, name: str) -> None:
        """Another algorithm: with what the recipe has for it, or its defaults. One that has the
        same settings, or more, takes over their values."""
        if name == self.algorithm:
            return
        kind, before = settings_of_algorithm(name), copy.deepcopy(self.learner)
        known = copy.deepcopy(self.other_learners.get(name))
        # plain settings are not those of any algorithm: there is nothing to take over
        if known is None and type(before) is not AlgorithmConfig and issubclass(kind, type(before)):
            known = kind(**{f.name: getattr(before, f.name) for f in fields(before)})
        with in_one_sentence(f"the settings of the algorithm '{name}' cannot be made"):
            self.algorithm, self.learner = name, known or kind()

    def learning_rates(self, roles: Sequence[str]) -> dict[str, Scalar]:
        """By the names they are set by."""
        rates = self.learner.learning_rates(roles)
        return {f"{self.section}.{name}": rate for name, rate in rates.items()}

    def check(self, rows: Mapping[str, int]) -> None:
        """Refuses what cannot work, before anything is written: single values, then what does not
        go together. `rows`: agents of each role, in all envs."""
        kind = settings_of_algorithm(self.algorithm)
        if not isinstance(self.learner, kind):
            raise LudusError(
                f"learner is a {type(self.learner).__name__}, and the settings of the algorithm "
                f"{self.algorithm} are a {kind.__name__}: give it that, or set `algorithm`"
            )
        check_limits(self)
        budget = self.train.total_agent_steps
        with in_one_sentence(f"check of the settings of {self.algorithm} failed"):
            self.learner.check(self, rows)
        self.policy.check()
        self.league.check(self)
        self.curriculum.check(self)
        self.eval.check(self)
        self.train.check()
        rollout = self.learner.rollout * sum(rows.values())
        if budget is not None and rollout > budget:
            raise LudusError(
                f"one rollout is {rollout:,} agent-steps but the whole budget is {budget:,}: there "
                f"would be no update; lower {self.section}.rollout or envs, or raise "
                "train.total_agent_steps"
            )

    def __post_init__(self) -> None:
        if not isinstance(self.game, str):
            self.game = source_of(self.game)
        if self.learner is None:
            self.learner = settings_of_algorithm(self.algorithm)()
