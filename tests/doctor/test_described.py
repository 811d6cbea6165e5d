"""The described rewards of benchmarks/rewards, and the audit of Ludus's own games."""

from pathlib import Path

import pytest

from benchmarks.rewards.__main__ import SETS, page, results
from ludus.cli import main
from ludus.doctor.finding import verdict
from ludus.examine.audit_game import audit_recipe
from ludus.recipes import RECIPES

ROWS = [row for folder in SETS for row in results(folder)]
PAGE = Path(__file__).parents[2] / "docs" / "doctor" / "rewards.md"


def test_there_are_enough_and_half_are_sound():
    sound = sum(row["expected"] == "ok" for row in ROWS)
    assert len(ROWS) >= 40 and 2 * sound == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_each_gets_its_verdict_and_mechanism(row):
    assert row["right"], (
        f"should be {row['expected']} {row['mechanism']}, is {row['got']} {row['found']}"
    )


def test_the_page_is_current():
    assert PAGE.read_text() == page(), (
        "run: python -m benchmarks.rewards --page > docs/doctor/rewards.md"
    )


def test_watching_pays_is_critical_with_the_sum():
    found = audit_recipe("hide_and_seek:watching_pays")
    assert verdict(found) == "critical"
    assert (
        "0.2 x 204 = 40.8" in found[0].evidence and "succeeding is worth 40 " in found[0].evidence
    )


def test_the_seeds_last_reward_is_a_warning_with_the_sum():
    found = audit_recipe("hide_and_seek:seed_final")
    assert verdict(found) == "warning"
    assert (
        "0.2 x 204 = 40.8" in found[0].evidence and "succeeding is worth 50 " in found[0].evidence
    )


@pytest.mark.parametrize("recipe", RECIPES)
def test_shipped_recipes_are_ok(recipe):
    assert verdict(audit_recipe(recipe)) == "ok"


def test_a_game_of_ones_own():
    """It pays 2 a step for the goal and 0.5 a step for pushing, 5 steps long."""
    found = audit_recipe("tests.sim.games:COUNTER")
    assert "push 0.5 x 5 = 2.5" in found[0].evidence and "one 2 x 5 = 10" in found[0].evidence


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["hide_and_seek:watching_pays", "--paper"], 1),
        (["hide_and_seek:seed_final", "--paper"], 0),
        (["pursuit", "--paper", "--json"], 0),
        (["gym:Nothing-v0"], 2),
        ([], 2),
    ],
)
def test_exit_status(arguments, status, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["doctor", "check", *arguments])
    assert int(stop.value.code or 0) == status
