"""The one metric that chooses the best checkpoint and comes first: which it is, and which way is
better."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ludus.batches import game_info
from ludus.config import Config, EvalConfig
from ludus.errors import LudusError
from ludus.recipes import RECIPES, load_recipe
from ludus.runs.measured import in_words, lower_is_better, measurements, newest
from ludus.sim import Goal
from ludus.training.evaluation import Evaluations
from ludus.training.headline import evaluated, headline
from tests.sim.games import COUNTER, PURSUIT

OWN = "tests.training.test_headline:"
NO_HEADLINE = replace(PURSUIT, headline=None)
NO_GOALS = replace(COUNTER, goal_metrics={"pushes": Goal("pushes")}, headline=None)


def best_metric(config):
    return headline(config, game_info(config))


def of(game, *against, **changes):
    return best_metric(Config(game=game, eval=EvalConfig(against=against, **changes)))


def test_every_shipped_recipe_has_the_headline_of_its_game():
    found = {name: best_metric(load_recipe(name)) for name in RECIPES}
    assert (
        found["pursuit"] == "eval/bot:flee/catch_rate"
        and found["hide_and_seek"] == "eval/bot:hider/catch_rate"
    )
    assert (
        found["brawl"] == found["brawl_strategy"] == "eval/bot:based/win"
        and found["mechs_2v2"] == "eval/bot:objective/win"
    )
    assert (
        found["arena_small"] == "eval/self/hearts" and found["racing_lidar"] == "eval/self/finish"
    )
    assert best_metric(load_recipe("gym:CartPole-v1")) == "eval/self/return"


def test_what_is_nearest_to_it_where_its_opponent_is_not_evaluated():
    assert of("pursuit", "self", "bots") == "eval/bot:flee/catch_rate"
    assert of("pursuit", "self", "bot:random") == "eval/self/catch_rate"
    assert of("pursuit", "bot:random") == "eval/bot:random/catch_rate"
    assert of("pursuit", "bot:greedy") == "eval/bot:greedy/runner/return", (
        "the chaser is not measured there"
    )
    assert of("brawl", "bot:random", "bot:kiter", "bot:parry") == "eval/bot:kiter/win"
    assert of(OWN + "NO_HEADLINE", "self", "bots") == "eval/bot:flee/catch_rate"
    assert of(OWN + "NO_GOALS", "self") == "eval/self/left/pushes"
    assert of("pursuit") is None


def test_what_is_chosen_must_be_evaluated():
    config = load_recipe("pursuit")
    for name in ("eval/self/survival", "eval/bot:flee/catch_rate_greedy"):
        config.checkpoint.best_metric = name
        assert best_metric(config) == name
    config.eval.greedy = False
    with pytest.raises(
        LudusError, match=r"catch_rate_greedy will not be evaluated: use eval/bot:flee/catch_rate"
    ):
        best_metric(config)


@pytest.mark.parametrize("recipe", ["brawl", "hide_and_seek", "arena_small"])
def test_names_are_those_of_measurements(recipe):
    """Of a game of teams, of roles, and of agents side by side; a run's own metrics are compared in
    test_runs."""
    config = load_recipe(recipe)
    names = evaluated(config, game_info(config))
    assert len(names) == len(set(names)) and best_metric(config) in names
    if recipe == "brawl":
        assert {"eval/bot:based/win", "eval/bot:based/win_rate", "eval/bot:based/loss_rate"} <= set(
            names
        )
    if recipe == "hide_and_seek":
        assert (
            "eval/bot:hider/seeker/return" in names and "eval/bot:hider/hider/return" not in names
        )
        assert "eval/bot:seeker/survival" in names and "eval/bot:seeker/catch_rate" not in names


@pytest.mark.parametrize(
    ("higher", "kept"), [(True, [True, False, True, True]), (False, [True, True, False, True])]
)
def test_the_best_is_the_lowest_where_lower_is_better(higher, kept):
    layout = SimpleNamespace(
        describe=lambda: {"goal_metrics": {"lap": {"higher_is_better": higher}}}
    )
    config = SimpleNamespace(checkpoint=SimpleNamespace(best_metric="eval/self/lap"))
    progress = SimpleNamespace(best={}, agent_steps=0)
    batch = SimpleNamespace(layout=layout)
    evaluations = Evaluations(SimpleNamespace(config=config, progress=progress, batch=batch))
    found = [
        evaluations.note_best({"eval/self/lap": lap})
        for lap in (30.0, 20.0, 40.0, 40.0 if higher else 20.0)
    ]
    assert found == kept and progress.best["value"] == (40.0 if higher else 20.0)
    assert not evaluations.note_best({}), "an iteration without an evaluation"


def test_which_way_is_better():
    layout = {
        "goal_metrics": {"lap": {"higher_is_better": False}, "finish": {"higher_is_better": True}}
    }
    falls = [
        n
        for n in ("lap", "lap_greedy", "finish", "return", "loss_rate")
        if lower_is_better(f"eval/self/{n}", layout)
    ]
    assert falls == ["lap", "lap_greedy", "loss_rate"]


def test_what_says_the_same_is_shown_once():
    names = [
        f"eval/bot:based/{n}"
        for n in (
            "win",
            "win_low",
            "win_greedy",
            "win_rate",
            "draw",
            "draw_rate",
            "loss_rate",
            "length",
        )
    ]
    alike = dict.fromkeys(names, 0.5)
    assert [n.split("/")[2] for n in measurements(alike, [alike])] == ["win", "draw", "loss_rate"]
    other = alike | {"eval/bot:based/win_rate": 0.6}
    assert "eval/bot:based/win_rate" in measurements(other, [alike, other])


def test_the_newest_value_with_its_interval():
    lines = [
        {"progress/agent_steps": 10, "eval/self/x": 1.0, "eval/self/x_low": 0.5},
        {"progress/agent_steps": 20},
    ]
    assert newest(lines, "eval/self/x") == {
        "metric": "eval/self/x",
        "value": 1.0,
        "low": 0.5,
        "high": None,
        "step": 10,
    }
    assert newest(lines, "eval/self/y") is None and newest(lines, None) is None
    assert (
        in_words("eval/bot:flee/catch_rate") == "catch_rate against bot:flee"
        and in_words("eval/self/return") == "return"
    )
