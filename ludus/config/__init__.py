"""The whole configuration as dataclasses, a file per subject. Settings of an algorithm and of a
network are beside its code.

A field's docstring is its help text; None means: derived, see `resolve`. An experiment (a recipe)
is a function that returns a Config. Any `Scalar` may be a schedule (`ludus.config.schedules`).
"""

from ludus.config.algorithm import AlgorithmConfig, RoleConfig
from ludus.config.curriculum import VARY, CurriculumConfig, Stage, TasksConfig
from ludus.config.derived import resolve
from ludus.config.experiment import Config
from ludus.config.in_use import (
    full_name,
    option_of,
    refuse_unused,
    set_by_name,
)
from ludus.config.league import LeagueConfig, mixes, uses_pool
from ludus.config.network import NetworkConfig
from ludus.config.own_code import bots_named, own_code
from ludus.config.policy import OF_ACTIONS, PolicyConfig
from ludus.config.running import (
    ON_CRITICAL,
    CheckpointConfig,
    DoctorConfig,
    EvalConfig,
    LogConfig,
    TrainConfig,
)
from ludus.config.types import check_types
from ludus.config.values import apply_preset, flatten, origins, set_value, unflatten

__all__ = [
    "OF_ACTIONS",
    "ON_CRITICAL",
    "VARY",
    "AlgorithmConfig",
    "CheckpointConfig",
    "Config",
    "CurriculumConfig",
    "DoctorConfig",
    "EvalConfig",
    "LeagueConfig",
    "LogConfig",
    "NetworkConfig",
    "PolicyConfig",
    "RoleConfig",
    "Stage",
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
    "refuse_unused",
    "resolve",
    "set_by_name",
    "set_value",
    "unflatten",
    "uses_pool",
]
