"""Proximal policy optimisation."""

from ludus.algorithms.ppo.config import PPOConfig

__all__ = ["PPOConfig"]
