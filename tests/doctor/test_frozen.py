"""A policy that does not move, and what holds it."""

import numpy as np
import pytest

from ludus.doctor.checks.gradients import nothing_updated
from ludus.doctor.checks.updates import policy_frozen
from ludus.doctor.log import Curve, Log


@pytest.mark.parametrize(
    ("value_loss", "clip_fraction", "why"),
    [
        (1e12, 0.0, "values, off by 1e+06"),
        (50.0, 0.9, "clip range is too small"),
        (50.0, 0.0, "does not move"),
    ],
)
def test_what_holds_it_is_named(value_loss, clip_fraction, why):
    values = {
        "learner/agent/approx_kl": 1e-8,
        "learner/agent/value_loss": value_loss,
        "learner/agent/clip_fraction": clip_fraction,
    }
    steps = np.arange(20)
    log = Log("test", {n: Curve(n, steps, np.full(20, float(v))) for n, v in values.items()})
    (found,) = policy_frozen(log)
    assert why in found.cause


@pytest.mark.parametrize(("last", "rows", "told"), [(0, 20, True), (3, 20, False), (0, 8, False)])
def test_a_run_without_one_update_is_named(last, rows, told):
    """Not one that made some late, and not one that is too young to tell."""
    updates = np.zeros(rows)
    updates[-1] = last
    log = Log(
        "test", {"progress/updates": Curve("u", np.arange(rows) * 1000.0, updates)}, ours=True
    )
    assert [f.severity for f in nothing_updated(log)] == (["critical"] if told else [])
    log.ours = False  # others may not write it
    assert not list(nothing_updated(log))
