"""Every shipped recipe can start, and its reward passes the doctor's audit."""

import pytest

from ludus.config import flatten
from ludus.examine.audit_game import audit_recipe
from ludus.recipes import RECIPES, load_recipe
from ludus.training.start import prepare


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_can_start(name):
    config = load_recipe(name)
    config.train.threads, config.device = 1, "cpu"  # neither measured nor asked of this machine
    resolved, origins = prepare(config)
    assert flatten(resolved)["game"] == config.game and set(origins.values()) == {"derived"}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_has_a_sound_reward(name):
    assert not [finding for finding in audit_recipe(name) if finding.severity == "critical"]
