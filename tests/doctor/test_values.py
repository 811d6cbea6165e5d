"""Values that have settled at one reward: CartPole pays 1 a step, so with gamma 0.99 a value of 100 steps is about 40 on average."""

import numpy as np
import pytest

from ludus.doctor.checks.value import values_see_one_step
from ludus.doctor.log import Curve, Log

STEPS = np.arange(60) * 100


def log_of(q, returns, lengths):
    values = {"rainbow/agent/q_mean": q, "episode/agent/return": returns, "episode/agent/length": lengths}
    return Log("test", {n: Curve(n, STEPS, np.broadcast_to(np.asarray(v, float), STEPS.shape)) for n, v in values.items()})


@pytest.mark.parametrize(
    ("q", "returns", "lengths", "found"),
    [
        (0.99, 100, 100, 1),
        (-1.01, -100, 100, 1),  # each step costs 1
        (40.0, 100, 100, 0),
        (np.linspace(0, 2, 60), 100, 100, 0),  # on its way up
        (0.4, 1, 100, 0),  # paid once, at the end: a step pays 0.01
        (1.0, 3, 3, 0),  # short episodes
        (-0.99, 100, 100, 0),
        (0.0, 0, 100, 0),
    ],
)
def test_only_a_value_that_has_settled_at_one_reward_of_many(q, returns, lengths, found):
    assert len(list(values_see_one_step(log_of(q, returns, lengths)))) == found
