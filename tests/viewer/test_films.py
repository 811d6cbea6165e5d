"""Replays play again exactly, go on from any moment, and show what the rules say; keys mean what
the help says."""

import json
import shutil
from itertools import pairwise

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ludus import LudusError
from ludus.films.instrumented import Minds
from ludus.films.pack import pack, unpack
from ludus.films.resimulate import Script
from ludus.films.shows import Show, Shows
from ludus.play.replay import Replay
from ludus.sim import Batch
from ludus.viewer.library import Library
from ludus.viewer.session import Fault, Session, seat_bots, take_over
from ludus.viewer.theatre import Theatre
from tests.viewer.shelf import SMALL


def replay_of(root, game):
    return root / "shelf" / "replays" / f"000000000007-bots-{game}-best.safetensors"


@pytest.fixture(scope="module")
def shows():
    return Shows()


@pytest.fixture(scope="module")
def theatre(root, shows):
    return Theatre(Library(root), shows)


def test_a_message_comes_back_as_it_was():
    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([True, False]),
        "c": np.array(7, np.int16),
    }
    header, back = unpack(pack({"x": "é"}, arrays))
    assert header == {"x": "é"}
    assert (
        np.array_equal(back["a"], arrays["a"])
        and back["b"].tolist() == [1, 0]
        and back["c"].tolist() == [7]
    )


@pytest.mark.parametrize("game", SMALL)
def test_every_game_plays_again_as_it_was_recorded(root, theatre, game):
    path = replay_of(root, game)
    replay = Replay(path)
    header, arrays = unpack(theatre.film("shelf", path.name).message())
    assert header["differs"] is None and header["frames"] == len(replay) + 1
    assert np.array_equal(arrays["step/reward"][1:], replay.tensors["reward"])
    assert np.array_equal(arrays["step/binary"][1:], replay.tensors["binary"])
    assert set(header["players"]) != {"policy"} and all(
        p.startswith("bot:") for p in header["players"]
    )
    assert header["playable"] and header["controls"]


def test_films_do_not_depend_on_what_was_shown_before(root, shows):
    """Replays of the same settings share one env."""
    theatre, name = Theatre(Library(root), shows), replay_of(root, "arena").name
    first = theatre.film("shelf", name).message()
    theatre._films.clear()
    theatre.film("shelf", replay_of(root, "pursuit").name)
    assert theatre.film("shelf", name).message() == first


def test_what_one_agent_sees_comes_apart(root, theatre):
    film = theatre.film("shelf", replay_of(root, "hide_and_seek").name)
    _, seen = unpack(film.seen_message(1))
    assert seen["seen/rays"].shape == (len(film), 64, 2)
    assert seen["seen/rays"][:, :, 0].min() > 0 and seen["seen/rays"][:, :, 0].max() <= 32.0


def test_large_things_are_sent_when_they_change(root, theatre):
    film = theatre.film("shelf", replay_of(root, "arena").name)
    steps, values = film.changes["things"]
    assert steps[0] == 0 and len(steps) < len(film)
    assert all(not np.array_equal(a, b) for a, b in pairwise(values))


def test_a_replay_that_went_differently_says_from_where(root, tmp_path, shows):
    path = tmp_path / "other.safetensors"
    source = replay_of(root, "pursuit")
    tensors = load_file(source)
    tensors["reward"][11] += 1.0
    save_file(tensors, path, {"replay": json.dumps(Replay(source).header)})
    assert Script(Replay(path), shows).film().header["differs"] == 12


def test_policies_think_aloud(root, theatre):
    name = next(iter(theatre.library.replays(theatre.library.run("learned"))))
    film = theatre.film("learned", name)
    header, arrays = unpack(film.message())
    assert header["players"] == ["policy"] * 4
    value, chances = arrays["step/value"], arrays["step/chances"]
    assert value.shape == (len(film), 4) and np.isfinite(value).all()
    assert chances.shape == (len(film), 4, 2)  # the mean of `turn`, the chance of `go`
    assert (
        (abs(chances[..., 0]) <= 1).all()
        and (chances[..., 1] >= 0).all()
        and (chances[..., 1] <= 1).all()
    )
    assert header["thinks"].startswith("the policy of step")


def test_values_are_in_units_of_the_game(root, theatre):
    """The run was trained with rewards times 0.1; what a policy expects is said in rewards of the
    game."""
    library = theatre.library
    run = library.run("learned")
    script = Script(Replay(run.path / "replays" / next(iter(library.replays(run)))), theatre.shows)
    policies, _ = theatre.maker.policies_near(run, script)
    batch = script.begin()
    minds = Minds(policies, batch)
    minds.act()
    told = minds.thoughts(np.ones(4, bool))
    for seats in batch.layout.seats:
        policy, at = policies[seats.role], seats.agents
        output = minds.minds[seats.role].output
        # of rewards as they were learned from
        learned = output.value[0] * policy.value_norm.std + policy.value_norm.mean
        assert told["value"][at] == pytest.approx((learned / 0.1).numpy(), rel=1e-5)
    assert told["attention"].shape == (4, 2)  # 8 steps back, of which every fifth
    assert told["attention"].sum(1) == pytest.approx(1.0, abs=1e-5)


def test_taking_over_goes_on_from_the_same_state(root, shows, theatre):
    path = replay_of(root, "pursuit")
    _, arrays = unpack(theatre.film("shelf", path.name).message())
    session = take_over(Script(Replay(path), shows), 9, None, {})
    session.say('{"take": 0}')
    header, first = unpack(session.step())
    assert header["kind"] == "episode" and header["players"][0] == "you"
    assert np.array_equal(first["step/position"], arrays["step/position"][9])
    assert first["step/step"] == 9 and np.array_equal(
        first["step/term_totals"], arrays["step/term_totals"][9]
    )
    session.say('{"keys": ["KeyA"]}')  # turns on the spot: 0.6 radians to the left
    _, second = unpack(session.step())
    assert np.array_equal(second["step/position"][0], first["step/position"][0])
    turned = (second["step/heading"][0] - first["step/heading"][0]) % (2 * np.pi)
    assert turned == pytest.approx(0.6, abs=1e-5)
    # the others play on
    assert not np.array_equal(second["step/position"][1], first["step/position"][1])


def test_newer_policies_take_over_between_episodes(root, tmp_path, shows):
    """A run in progress: its next checkpoint plays the next episode."""
    shutil.copytree(root / "learned", tmp_path / "runs" / "live")
    theatre = Theatre(Library(tmp_path / "runs"), shows)
    folders = sorted((tmp_path / "runs" / "live" / "checkpoints").iterdir())
    aside = tmp_path / "aside"
    folders[-1].rename(aside)
    session = theatre.from_run("live")
    opening, _ = unpack(session.step())
    assert f"{int(folders[-2].name):,}" in opening["thinks"]
    aside.rename(folders[-1])
    session.say('{"restart": true}')
    after, _ = unpack(session.step())
    assert after["kind"] == "episode" and f"{int(folders[-1].name):,}" in after["thinks"]


# -- keys ------------------------------------------------------------------------------------------


def batch_of(game):
    show = Show(game)
    return show, Batch(show.game, 1, overrides=SMALL[game])


@pytest.mark.parametrize(
    ("keys", "option"),
    [
        ("KeyW", "gas"),
        ("KeyW KeyA", "gas_left"),
        ("ArrowRight", "right"),
        ("KeyS", "brake"),
        ("", "nothing"),
        ("KeyW Space KeyD", "gas_brake_right"),
    ],
)
def test_pedals(keys, option):
    show, batch = batch_of("racing_lidar")
    assert show.act(set(keys.split()), batch, 0) == {"drive": option}


def test_a_mirrored_fighter_still_goes_where_the_key_points():
    show, batch = batch_of("brawl")
    session = Session(show, batch)
    for agent in (0, 1):
        session.say(json.dumps({"take": agent, "keys": ["ArrowLeft"]}))
        before = batch["motion"][0, agent, 0].copy()
        for _ in range(3):
            session.step()
        assert batch["motion"][0, agent, 0] < before, agent


def test_an_arena_agent_turns_first_and_then_walks():
    show, batch = batch_of("arena")
    session = Session(show, batch)
    session.say('{"take": 0}')
    session.step()
    for way, (code, row, column) in enumerate(
        [("KeyW", -1, 0), ("KeyD", 0, 1), ("KeyS", 1, 0), ("KeyA", 0, -1)]
    ):
        at = (int(batch["row"][0, 0]), int(batch["column"][0, 0]))
        batch["facing"][0, 0] = (way + 1) % 4
        session.say(json.dumps({"keys": [code]}))
        session.step()
        assert batch["facing"][0, 0] == way and (batch["row"][0, 0], batch["column"][0, 0]) == at
        free = batch["grid"][0, at[0] + row, at[1] + column] == 0
        session.step()
        assert (
            (batch["row"][0, 0], batch["column"][0, 0]) == (at[0] + row, at[1] + column)
        ) == free


def test_a_short_press_between_two_steps_counts():
    show, batch = batch_of("pursuit")
    session = Session(show, batch)
    session.say('{"take": 0, "keys": ["KeyW"]}')
    session.step()
    before = batch["position"][0, 0].copy()
    session.say('{"keys": []}')
    session.step()
    assert np.linalg.norm(batch["position"][0, 0] - before) > 0
    before = batch["position"][0, 0].copy()
    session.step()
    assert np.array_equal(batch["position"][0, 0], before)


# -- who plays -------------------------------------------------------------------------------------


def test_a_policy_plays_against_a_bot(theatre):
    """A role that nobody names goes to the game's own bot, one that a run is named for to its
    policy."""
    session = theatre.from_game("pursuit", ["runner=run:learned"], {"max_steps": 40})
    header, arrays = unpack(session.step())
    assert header["players"] == ["bot:greedy", "policy", "policy", "policy"]
    assert np.isnan(arrays["step/value"][0]) and np.isfinite(arrays["step/value"][1:]).all()


def test_a_cast_is_seated():
    _, batch = batch_of("mechs")
    seat_bots(batch, ["bot:hunter", "team1=bot:still"], policies=())
    numbers = batch.controllers["mech"]
    assert batch["controller"][0].tolist() == [numbers["hunter"]] * 2 + [numbers["still"]] * 2


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("bot:nobody", "unknown opponent 'bot:nobody'"),
        ("pilot=bot:hunter", "no role or team"),
        ("hunter", "did you mean 'bot:hunter'"),
        ("mech=self", "no policy here"),
    ],
)
def test_a_cast_that_cannot_be_is_refused(entry, words):
    _, batch = batch_of("mechs")
    with pytest.raises(LudusError, match=words):
        seat_bots(batch, [entry], policies=())


@pytest.mark.parametrize(
    "message",
    [
        "",
        "[]",
        "nonsense",
        '{"take": 99}',
        '{"take": true}',
        '{"keys": "W"}',
        '{"speed": 1e9}',
        '{"keys": [1]}',
        '{"paused": 1}',
        '{"x": 1}',
        "[" * 5000,
        '{"watch": -1}',
    ],
)
def test_a_page_that_talks_nonsense_is_refused(message):
    show, batch = batch_of("pursuit")
    with pytest.raises(Fault):
        Session(show, batch).say(message)


def test_a_run_cannot_name_code_to_import(shows):
    with pytest.raises(LudusError, match="allow it with"):
        shows.find("antigravity:GAME")
    with pytest.raises(LudusError, match="did you mean 'pursuit'"):
        shows.find("pursuits")
