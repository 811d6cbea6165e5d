"""Envs whose reward nobody declared: what a trial of random play says about them."""

import numpy as np
import pytest

from ludus.config import Config
from ludus.doctor.trial import Trial, judge
from ludus.examine.audit_game import audit_recipe
from ludus.examine.trial import audit_foreign


def trial(**changes):
    """A healthy one: twenty episodes of 50 steps that pay between 1 and 20, in every step."""
    values = dict(
        role="agent",
        returns=np.arange(1.0, 21.0),
        lengths=np.full(20, 50),
        still_returns=np.full(8, 1.0),
        paid_share=1.0,
        longest_open=0,
        constant_entries=(),
        steps_per_s=1000.0,
    )
    return Trial(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"returns": np.full(20, -200.0), "still_returns": np.full(8, -200.0)}, ["no_signal"]),
        (
            {
                "returns": np.array([0.0] * 39 + [1.0]),
                "lengths": np.full(40, 50),
                "still_returns": np.zeros(8),
            },
            ["goal_too_rare"],
        ),
        ({"still_returns": np.full(8, 30.0)}, ["doing_nothing_pays"]),
        # gamma 0.99 looks 100 steps ahead; a reward after 1000 is worth 4e-5 of itself at the start
        ({"lengths": np.full(20, 1000), "paid_share": 0.001}, ["credit_too_late_for_the_discount"]),
        ({"lengths": np.full(20, 1000), "paid_share": 1.0}, []),
        ({"returns": np.zeros(0), "lengths": np.zeros(0), "longest_open": 5000}, ["no_end"]),
        # twenty random episodes earn 10.5 on average with a deviation of 5.8: 14 is more, but
        # random play gets there too
        ({"still_returns": np.full(8, 14.0)}, []),
        ({"shows_time": False}, ["time_limit_not_observed"]),
        ({"shows_time": False, "cut_share": 1.0}, []),  # cut is not ended: the value goes on
        ({"shows_time": False, "lengths": np.arange(40, 60)}, []),
    ],
)
def test_each_trap_is_named_and_a_healthy_env_is_not(changes, expected):
    assert [
        f.check for f in judge(trial(**changes), gamma=0.99) if f.severity != "info"
    ] == expected


def test_entries_that_never_change_are_listed():
    (found,) = [
        f
        for f in judge(trial(constant_entries=("o3", "o7")), 0.99)
        if f.check == "constant_entries"
    ]
    assert "2 entries" in found.evidence and "o3, o7" in found.evidence


def test_what_has_no_limits_is_listed_with_what_to_do():
    for normalised, words in (
        (True, "nothing to do"),
        (False, "turn policy.normalise_observation on"),
    ):
        found = judge(trial(unlimited_entries=("o1",), normalised=normalised), 0.99)
        (one,) = [f for f in found if f.check == "unlimited_entries"]
        assert "o1" in one.evidence and words in one.fix


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Noisy", []), ("Blindfold", ["time_limit_not_observed"]), ("Huge", ["observation_scale"])],
)
def test_what_an_env_hides_or_overdoes(name, expected):
    """All end after ten steps: Noisy shows the time with noise, and rewards that vary; Blindfold
    hides it; Huge is in millionths."""
    found = audit_foreign(Config(game=f"env:tests.envs.odd:{name}"), seconds=1.0)
    assert [f.check for f in found if f.severity == "warning"] == expected
    (summary,) = [f for f in found if f.check == "random_play"]
    assert (
        "of 10 steps (none cut by a time limit)" in summary.evidence
        and "gamma 0.99 looks 100 steps ahead" in summary.evidence
    )


def test_every_role_has_its_own_findings():
    """A check shows each check and cause once: those of two roles must not be taken for the
    same."""
    found = audit_foreign(Config(game="env:tests.envs.odd:Race"), seconds=0.5)
    assert {f.cause.split(":")[0] for f in found if f.check == "random_play"} == {"runner", "judge"}
    assert len({(f.check, f.cause) for f in found}) == len(found)


def test_a_real_env_is_tried_out():
    """Ten steps that pay 1 each, whatever is done: the same in every episode."""
    found = audit_foreign(Config(game="env:tests.envs.odd:counter"), seconds=2.0)
    assert [f.check for f in found] == ["no_signal", "random_play"]
    assert "episodes earn exactly 10" in found[0].evidence


def test_the_known_trap_of_the_mountain_car():
    """Every step costs the same until the goal is reached, which random play does not do in 200
    steps."""
    assert audit_recipe("gym:MountainCar-v0")[0].check == "no_signal"


@pytest.mark.parametrize("name", ["Board", "Turns"])
def test_doing_nothing_is_allowed(name):
    """The first option that a mask allows: these envs assert that it was."""
    audit_foreign(Config(game=f"env:tests.envs.odd:{name}"), seconds=0.2)
