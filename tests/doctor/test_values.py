"""Values that have settled at one reward: CartPole pays 1 a step, so with gamma 0.99 a value of 100
steps is about 40 on average. And values that can see no further than their targets were copied."""

import numpy as np
import pytest

from ludus.doctor.checks.value import values_see_few_steps, values_see_one_step
from ludus.doctor.log import Curve, Log

STEPS = np.arange(60) * 100


def log_of(q, returns, lengths):
    values = {
        "learner/agent/q_mean": q,
        "episode/agent/return": returns,
        "episode/agent/length": lengths,
    }
    return Log(
        "test",
        {
            n: Curve(n, STEPS, np.broadcast_to(np.asarray(v, float), STEPS.shape))
            for n, v in values.items()
        },
    )


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


def budgeted(copied_every, updates, returns=0.0, share=1.0, **settings):
    """A run of 60,000 steps and 200 to an episode, `share` of it done, with so many updates so
    far."""
    values = {
        "learner/agent/value_loss": 1.0,
        "episode/agent/return": returns,
        "episode/agent/length": 200,
        "progress/updates": updates,
    }
    values |= {"progress/agent_steps": np.linspace(0, 60_000 * share, 60)}
    log = Log(
        "test",
        {
            n: Curve(n, STEPS, np.broadcast_to(np.asarray(v, float), STEPS.shape))
            for n, v in values.items()
        },
    )
    rainbow = {
        "target_every": copied_every,
        "target_tau": 1.0,
        "n_step": 1,
        "gamma": 0.997,
        **settings,
    }
    log.config = {"algorithm": "rainbow", "train.total_agent_steps": 60_000} | {
        f"rainbow.{k}": v for k, v in rainbow.items()
    }
    return log


UPDATES = np.arange(60) * 500.0
BETTER = np.linspace(0, 10, 60)


@pytest.mark.parametrize(
    ("log", "severity"),
    [
        (budgeted(1000, UPDATES), "critical"),  # 30 copies of 200 steps
        (budgeted(1000, UPDATES, returns=BETTER), "info"),
        (budgeted(1000, UPDATES, n_step=10), None),
        (budgeted(100, UPDATES), None),
        (budgeted(1000, UPDATES, gamma=0.95), None),  # it does not look further than that
        # a thousandth of a copy, a thousand times as often
        (budgeted(1, UPDATES, target_tau=0.001), "critical"),
        (budgeted(1, UPDATES, target_tau=0.01), None),
        (budgeted(100, UPDATES / 10, share=0.1), None),  # at this pace there will be enough
        (budgeted(1000, UPDATES / 10, share=0.1), "critical"),
        (budgeted(1000, np.zeros(60)), None),  # the replay is not warm yet
    ],
)
def test_values_see_no_further_than_their_targets_were_copied(log, severity):
    assert [f.severity for f in values_see_few_steps(log)] == ([severity] if severity else [])
