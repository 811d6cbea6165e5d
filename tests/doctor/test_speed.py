"""Speeds in logs of other libraries, worked out by hand: averages since the start, and play before
the first update."""

import numpy as np
import pytest

from ludus.doctor.checks.throughput import slowing_down
from ludus.doctor.log import Curve, Log

STEPS = np.arange(1, 101) * 100


def log_of(seconds_per_step, average=True, learns_from=0):
    """100 rows of 100 steps each, whose steps take this long."""
    took = np.cumsum(100 * seconds_per_step)
    speed = STEPS / took if average else 1 / seconds_per_step
    late = learns_from < STEPS
    curves = {"speed/average": speed, "progress/agent_steps": STEPS.astype(float)}
    log = Log("test", {n: Curve(n, STEPS, v) for n, v in curves.items()})
    log.curves["learner/agent/value_loss"] = Curve(
        "learner/agent/value_loss", STEPS[late], np.ones(late.sum())
    )
    return log


@pytest.mark.parametrize("share", [0.2, 0.3, 0.6])
def test_an_average_that_sinks_after_a_fast_warm_up_is_no_slow_down(share):
    warm = share * STEPS[-1] >= STEPS
    assert (
        list(slowing_down(log_of(np.where(warm, 0.02, 0.4), learns_from=int(share * STEPS[-1]))))
        == []
    )


def test_an_average_hides_a_leak_and_the_rows_between_show_it():
    """A step takes 0.1 s for a fifth of the run, then more and more, up to 0.5 s, 0.26 s in the
    mean. The average still has 38% of its start, the speed itself a fifth."""
    seconds = np.concatenate([np.full(20, 0.1), np.linspace(0.1, 0.5, 80)])
    average = log_of(seconds).curves["speed/average"].values
    (found,) = slowing_down(log_of(seconds))
    assert average[-1] / average[19] > 0.35 and found.severity == "critical"


@pytest.mark.parametrize(("last", "found"), [(0.1, 0), (1.0, 1)])
def test_a_speed_of_the_moment_is_taken_as_it_is(last, found):
    noise = np.random.default_rng(0).uniform(0.7, 1.3, 100)
    assert (
        len(list(slowing_down(log_of(np.linspace(0.1, last, 100) * noise, average=False)))) == found
    )


def test_agents_that_die_slow_nothing_down():
    """Every iteration makes 1,000 steps of envs in a second, in which ever fewer agents are alive.
    With seconds that grow to five times as many it is a slow-down all the same."""

    def told(seconds):
        alive = np.linspace(10, 2, 100)
        curves = {
            "progress/agent_steps": np.cumsum(1000 * alive),
            "progress/env_steps": np.arange(1, 101) * 1000.0,
            "progress/seconds": np.cumsum(seconds),
            "speed/agent_steps_per_s": 1000 * alive / seconds,
            "speed/cpu_seconds": seconds,
            "speed/share/simulate": np.full(100, 0.7),
            "speed/share/learn": np.full(100, 0.3),
        }
        steps = curves["progress/agent_steps"]
        return [
            f.severity
            for f in slowing_down(
                Log("test", {n: Curve(n, steps, v) for n, v in curves.items()}, ours=True)
            )
        ]

    assert told(np.ones(100)) == [] and told(np.linspace(1, 5, 100)) == ["warning"]


@pytest.mark.parametrize(("gpu", "severity"), [(True, "info"), (False, "warning")])
def test_where_a_gpu_computes_processor_time_is_waiting(gpu, severity):
    """Others come to the same GPU: a step takes longer and longer, and the processor waits all the
    time."""
    took = np.linspace(0.1, 0.3, 100)
    curves = {
        "speed/agent_steps_per_s": 1 / took,
        "speed/cpu_seconds": 100 * took,
        "progress/agent_steps": STEPS.astype(float),
    }
    curves |= {"speed/share/learn": np.full(100, 0.7), "speed/share/rollout": np.full(100, 0.3)}
    curves |= {"memory/gpu_allocated_mb": np.full(100, 900.0)} if gpu else {}
    (found,) = slowing_down(Log("test", {n: Curve(n, STEPS, v) for n, v in curves.items()}))
    assert found.severity == severity
