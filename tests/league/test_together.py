import pytest

from tests.league.together import assert_alike


@pytest.mark.parametrize("recipe", ["brawl", "brawl_strategy", "mechs_2v2", "hide_and_seek"])
def test_snapshots_act_in_one_go_as_each_would_alone(recipe, monkeypatch):
    assert_alike(recipe, "cpu", monkeypatch)


def test_snapshots_that_learn_values_do_so_too(monkeypatch):
    assert_alike("racing_lidar", "cpu", monkeypatch, algorithm="rainbow")
