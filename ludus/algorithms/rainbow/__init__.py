"""Rainbow with implicit quantiles."""

from ludus.algorithms.rainbow.config import RainbowConfig

__all__ = ["RainbowConfig"]
