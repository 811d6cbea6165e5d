"""The TOML format, and each mechanism on the smallest reward that shows it, with the sum worked by
hand."""

import pytest

from ludus.doctor.audit import audit
from ludus.doctor.finding import as_json, verdict
from ludus.doctor.ledger import Ledger
from ludus.doctor.rewards import parse_reward, read_reward
from ludus.errors import LudusError


def reward(*terms: dict, **episode):
    return parse_reward({"episode": {"max_steps": 100, **episode}, "term": list(terms)})


def goal(value=10.0, **more):
    return {
        "name": "goal",
        "kind": "terminal",
        "value": value,
        "goal": True,
        "ends_episode": True,
        **more,
    }


def keys(described) -> dict[str, str]:
    return {f.check: f.severity for f in audit(described)}


SICK = {
    "shaping_outweighs_the_goal": reward(goal(), {"name": "near", "kind": "shaping", "value": 0.1}),
    "paid_cycle": reward(
        goal(), {"name": "pick_up", "kind": "event", "value": 1, "cycles": True, "cycle_steps": 4}
    ),
    "doing_nothing_pays": reward(
        goal(), {"name": "alive", "kind": "per_step", "value": 1, "passive": True}
    ),
    "goal_unreachable_or_too_rare": reward(goal(reach_probability=1e-5)),
    "goal_punished": reward(goal(-1)),
    "clip_cuts_the_goal": reward(
        goal(), {"name": "hit", "kind": "event", "value": 1, "max_times": 2}, reward_clip=1.0
    ),
    "proxy_without_goal": reward(
        goal(), {"name": "score", "kind": "event", "value": 2, "max_times": 10}
    ),
    "dying_early_pays": reward(
        goal(reach_probability=0.01),
        {"name": "time", "kind": "per_step", "value": -1},
        {"name": "pit", "kind": "terminal", "value": -1, "ends_episode": True},
    ),
    "penalties_outweigh_the_goal": reward(
        goal(), {"name": "energy", "kind": "per_step", "low": -1, "high": 0, "varies": True}
    ),
    "credit_too_late_for_the_discount": reward(goal(), gamma=0.8),
}


@pytest.mark.parametrize("check", SICK)
def test_each_mechanism_is_named(check):
    assert keys(SICK[check]).get(check) == "critical"


def test_a_plain_goal_is_ok():
    assert verdict(audit(reward(goal()))) == "ok"


def test_the_audit_shows_its_arithmetic():
    """Watching pays 0.2 for 204 steps, catching both pays 10 + 10 + 20."""
    found = audit(
        reward(
            {"name": "sees", "kind": "per_step", "value": 0.2, "max_times": 204},
            {"name": "catch", "kind": "event", "value": 10, "max_times": 2, "goal": True},
            goal(20.0),
            max_steps=240,
        )
    )
    assert "0.2 x 204 = 40.8" in found[0].evidence and "worth 40 " in found[0].evidence


@pytest.mark.parametrize(
    ("term", "times"),
    [
        ({"kind": "event"}, 1),
        ({"kind": "event", "max_times": 3}, 3),
        ({"kind": "event", "respawns_after": 20}, 5),  # at steps 0, 20, 40, 60, 80
        ({"kind": "event", "respawns_after": 20, "max_times": 2}, 2),
        ({"kind": "event", "max_times": 0}, 10),  # no limit: taken as every tenth step
        ({"kind": "event", "cycles": True, "cycle_steps": 10}, 10),
        ({"kind": "per_step"}, 100),
        ({"kind": "per_step", "max_times": 240}, 100),
        ({"kind": "shaping", "potential_based": True}, 1),
        ({"kind": "terminal", "max_times": 9}, 1),
    ],
)
def test_how_often_a_term_is_earned(term, times):
    described = reward({"name": "x", "value": 1, **term})
    assert Ledger(described).times(described.terms[0]) == times


def test_idle_steps_follow_the_chance_of_failing():
    """Geometric: with a chance of 0.5 a step, 1 + 1/2 + 1/4 + ... = 2 steps."""
    assert Ledger(reward(goal(), failure_probability=0.5)).idle_steps == pytest.approx(2.0)


def test_a_bonus_for_living_is_harmless_where_standing_still_falls():
    alive = {"name": "alive", "kind": "per_step", "value": 1, "passive": True}
    forward = {"name": "forward", "kind": "per_step", "value": 3, "varies": True, "goal": True}
    assert verdict(audit(reward(alive, forward, failure_probability=0.05))) == "ok"


def test_saving_time_is_a_goal():
    """Mountain car pays -1 a step and nothing at the flag: arriving at a quarter of the time saves
    75."""
    described = reward(goal(0.0), {"name": "time", "kind": "per_step", "value": -1})
    assert Ledger(described).success == 75 and verdict(audit(described)) == "ok"


def test_a_paid_step_on_the_way_makes_a_rare_goal_learnable():
    key = {"name": "key", "kind": "event", "value": 1, "reach_probability": 0.05}
    rare = goal(reach_probability=0.0005)
    assert "goal_unreachable_or_too_rare" in keys(reward(rare))
    assert "goal_unreachable_or_too_rare" not in keys(reward(key, {**rare, "requires": "key"}))


def test_a_goal_that_needs_itself_is_unreachable():
    a = {"name": "a", "kind": "event", "value": 1, "requires": "b"}
    b = {"name": "b", "kind": "event", "value": 1, "requires": "a", "goal": True}
    assert keys(reward(a, b))["goal_unreachable_or_too_rare"] == "critical"


def test_a_round_that_costs_more_time_than_it_pays_is_no_cycle():
    lap = {"name": "lap", "kind": "event", "value": 0.1, "cycles": True, "cycle_steps": 4}
    assert keys(reward(goal(1.0), lap))["paid_cycle"] == "critical"
    assert "paid_cycle" not in keys(
        reward(goal(1.0), lap, {"name": "time", "kind": "per_step", "value": -0.05})
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "max_steps is missing"),
        ({"episode": {"max_steps": 10}}, "no [[term]]"),
        ({"episode": {"max_steps": 0}, "term": [goal()]}, "at least 1"),
        ({"episode": {"max_steps": 10, "gama": 1}, "term": [goal()]}, "did you mean 'gamma'"),
        ({"episode": {"max_steps": 10, "gamma": 1.5}, "term": [goal()]}, "between 0 and 1"),
        ({"episode": {"max_steps": 10}, "term": [{"name": "x", "kind": "event"}]}, "has no value"),
        ({"episode": {"max_steps": 10}, "term": [{"kind": "event", "value": 1}]}, "has no name"),
        (
            {"episode": {"max_steps": 10}, "term": [{"name": "x", "kind": "evnt", "value": 1}]},
            "did you mean 'event'",
        ),
        ({"episode": {"max_steps": 10}, "term": [goal(), goal()]}, "two terms"),
        ({"episode": {"max_steps": 10}, "term": [goal(requires="kye")]}, "requires 'kye'"),
        ({"episode": {"max_steps": 10}, "term": [goal(value="ten")]}, "not a finite number"),
        ({"episode": {"max_steps": 10}, "term": [goal(goal="yes")]}, "neither true nor false"),
        (
            {
                "episode": {"max_steps": 10},
                "term": [{"name": "x", "kind": "event", "low": 2, "high": 1}],
            },
            "exchange them",
        ),
        ({"episode": {"max_steps": 10}, "term": [goal(low=1)]}, "a value and a range"),
    ],
)
def test_what_means_nothing_is_refused_in_one_sentence(data, words):
    with pytest.raises(LudusError) as error:
        parse_reward(data)
    assert words in str(error.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(LudusError, match="cannot be read"):
        read_reward(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[episode\n")
    with pytest.raises(LudusError, match="not valid TOML"):
        read_reward(tmp_path / "bad.toml")


def test_json_shape():
    result = as_json(audit(SICK["goal_punished"]))
    assert result["verdict"] == "critical"
    assert set(result["findings"][0]) == {
        "check",
        "severity",
        "cause",
        "evidence",
        "confidence",
        "fix",
        "first_step",
        "last_step",
    }


def test_stages_beside_a_goal_that_pays_every_step_are_let_be():
    """A lifting arm: 1 for reaching, 2.25 for holding up, every step. The stages are 100 of 325."""
    stages = {"name": "reach", "kind": "per_step", "value": 1, "varies": True}
    lift = {"name": "lifted", "kind": "per_step", "value": 2.25, "varies": True, "goal": True}
    assert verdict(audit(reward(stages, lift))) == "ok"
    assert keys(reward({**stages, "value": 3}, lift))["shaping_outweighs_the_goal"] == "critical"


def test_staying_alive_is_no_side_income_where_it_is_a_skill():
    """A bird that flies through pipes: 0.1 a step, 1 a pipe. It cannot have the first without the
    second."""
    alive = {"name": "alive", "kind": "per_step", "value": 0.1}
    pipe = {"name": "pipe", "kind": "event", "value": 1, "max_times": 3, "goal": True}
    assert verdict(audit(reward(alive, pipe, failure_probability=0.02))) == "ok"
    assert verdict(audit(reward(alive, pipe))) == "critical"


def test_a_crash_that_costs_a_hundred_goals():
    near = {"name": "near", "kind": "shaping", "value": 1, "potential_based": True}
    crash = {"name": "crash", "kind": "terminal", "value": -1000, "ends_episode": True}
    assert keys(reward(goal(), near, crash))["penalties_outweigh_the_goal"] == "critical"
    assert verdict(audit(reward(goal(), near, {**crash, "value": -10}))) == "ok"
