"""Better, worse or neither, told from noisy single episodes."""

import numpy as np
import pytest

from ludus.doctor.checks.learning import return_flat
from ludus.doctor.log import Curve, Log
from ludus.doctor.progress import of_role, progress


def episodes(first, last, count=1000):
    """Returns of single episodes, each off by up to 8, whose mean goes from `first` to `last` over
    the first half."""
    mean = np.interp(np.arange(count), [0, count / 2], [first, last])
    values = mean + np.random.default_rng(0).uniform(-8, 8, count)
    return Curve("episode/agent/return", np.arange(count) * 10, values)


@pytest.mark.parametrize(
    ("last", "worse", "learned"), [(20, False, False), (14, True, False), (26, False, True)]
)
def test_a_mean_that_moves_is_told_from_noise(last, worse, learned):
    judged = progress(episodes(20, last))
    assert (judged.worse, judged.learned) == (worse, learned)


def test_a_return_that_falls_from_the_start_on_points_to_a_sign():
    curve, loss = episodes(20, 14), Curve("learner/agent/value_loss", np.arange(9), np.ones(9))
    (found,) = return_flat(Log("test", {curve.name: curve, loss.name: loss}))
    assert (
        found.severity == "critical"
        and "worse than at the start" in found.cause
        and "sign" in found.fix
    )


def test_a_flat_return_in_a_log_without_any_loss_asks_for_updates():
    curve = episodes(20, 20)
    (found,) = return_flat(Log("test", {curve.name: curve}))
    assert "see whether updates are made" in found.fix


@pytest.mark.parametrize(
    ("rounds", "severity"), [(2, "info"), (3, "info"), (5, "critical"), (50, "critical")]
)
@pytest.mark.parametrize("last", [14, 20])
def test_a_return_is_not_judged_by_the_episodes_that_end_first(rounds, severity, last):
    """Quick wins end first, so that returns begin high: with two or three episodes an env most of
    the log is of these."""
    curve, loss = episodes(20, last), Curve("learner/agent/value_loss", np.arange(9), np.ones(9))
    finished = Curve("progress/episodes", curve.steps, np.linspace(0, rounds * 8, len(curve)))
    log = Log("test", {c.name: c for c in (curve, loss, finished)}, config={"envs": 8}, ours=True)
    (found,) = return_flat(log)
    assert found.severity == severity
    assert of_role(log, "agent").flat == (severity == "critical")
    assert ("too soon" in found.cause and f"{rounds:.1f} episodes each" in found.evidence) == (
        severity == "info"
    )
    if severity == "info":
        # what it asks for is enough: the first episodes are over at 1 / rounds of the log, which is
        # then 0.3 of it
        asked = int(found.fix.split("until ")[1].split(" agent-steps")[0].replace(",", ""))
        assert (
            asked == pytest.approx(curve.last_step / rounds / 0.3, rel=0.1)
            and asked > curve.last_step
        )
