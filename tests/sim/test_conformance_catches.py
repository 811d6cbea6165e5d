"""The conformance checks themselves: each finds the fault it is for, planted past the
definition-time checks."""

from dataclasses import replace

import pytest

from ludus.errors import RuleError
from ludus.sim import Batch, Term, check, conformance, phase
from tests.sim.games import COUNTER, PURSUIT


def planted(monkeypatch, game, **changes):
    monkeypatch.setattr(check, "_check_phase", lambda *a, **k: None)
    return replace(game, **changes)


@phase(lanes="agents", writes=("position",))
def racy(env, agent, agents, position):
    position[env, agent, 0] = position[env, (agent + 1) % agents, 0]


def test_racing_lanes(monkeypatch):
    game = planted(monkeypatch, PURSUIT, step=[racy, *PURSUIT.step])
    with pytest.raises(AssertionError, match="lanes in another order"):
        conformance.check_lane_order(game, "cpu")


@phase(lanes="agents", writes=("total",))
def outside(env, agent, agents, total):
    total[env, agent] = total[env, agent + agents]


def test_an_index_outside_its_array(monkeypatch):
    game = planted(monkeypatch, COUNTER, step=[outside, *COUNTER.step])
    with pytest.raises(
        RuleError,
        match=r"counter: outside reads total\[0, 3\] \(.*catches.py:\d+\): index 3 is out of "
        r"range, .* 2 entries",
    ):
        # compiled, with the place found by running the step again
        conformance.check_lane_order(game, "cpu")


@phase(lanes="agents", writes=("alive",))
def revive(env, agent, alive):
    alive[env, agent] = True


def test_the_dead_coming_back(monkeypatch):
    game = planted(monkeypatch, PURSUIT, step=[revive, *PURSUIT.step])
    with pytest.raises(AssertionError, match="stay dead"):
        conformance.check_episodes(game, "cpu")


def test_a_reward_beyond_its_bound():
    rewards = {**PURSUIT.rewards, "near": Term("shaping", 0.01, most=3, roles="chaser")}
    with pytest.raises(AssertionError, match="reward term near"):
        conformance.check_long_run(replace(PURSUIT, rewards=rewards), "cpu")


def test_hidden_state_outside_the_batch():
    """A saved state that leaves something out shows as a difference."""
    batch = conformance.make(PURSUIT)
    conformance.run(batch, 10)
    other = Batch(PURSUIT, 16)
    other.load_state({**batch.state(), "heading": batch.state()["heading"] * 0})
    conformance.run(batch, 5)
    conformance.run(other, 5)
    with pytest.raises(AssertionError, match="heading"):
        conformance.assert_same(batch, other, "continued")
