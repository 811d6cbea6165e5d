"""What must hold for every reward, whatever it is."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ludus.doctor.audit import audit
from ludus.doctor.rewards import KINDS, parse_reward

VALUES = st.sampled_from([-100.0, -10.0, -1.0, -0.1, -0.01, 0.0, 0.01, 0.1, 1.0, 10.0, 100.0])
CHANCES = st.sampled_from([0.0, 1e-6, 1e-3, 0.01, 0.3, 1.0])
STEPS = st.sampled_from([0, 1, 2, 10, 1000])
FLAGS = st.booleans()


@st.composite
def rewards(draw):
    terms = []
    for i in range(draw(st.integers(1, 4))):
        low, high = sorted([draw(VALUES), draw(VALUES)])
        amount = {"low": low, "high": high} if draw(FLAGS) else {"value": low}
        options = {
            "goal": FLAGS,
            "passive": FLAGS,
            "max_times": STEPS,
            "respawns_after": STEPS,
            "cycles": FLAGS,
            "cycle_steps": STEPS,
            "varies": FLAGS,
            "random_share": CHANCES,
            "potential_based": FLAGS,
            "ends_episode": FLAGS,
            "reach_probability": CHANCES,
            "requires": st.sampled_from([f"t{k}" for k in range(i + 1)]),
        }
        chosen = {k: draw(s) for k, s in options.items() if draw(st.integers(0, 3)) == 0}
        terms.append({"name": f"t{i}", "kind": draw(st.sampled_from(KINDS)), **amount, **chosen})
    episode = {
        "max_steps": draw(st.sampled_from([1, 7, 100, 5000])),
        "gamma": draw(st.sampled_from([0.0, 0.9, 0.99, 1.0])),
        "failure_probability": draw(CHANCES),
    }
    return {"episode": episode, "term": terms}


def summary(data) -> list[tuple[str, str]]:
    return [(f.check, f.severity) for f in audit(parse_reward(data))]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(rewards(), st.sampled_from([0.125, 4.0, 1024.0]))
def test_the_unit_of_reward_does_not_matter(data, factor):
    """No reward breaks the audit, and one in other units gets the same findings. (Powers of two: no
    rounding.)"""
    scaled = [
        {k: v * factor if k in ("value", "low", "high") else v for k, v in t.items()}
        for t in data["term"]
    ]
    assert summary(data) == summary({**data, "term": scaled})


@settings(max_examples=200, deadline=None, derandomize=True)
@given(rewards())
def test_a_clip_above_every_value_changes_nothing(data):
    clipped = {**data, "episode": {**data["episode"], "reward_clip": 1e6}}
    assert summary(data) == summary(clipped)
