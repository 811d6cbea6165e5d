"""The whole configuration of one experiment, and presets that change a part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from ludus.config.curriculum import CurriculumConfig
from ludus.config.handed_over import source_of
from ludus.config.league import LeagueConfig
from ludus.config.limits import AtLeast, OneOf, check_limits
from ludus.config.policy import PolicyConfig
from ludus.config.ppo import PPOConfig
from ludus.config.rainbow import RainbowConfig
from ludus.config.running import CheckpointConfig, DoctorConfig, EvalConfig, LogConfig, TrainConfig
from ludus.config.schedules import Scalar
from ludus.errors import LudusError, nearest

PRESETS: dict[str, dict[str, Any]] = {
    "fast": {"learn.epochs": 2, "eval.greedy": False, "log.tensorboard": False},
    "stable": {
        "learn.epochs": 4,
        "learn.clip": 0.1,
        "learn.target_kl": 0.02,
        "learn.max_grad_norm": 0.5,
    },
}


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
    algorithm: Annotated[str, OneOf(("ppo", "rainbow"))] = "ppo"
    """ppo (settings in learn) or rainbow (settings in rainbow)."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    learn: PPOConfig = field(default_factory=PPOConfig)
    rainbow: RainbowConfig = field(default_factory=RainbowConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    league: LeagueConfig = field(default_factory=LeagueConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    log: LogConfig = field(default_factory=LogConfig)
    doctor: DoctorConfig = field(default_factory=DoctorConfig)

    def learning_rates(self, roles: Sequence[str]) -> dict[str, Scalar]:
        """Of the algorithm in use, by the names they are set by."""
        if self.algorithm == "rainbow":
            return {"rainbow.learning_rate": self.rainbow.learning_rate}
        own = {
            f"learn.roles.{r}.learning_rate": self.learn.for_role(r).learning_rate
            for r in roles
            if r in self.learn.roles
        }
        return {"learn.learning_rate": self.learn.learning_rate, **own}

    def check(self, rows: Mapping[str, int]) -> None:
        """Refuses what cannot work, before anything is written: single values, then what does not
        go together. `rows`: agents of each role, in all envs."""
        check_limits(self)
        algorithm, budget = self.algorithm_settings, self.train.total_agent_steps
        algorithm.check(self, rows)
        self.policy.check()
        self.league.check(self)
        self.curriculum.check(self)
        self.eval.check(self)
        self.train.check()
        rollout = algorithm.rollout * sum(rows.values())
        if budget is not None and rollout > budget:
            section = "rainbow" if self.algorithm == "rainbow" else "learn"
            raise LudusError(
                f"one rollout is {rollout:,} agent-steps but the whole budget is {budget:,}: there "
                f"would be no update; lower {section}.rollout or envs, or raise "
                "train.total_agent_steps"
            )

    @property
    def algorithm_settings(self) -> PPOConfig | RainbowConfig:
        """Of the algorithm in use."""
        return self.rainbow if self.algorithm == "rainbow" else self.learn

    def __post_init__(self) -> None:
        if not isinstance(self.game, str):
            self.game = source_of(self.game)


def apply_preset(config: Config, name: str) -> None:
    """Presets change a recipe where it trades speed against stability."""
    if name not in PRESETS:
        raise LudusError(f"unknown preset '{name}': {nearest(name, PRESETS)}")
    for key, value in PRESETS[name].items():
        section, _, attribute = key.partition(".")
        setattr(getattr(config, section), attribute, value)
