"""The simulator: declare a game, run a batch of it on CPU threads or CUDA."""

from numpy import float32, int32

from ludus.sim import random
from ludus.sim.batch import Batch
from ludus.sim.game import (
    Binary,
    Bot,
    Choice,
    Continuous,
    Game,
    Goal,
    Headline,
    Image,
    Param,
    Phase,
    Role,
    Term,
    Tokens,
    bot,
    each,
    f32,
    flag,
    i8,
    i16,
    i32,
    phase,
    u8,
)

__all__ = [
    "Batch",
    "Binary",
    "Bot",
    "Choice",
    "Continuous",
    "Game",
    "Goal",
    "Headline",
    "Image",
    "Param",
    "Phase",
    "Role",
    "Term",
    "Tokens",
    "bot",
    "each",
    "f32",
    "flag",
    "float32",
    "i8",
    "i16",
    "i32",
    "int32",
    "phase",
    "random",
    "u8",
]
