"""A stage that is never passed must not trap a run in silence."""

import numpy as np
import pytest

from ludus.doctor.checks.curriculum import stage_not_passed
from ludus.doctor.log import Curve, Log


def log(stage, budget, most=None, stages=3):
    """Ten rows of 100 agent-steps; the current stage began with the row in which its number was
    reached."""
    numbers = np.array(stage, float)
    steps = np.arange(1, len(stage) + 1) * 100.0
    began = {n: i * 100 for i, n in reversed(list(enumerate(stage)))}
    spent = np.array([s - began[n] for s, n in zip(steps, stage, strict=True)])
    curves = {
        "progress/agent_steps": steps,
        "curriculum/stage": numbers,
        "curriculum/stages": np.full(len(stage), float(stages)),
        "curriculum/stage_agent_steps": spent,
        "curriculum/bound": np.full(len(stage), 0.31),
        "curriculum/needed": np.full(len(stage), 0.9),
    }
    config = {
        "train.total_agent_steps": budget,
        "curriculum.stages": [{"most_agent_steps": most}] * stages,
    }
    return Log("here", {n: Curve(n, steps, v) for n, v in curves.items()}, config=config)


@pytest.mark.parametrize(
    ("stage", "budget", "most", "told"),
    [
        ([0] * 10, 1000, None, True),
        ([0] * 10, 2000, None, True),
        ([0] * 10, 2100, None, False),  # less than half of the budget so far
        ([0] * 10, None, None, False),  # nobody knows how long it will go on
        ([0] * 10, 1000, 1500, False),  # it ends anyway
        ([0] * 6 + [1] * 4, 1000, None, False),
        ([0] * 3 + [1] * 7, 1000, None, True),
        ([0] * 3 + [2] * 7, 1000, None, False),  # the last stage has no end
    ],
)
def test_who_is_told(stage, budget, most, told):
    findings = list(stage_not_passed(log(stage, budget, most)))
    assert [f.check for f in findings] == (["stage_not_passed"] if told else [])
    if told:
        assert "its bound is 0.31, and 0.9 is needed" in findings[0].evidence


def test_a_log_without_stages_is_silent():
    assert not list(stage_not_passed(Log("here", {})))
