"""How two effective games differ, in plain words."""

import json

import pytest

from ludus.commands.games_diff import compare_games, effective
from ludus.games import load_game
from ludus.sim import Batch
from tests.commands.test_cli import call

REWRITE = {
    "armories": (0, 1, "1 armory per room instead of none"),
    "laseries": (0, 1, "1 lasery per room instead of none"),
    "blocks": (20, 0, "no blocks per room instead of 20"),
    "walls": (20, 10, "10 walls per room instead of 20"),
    "altar_batteries": (1, 3, "altar needs 3 batteries instead of 1"),
    "attack_cost": (100, 1, "an attack costs 1 laser instead of 100"),
    "reward.ore": (0.1, 0.0, "ore no longer rewarded"),
    "reward.batteries": (0.8, 0.0, "batteries no longer rewarded"),
    "reward.armor": (0.5, 0.0, "armor no longer rewarded"),
    "reward.lasers": (0.5, 0.0, "lasers no longer rewarded"),
}


def test_the_silent_rewrite_is_listed_in_full_and_nothing_else(capsys):
    status, out, _ = call(
        capsys, "games", "diff", "arena:easy_shaped", "arena:default_after_rewrite", "--json"
    )
    found = {d["key"]: (d["a"], d["b"], d["text"]) for d in json.loads(out)["differences"]}
    assert status == 0 and found == REWRITE
    text = call(capsys, "games", "diff", "arena:easy_shaped", "arena:default_after_rewrite")[1]
    assert (
        text.splitlines()[4] == "altar needs 3 batteries instead of 1  (altar_batteries)"
        and len(text.splitlines()) == 10
    )


def test_the_same_game_and_another_game(capsys):
    assert (
        call(capsys, "games", "diff", "arena", "arena:easy_shaped")[1]
        == "arena and arena:easy_shaped are the same game\n"
    )
    assert (
        "the game is pursuit instead of arena"
        in call(capsys, "games", "diff", "arena", "pursuit")[1]
    )


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ("arena:easy_shaped", "arena:gains", "only what is taken from converters pays"),
        ("arena:gains", "arena:easy_shaped", "changes of what is held pay"),
        ("arena:basic", "arena:easy_shaped", "altar needs 1 battery instead of 3"),
        ("pursuit", "pursuit:easy", "distance a runner covers in a step: 0.1 instead of 0.2"),
    ],
)
def test_words(a, b, text):
    assert [d["text"] for d in compare_games(effective(a), effective(b))] == [text]


def test_a_run_is_compared_by_what_its_simulator_held(tmp_path):
    """Float32 rounding is no difference; a value overwritten in the simulator is one, whatever the
    config said."""
    game = load_game("pursuit")[0]
    batch = Batch(game, 2, jit=False)
    run = tmp_path / "run"
    run.mkdir()
    about = {
        **batch.received(),
        "layout": batch.layout.describe(),
        "fingerprint": batch.fingerprint(),
    }
    (run / "game.json").write_text(json.dumps(about))
    assert compare_games(effective("pursuit"), effective(str(run))) == []

    batch["weights_next"][:, 0] = 0.0
    batch["float_params_next"][0, 0] = 0.5
    batch.reset()
    other = tmp_path / "other"
    other.mkdir()
    (other / "game.json").write_text(json.dumps({**about, **batch.received()}))
    found = {d["key"]: d["text"] for d in compare_games(effective(str(run)), effective(str(other)))}
    assert found == {
        "reward.catch": "catch no longer rewarded",
        "speed": "distance a runner covers in a step: 0.2 to 0.5 instead of 0.2",
    }


def test_runs_whose_rules_or_layouts_differ():
    a = {
        "game": "x",
        "sizes": {},
        "params": {},
        "rewards": {},
        "fingerprint": "1",
        "layout": {"observation": ["p", "q"], "action": {}, "roles": {}},
    }
    assert [d["key"] for d in compare_games(a, {**a, "fingerprint": "2"})] == ["rules"]
    swapped = {**a, "fingerprint": "2", "layout": {**a["layout"], "observation": ["q", "p"]}}
    assert [d["key"] for d in compare_games(a, swapped)] == ["observation"]
    assert (
        compare_games(a, {**a, "params": {"new": 3}})[0]["text"]
        == "new is only in the second game: 3"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["arena", "arena:esay_shaped"], "did you mean 'easy_shaped'"),
        (["arena", "/"], "without game.json"),
        (["arena"], "Required"),
    ],
)
def test_impossible_requests(capsys, arguments, words):
    status, _, err = call(capsys, "games", "diff", *arguments)
    assert status == 2 and words in err and "Traceback" not in err
