"""The whole configuration as dataclasses, a file per subject; that of Rainbow is with the
algorithm.

A field's docstring is its help text; None means: derived, see `resolve`. An experiment (a recipe)
is a function that returns a Config. Any `Scalar` may be a schedule (`ludus.config.schedules`).
"""

from ludus.config.curriculum import VARY, CurriculumConfig, Stage, TasksConfig
from ludus.config.derived import resolve
from ludus.config.experiment import PRESETS, Config, apply_preset
from ludus.config.in_use import (
    full_name,
    option_of,
    refuse_preset,
    refuse_unused,
    set_by_name,
    settings_of,
)
from ludus.config.league import LeagueConfig, mixes, uses_pool
from ludus.config.own_code import bots_named, own_code
from ludus.config.policy import OF_ACTIONS, STRATEGY_SIZES, PolicyConfig, StrategyConfig
from ludus.config.ppo import SHARED_BY_ROLES, PPOConfig
from ludus.config.rainbow import RainbowConfig
from ludus.config.running import (
    ON_CRITICAL,
    CheckpointConfig,
    DoctorConfig,
    EvalConfig,
    LogConfig,
    TrainConfig,
)
from ludus.config.types import check_types
from ludus.config.values import flatten, origins, set_value, unflatten

__all__ = [
    "OF_ACTIONS",
    "ON_CRITICAL",
    "PRESETS",
    "SHARED_BY_ROLES",
    "STRATEGY_SIZES",
    "VARY",
    "CheckpointConfig",
    "Config",
    "CurriculumConfig",
    "DoctorConfig",
    "EvalConfig",
    "LeagueConfig",
    "LogConfig",
    "PPOConfig",
    "PolicyConfig",
    "RainbowConfig",
    "Stage",
    "StrategyConfig",
    "TasksConfig",
    "TrainConfig",
    "apply_preset",
    "bots_named",
    "check_types",
    "flatten",
    "full_name",
    "mixes",
    "option_of",
    "origins",
    "own_code",
    "refuse_preset",
    "refuse_unused",
    "resolve",
    "set_by_name",
    "set_value",
    "settings_of",
    "unflatten",
    "uses_pool",
]
