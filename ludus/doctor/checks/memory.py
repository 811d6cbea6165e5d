"""Is the policy's memory used?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ludus.doctor.finding import Finding
from ludus.doctor.log import Log
from ludus.doctor.statistics import tail

UNUSED = 0.01
"""Share of the change that shuffling the observation makes."""
UNIFORM = 0.99


def memory_unused(log: Log) -> Iterator[Finding]:
    """Exchanging the memories of different games changes the policy's output by next to nothing.

    The memory carries nothing: it is reset too often, gets no gradient, backpropagation is shorter than what has to be
    remembered, or the task does not need it.

    Lengthen learn.bptt beyond what has to be remembered, check that the memory gets a gradient; without need for it, leave it out.
    """
    for role in log.roles():
        memory, observation = log.get(f"sensitivity/{role}/memory"), log.get(f"sensitivity/{role}/observation")
        if memory is None or observation is None or len(memory) < 3:
            continue
        a, b = float(np.median(tail(memory.values))), float(np.median(tail(observation.values)))
        if b > 0 and a < UNUSED * b:
            yield Finding(
                check="memory_unused",
                severity="warning",
                cause=f"the memory of {role} does not matter to what it does",
                evidence=f"shuffled memories change its output by {a:.2g}, shuffled observations by {b:.2g}",
                confidence=0.6,
                fix="lengthen learn.bptt, or set policy.memory=none",
                first_step=memory.first_step,
                last_step=memory.last_step,
            )


def attention_uniform(log: Log) -> Iterator[Finding]:
    """The attention over an opponent's history is as even as on the first day, or the strategy vector never varies.

    Nothing in the loss rewards telling opponents apart: one opponent only, or a history too short to tell.

    Train against several kinds of opponents; give the strategy encoder a task of its own (predict the opponent's next action).
    """
    for curve in log.starting("strategy/"):
        late = float(np.median(tail(curve.values)))
        uniform = curve.name.endswith("attention_entropy_share") and late > UNIFORM
        still = curve.name.endswith("vector_std") and late < 1e-3
        if (uniform or still) and len(curve) >= 5:
            yield Finding(
                check="attention_uniform",
                severity="warning",
                cause="the strategy encoder does not tell opponents apart",
                evidence=f"{curve.name} is {late:.3g} over the last half",
                confidence=0.55,
                fix="train against several kinds of opponents; add learn.auxiliary",
                first_step=curve.first_step,
                last_step=curve.last_step,
            )


CHECKS = (memory_unused, attention_uniform)
