"""Sick recipes that no option of a shipped one makes."""

from __future__ import annotations

from ludus.config import Config
from ludus.recipes.hide_and_seek import hide_and_seek


def hide_and_seek_1800() -> Config:
    """Episodes of 1,800 steps, as the original began with."""
    config = hide_and_seek()
    config.game_values = {**config.game_values, "max_steps": 1800}
    return config
