"""Rules that are wrong in ways that only running or compiling them shows: one sentence with the
function, the line and the fix."""

import pytest

from ludus.config import Config, TrainConfig
from ludus.errors import RuleError
from ludus.sim import Batch
from ludus.sim.conformance import try_rules
from ludus.training.start import prepare
from tests.sim import games
from tests.sim.games import COUNTER, PURSUIT, with_phase


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        (
            games.adds_a_fraction,
            r"adds_a_fraction stores a float in 'total', which is int32 \(.*games.py:\d+\): .*f32, "
            r"or write int32\(…\)",
        ),
        (
            games.clips,
            r"counter: clips uses np.clip\(\), which cannot be compiled \(.*games.py:\d+\): write "
            r"min\(max\(value, low\), high\)",
        ),
        (
            games.calls_one_that_lists,
            r"counter: lists uses a list, which cannot .*games.py:\d+\): rules allocate nothing: "
            r".* field of fixed",
        ),
        (
            games.calls_with_too_much,
            r"counter: calls_with_too_much cannot be compiled \(.*games.py:\d+\): .*too many "
            r"positional arguments",
        ),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_the_compiler_is_understood(phase, message):
    with pytest.raises(RuleError, match=message) as error:
        Batch(with_phase(phase), 2)
    assert "\n" not in str(error.value)


def test_a_fraction_is_found_uncompiled_too():
    with pytest.raises(
        RuleError, match="stores_a_fraction stores a float in 'total', which is int32"
    ):
        try_rules(with_phase(games.stores_a_fraction))


def test_whole_numbers_may_be_stored():
    batch = Batch(COUNTER, 2)  # 0, +=, comparisons and parameters
    batch.step()
    try_rules(COUNTER)
    try_rules(PURSUIT, steps=20)


def test_training_tries_a_game_of_ones_own(monkeypatch):
    """Before anything is written: in its fourth step it shows a third entry, of two."""
    quick = TrainConfig(total_agent_steps=1000, threads=1)
    config = Config(game="tests.sim.games:SHOWS_TOO_MUCH", envs=2, train=quick)
    with pytest.raises(
        RuleError,
        match=r"shows_too_much writes observation\[0, 0, 2\] \(.*games.py:\d+\): index 2 .* 2 "
        r"entries",
    ):
        prepare(config)
    with pytest.raises(
        RuleError, match=r"sets_it_sometimes stops \(.*games.py:\d+\): .*'y'.*; set it on every way"
    ):
        prepare(Config(game="tests.sim.games:SETS_SOMETIMES", envs=2, train=quick))
    tried = []
    monkeypatch.setattr("ludus.sim.conformance.try_rules", lambda *a: tried.append(a))
    prepare(Config(game="pursuit", envs=2, train=quick))
    assert not tried  # those of Ludus have tests
