"""Whose return is it? Libraries that let one policy play several agents (RLlib) log the return
of every agent, of every policy, and the sum of all. To the doctor roles are what learns: the
policies."""

from __future__ import annotations

import dataclasses
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from ludus.doctor.names import AGENT, FAMILY, LEARNERS

if TYPE_CHECKING:
    from ludus.doctor.log import Curve, Log

TOGETHER = 1.5
"""Agents who earn together: their sum varies this much more than it would if each earned on its
own."""
OF_EPISODES = tuple(key for key, family in FAMILY.items() if family == "episode")


def by_learner(log: Log) -> None:
    """Leaves every policy its own return, and notes whether one policy plays agents whose gains are
    not each other's."""
    learners = [
        role
        for role in log.roles()
        if any(log.get(f"{FAMILY[key]}/{role}/{key}") is not None for key in LEARNERS)
    ]
    agents = [role for role in log.roles() if role not in (*learners, AGENT)]
    if not learners or (learners == [AGENT] and not agents):
        return
    log.self_play = len(agents) > 1 and not _together(
        [c for a in agents if (c := log.get(f"episode/{a}/return"))]
    )
    for role in learners:
        for key in OF_EPISODES:
            shared, own = log.get(f"episode/{AGENT}/{key}"), f"episode/{role}/{key}"
            if (
                shared is not None
                and own not in log.curves
                and (len(learners) == 1 or key == "length")
            ):
                log.curves[own] = dataclasses.replace(shared, name=own)
    for role in {AGENT, *agents} - set(learners):
        for key in OF_EPISODES:
            log.curves.pop(f"episode/{role}/{key}", None)


def _together(curves: list[Curve]) -> bool:
    if len(curves) < 2:
        return False
    steps = reduce(np.intersect1d, [c.steps for c in curves])
    values = np.array([c.values[np.searchsorted(c.steps, steps)] for c in curves])
    return bool(values.sum(0).var() > TOGETHER * values.var(1).sum())
