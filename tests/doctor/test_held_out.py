"""The rewards of tests/doctor/rewards_held_out, and what their misses taught."""

from collections import Counter

import pytest

from benchmarks.rewards.held_out import ROUNDS, rows
from ludus.doctor.audit import audit
from ludus.doctor.ledger import Ledger
from ludus.doctor.rewards import parse_reward, read_reward

ROWS = [row for name in ROUNDS for row in rows(name)]
STILL_WRONG = {"ms_pacman_clipped", "tag_runner", "unity_soccer"}


def test_all_but_those_that_the_page_admits_are_right():
    assert {row["name"] for row in ROWS if not row["right"]} == STILL_WRONG


def test_half_are_sound_and_every_mechanism_is_there_at_least_twice():
    sick = Counter(row["mechanism"] for row in ROWS if row["expected"] == "critical")
    assert len(sick) == 10 and min(sick.values()) >= 2
    assert sum(row["expected"] == "ok" for row in ROWS) >= 60


def reward(*terms, **episode):
    return parse_reward({"episode": {"max_steps": 100, **episode}, "term": list(terms)})


@pytest.mark.parametrize(("key", "door", "both"), [(0.1, 0.02, 0.02), (0.1, 0.1, 0.01), (0.1, 0.5, 0.05), (1.0, 0.3, 0.3)])
def test_a_chance_above_that_of_what_is_required_is_one_after_it(key, door, both):
    described = reward(
        {"name": "key", "kind": "event", "value": 0, "reach_probability": key},
        {"name": "door", "kind": "terminal", "value": 1, "goal": True, "requires": "key", "reach_probability": door},
    )
    assert Ledger(described).chance(described.term("door")) == pytest.approx(both)


def checks(described):
    return {f.check: f.severity for f in audit(described)}


@pytest.mark.parametrize(("living", "pays"), [(-1.0, True), (0.0, False)])
def test_dying_is_a_way_out_only_where_living_costs(living, pays):
    described = reward(
        {"name": "living", "kind": "per_step", "value": living},
        {"name": "pit", "kind": "terminal", "value": 0.5, "ends_episode": True},
    )
    assert ("dying_early_pays" in checks(described)) == pays


@pytest.mark.parametrize(("penalty", "severity"), [(0.05, "info"), (0.2, "warning"), (0.6, "critical")])
def test_a_clip_matters_by_what_stands_beside_the_goal_after_it(penalty, severity):
    """A win of 10 is cut to 1, beside one penalty that keeps its size: a twentieth, a fifth, more than half of it."""
    described = reward(
        {"name": "win", "kind": "terminal", "value": 10, "goal": True, "ends_episode": True},
        {"name": "foul", "kind": "event", "value": -penalty},
        reward_clip=1.0,
    )
    assert checks(described)["clip_cuts_the_goal"] == severity


@pytest.mark.parametrize(("kind", "max_times", "goal", "most"), [
    ("shaping", None, False, 2), ("shaping", 50, False, 100), ("shaping", None, True, 2), ("per_step", None, True, 200), ("per_step", 0, False, 2),
])  # fmt: skip
def test_a_potential_is_worth_its_whole_way(kind, max_times, goal, most):
    """Its value is that of the whole way, unless it is said how often it is paid, or is the goal, step by step."""
    term = {"name": "closer", "kind": kind, "value": 2.0, "potential_based": True, "goal": goal}
    described = reward(term if max_times is None else {**term, "max_times": max_times})
    assert Ledger(described).most(described.term("closer")) == most


def test_a_file_that_starts_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "reward.toml"
    path.write_text('[episode]\nmax_steps = 9\n[[term]]\nname = "a"\nkind = "event"\nvalue = 1\n', encoding="utf-8-sig")
    assert read_reward(path).episode.max_steps == 9
