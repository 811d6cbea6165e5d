"""What is wrong with a game is said when it is defined: the phase, the field, the fix."""

import pytest

from ludus.errors import LudusError, RuleError
from ludus.sim import Batch, Choice, Headline, Param, Role, Term, f32
from tests.sim import games
from tests.sim.games import COUNTER, variant, with_phase


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (games.neighbour, ["neighbour", "'x'", "another lane", "gather"]),
        (games.neighbour_through_helper, ["neighbour_through_helper", "'x'", "another lane"]),
        (games.reads_neighbour, ["reads_neighbour", "'x'", "x_next"]),
        (games.next_neighbour, ["next_neighbour", "'x'", "another lane"]),
        (games.reads_previous, ["reads_previous", "'x'", "x_next"]),
        (games.undeclared, ["undeclared", "'total'", "writes="]),
        (games.never_written, ["never_written", "'total'", "never writes"]),
        (games.unknown_field, ["unknown_field", "'totl'", "did you mean 'total'"]),
        (games.unknown_lanes, ["unknown_lanes", "'wheels'"]),
        (games.another_env, ["another_env", "env first"]),
        (games.wrong_axes, ["wrong_axes", "(env, agents)", "1"]),
        (games.writes_reward, ["writes_reward", "'reward'", "belongs to the engine"]),
        (games.whole_field, ["whole_field", "'x'", "without an index"]),
        (games.write_parameter, ["write_parameter", "'speed'"]),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_a_wrong_phase_is_refused_with_names_and_fix(phase, words):
    with pytest.raises(RuleError) as error:
        with_phase(phase)
    for word in words:
        assert word in str(error.value)


def test_writing_the_own_entry_through_a_helper_is_fine():
    batch = Batch(with_phase(games.own_through_helper), 2)
    batch.step()
    assert (batch["x"] == 1.0).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(rewards=dict(one=Term("goal", 1.0))), ["'one'", "most="]),
        (dict(rewards=dict(one=Term("gaol", 1.0, most=1))), ["'gaol'", "goal"]),
        (dict(rewards=dict(one=Term("goal", 1.0, most=1, least=2))), ["most=1", "least=2"]),
        (dict(rewards=dict(one=Term("goal", 1.0, most="stps"))), ["'stps'"]),
        (dict(rewards=dict(one=Term("goal", 1.0, most=1, roles="lft"))), ["'lft'", "left"]),
        (dict(params=dict(slope=Param(1.0, 0, 2))), ["max_steps"]),
        (dict(params=dict(max_steps=Param(5, 6, 7))), ["max_steps", "5", "6"]),
        (dict(roles=[]), ["no roles"]),
        (dict(roles=[Role("left", count="many")]), ["'many'"]),
        (dict(state=dict(reward=f32("agents"))), ["'reward'", "engine"]),
        (dict(state=dict(x=f32("wheels"))), ["'x'", "'wheels'"]),
        (dict(presets=dict(fast=dict(sloep=1.0))), ["fast", "'sloep'", "slope"]),
        (dict(action=dict(pick=Choice(("only",)))), ["'pick'", "at least 2"]),
    ],
    ids=lambda v: str(v)[:60],
)
def test_a_wrong_declaration_is_refused(changes, words):
    with pytest.raises(RuleError) as error:
        variant(**changes)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (dict(runners=0), ["runners=0", "at least 1"]),
        (dict(runners=65), ["runners=65", "at most 64"]),
        (dict(runners=2.5), ["runners=2.5", "whole"]),
        (dict(speed=9.0), ["speed=9.0", "2.0"]),
        (dict(sped=1.0), ["'sped'", "did you mean 'speed'"]),
        ({"reward.cach": 1.0}, ["reward.cach", "reward.catch"]),
    ],
    ids=str,
)
def test_sizes_and_parameters_that_cannot_work(overrides, words):
    with pytest.raises(LudusError) as error:
        Batch(games.PURSUIT, 4, overrides=overrides)
    for word in words:
        assert word in str(error.value)


def test_double_precision_is_refused_with_the_line():
    game = with_phase(games.doubles)
    for _ in range(2):  # the second time too: nothing of the first attempt was kept
        with pytest.raises(RuleError, match=r"double precision in doubles \(.*games\.py:\d+\)"):
            Batch(game, 2)


def test_default_arguments_of_helpers_are_refused():
    with pytest.raises(RuleError, match="with_default has default arguments"):
        Batch(with_phase(games.calls_with_default), 2)


def test_a_constant_changed_in_a_running_process_is_seen(monkeypatch):
    """Also when the function was compiled before: an interactive session must not get yesterday's
    rules."""
    before = Batch(games.PURSUIT, 2, seed=1).numpy("position")
    monkeypatch.setattr("ludus.games.pursuit.rules.WORLD", 20.0)
    after = Batch(games.PURSUIT, 2, seed=1).numpy("position")
    assert (after == 2 * before).all()


def test_counts_that_cannot_work():
    for bad in (dict(num_envs=0), dict(num_envs=2, threads=0), dict(num_envs=2, seed=-1)):
        with pytest.raises(LudusError):
            Batch(COUNTER, **bad)


@pytest.mark.parametrize(
    ("game", "headline", "words"),
    [
        (COUNTER, Headline("pushed"), "unknown goal metric 'pushed': did you mean 'pushes'"),
        (COUNTER, Headline("pushes", against="bot:greedy"), "unknown opponent 'bot:greedy'"),
        (
            games.PURSUIT,
            Headline("catch_rate", against="bot:greedy"),
            "does not play all roles that chaser meets",
        ),
    ],
)
def test_a_headline_that_would_not_be_measured_is_refused(game, headline, words):
    with pytest.raises(RuleError, match=words):
        variant(game, headline=headline)


def test_headlines_that_are_measured():
    for headline in (
        Headline("survival", against="bot:greedy"),
        Headline("survival", against="bot:still"),
        Headline("survival"),
    ):
        assert variant(games.PURSUIT, headline=headline).headline == headline
