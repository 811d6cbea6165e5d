"""The rewards of tests/doctor/rewards_held_out, and what their misses taught."""

from collections import Counter

import pytest

from benchmarks.rewards.held_out import ROUNDS, rows
from ludus.doctor.audit import audit
from ludus.doctor.ledger import Ledger
from ludus.doctor.rewards import parse_reward, read_reward
from ludus.errors import LudusError

ROWS = [row for name in ROUNDS for row in rows(name)]
STILL_WRONG = {"loss_ten", "ms_pacman_clipped", "tag_runner", "unity_soccer"}


def test_all_but_those_that_the_page_admits_are_right():
    assert {row["name"] for row in ROWS if not row["right"]} == STILL_WRONG


def test_half_are_sound_and_every_mechanism_is_there_at_least_twice():
    sick = Counter(row["mechanism"] for row in ROWS if row["expected"] == "critical")
    assert len(sick) == 10 and min(sick.values()) >= 2
    assert sum(row["expected"] == "ok" for row in ROWS) >= 60


def reward(*terms, **episode):
    return parse_reward({"episode": {"max_steps": 100, **episode}, "term": list(terms)})


@pytest.mark.parametrize(
    ("key", "door", "both"),
    [(0.1, 0.02, 0.02), (0.1, 0.1, 0.01), (0.1, 0.5, 0.05), (1.0, 0.3, 0.3)],
)
def test_a_chance_above_that_of_what_is_required_is_one_after_it(key, door, both):
    described = reward(
        {"name": "key", "kind": "event", "value": 0, "reach_probability": key},
        {
            "name": "door",
            "kind": "terminal",
            "value": 1,
            "goal": True,
            "requires": "key",
            "reach_probability": door,
        },
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


@pytest.mark.parametrize(
    ("penalty", "severity"), [(0.05, "info"), (0.2, "warning"), (0.6, "critical")]
)
def test_a_clip_matters_by_what_stands_beside_the_goal_after_it(penalty, severity):
    """A win of 10 is cut to 1, beside one penalty that keeps its size: a twentieth, a fifth, more
    than half of it."""
    described = reward(
        {"name": "win", "kind": "terminal", "value": 10, "goal": True, "ends_episode": True},
        {"name": "foul", "kind": "event", "value": -penalty},
        reward_clip=1.0,
    )
    assert checks(described)["clip_cuts_the_goal"] == severity


@pytest.mark.parametrize(
    ("kind", "max_times", "goal", "most"),
    [
        ("shaping", None, False, 2),
        ("shaping", 50, False, 100),
        ("shaping", None, True, 2),
        ("per_step", None, True, 200),
        ("per_step", 0, False, 2),
    ],
)
def test_a_potential_is_worth_its_whole_way(kind, max_times, goal, most):
    """Its value is that of the whole way, unless it is said how often it is paid, or is the goal,
    step by step."""
    term = {"name": "closer", "kind": kind, "value": 2.0, "potential_based": True, "goal": goal}
    described = reward(term if max_times is None else {**term, "max_times": max_times})
    assert Ledger(described).most(described.term("closer")) == most


def test_a_file_that_starts_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "reward.toml"
    path.write_text(
        '[episode]\nmax_steps = 9\n[[term]]\nname = "a"\nkind = "event"\nvalue = 1\n',
        encoding="utf-8-sig",
    )
    assert read_reward(path).episode.max_steps == 9


@pytest.mark.parametrize(
    ("change", "punished"),
    [
        ({}, False),
        ({"random_share": 0.0}, True),
        ({"varies": False}, True),
        ({"reach_probability": 0.5}, True),
    ],
)
def test_a_cost_that_good_play_lowers_is_no_slip_of_the_sign(change, punished):
    tour = {
        "name": "length",
        "kind": "terminal",
        "low": -30,
        "high": -6,
        "goal": True,
        "varies": True,
        "random_share": 0.2,
    }
    assert ("goal_punished" in checks(reward(tour | change, gamma=1.0))) == punished


def test_a_cost_to_lower_is_a_slip_where_one_can_leave_before_it_is_paid():
    tour = {
        "name": "length",
        "kind": "terminal",
        "low": -30,
        "high": -6,
        "goal": True,
        "varies": True,
        "random_share": 0.2,
    }
    leave = {"name": "leave", "kind": "terminal", "value": 0, "ends_episode": True}
    assert "goal_punished" in checks(reward(tour, leave, gamma=1.0))


def test_a_cost_to_lower_is_worth_what_good_play_saves():
    described = reward(
        {
            "name": "energy",
            "kind": "per_step",
            "low": -3,
            "high": -1,
            "goal": True,
            "varies": True,
            "random_share": 0.5,
        }
    )
    assert Ledger(described).success == 200


@pytest.mark.parametrize(("chance", "severity"), [(0.01, "critical"), (0.1, None)])
def test_mistakes_count_for_the_whole_episode_where_next_to_nobody_arrives(chance, severity):
    """Up to 20 bumps of 2: 40 for who never arrives, 10 for who arrives after a quarter of the
    time; half of it beside a goal of 15."""
    described = reward(
        {
            "name": "there",
            "kind": "terminal",
            "value": 15,
            "goal": True,
            "ends_episode": True,
            "reach_probability": chance,
        },
        {"name": "bump", "kind": "event", "value": -2, "max_times": 20},
    )
    assert checks(described).get("penalties_outweigh_the_goal") == severity


@pytest.mark.parametrize(("per_step", "outweighs"), [(-1, False), (0, True)])
def test_a_puddle_is_a_mistake_while_time_presses_and_effort_else(per_step, outweighs):
    """Random play pays 0.2 of 10 a step: 50 in the 25 steps to the goal, of which a mistake counts
    half; arriving is worth 40."""
    described = reward(
        {"name": "puddle", "kind": "per_step", "low": -10, "high": 0, "random_share": 0.2},
        {"name": "time", "kind": "per_step", "value": per_step},
        {
            "name": "there",
            "kind": "terminal",
            "value": 40,
            "goal": True,
            "ends_episode": True,
            "reach_probability": 0.5,
        },
    )
    assert ("penalties_outweigh_the_goal" in checks(described)) == outweighs


@pytest.mark.parametrize(("failing", "pays"), [(0.0001, False), (0.1, True)])
def test_who_fails_by_chance_has_lived_until_then(failing, pays):
    described = reward(
        {"name": "time", "kind": "per_step", "value": -0.1},
        {
            "name": "there",
            "kind": "terminal",
            "value": 1,
            "goal": True,
            "ends_episode": True,
            "reach_probability": 0.1,
        },
        failure_probability=failing,
    )
    assert ("dying_early_pays" in checks(described)) == pays


def test_a_score_that_every_episode_gets_comes_at_its_end():
    score = {
        "name": "price",
        "kind": "terminal",
        "low": 0,
        "high": 1,
        "goal": True,
        "varies": True,
        "ends_episode": True,
    }
    assert checks(reward(score, gamma=0.95))["credit_too_late_for_the_discount"] == "critical"
    assert "credit_too_late_for_the_discount" not in checks(
        reward(score | {"reach_probability": 0.5}, gamma=0.95)
    )


def test_no_more_events_than_steps():
    described = reward({"name": "coin", "kind": "event", "value": 1, "max_times": 500})
    assert Ledger(described).most(described.term("coin")) == 100


def test_the_evidence_of_a_clip_names_what_weighs_most_beside_the_goal():
    described = reward(
        {"name": "treasure", "kind": "event", "value": 1000, "goal": True},
        {"name": "alive", "kind": "per_step", "value": 0.005},
        {"name": "log", "kind": "event", "value": -0.9, "max_times": 50},
        reward_clip=1.0,
    )
    (found,) = (f for f in audit(described) if f.check == "clip_cuts_the_goal")
    assert "'log' keeps" in found.evidence


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"value": [-1, 0]}, "write a range as low and high"),
        ({"high": -0.5}, "high = -0.5 and no low"),
        ({"low": 2}, "low = 2 and no high"),
    ],
)
def test_what_a_range_lacks_is_named(change, text):
    with pytest.raises(LudusError, match=text):
        reward({"name": "a", "kind": "event", **change})


def test_a_wrong_name_in_episode_is_told_before_what_it_leaves_missing():
    with pytest.raises(LudusError, match="unknown key 'horizon'"):
        parse_reward(
            {"episode": {"horizon": 9}, "term": [{"name": "a", "kind": "event", "value": 1}]}
        )
