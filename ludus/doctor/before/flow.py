"""Does one update on real data reach every parameter, and does every input reach the output?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ludus.doctor.finding import Finding

NOTHING = 1e-12


@dataclass(frozen=True)
class Flow:
    """One role's network after one update."""

    role: str
    gradients: Mapping[str, float]
    """Parameter → norm of its gradient."""
    inputs: Mapping[str, float]
    """Block of inputs → change of the output when it is exchanged between envs. Only blocks that
    differ between envs."""


def judge(flow: Flow) -> list[Finding]:
    return [f for check in CHECKS for f in check(flow)]


def parameter_without_gradient(flow: Flow) -> Iterator[Finding]:
    """A parameter gets no gradient from an update on real data, while others do.

    Its output is not used, a detach cut it off, or all that flows into it is zero.

    Follow its output to the loss; remove it if nothing uses it.
    """
    silent = [name for name, norm in flow.gradients.items() if norm <= NOTHING]
    if not silent:
        return
    every = len(silent) == len(flow.gradients)
    yield Finding(
        check="parameter_without_gradient",
        severity="critical" if every else "warning",
        cause=f"{'nothing' if every else 'not every part'} of the network of {flow.role} is "
        "trained",
        evidence=f"no gradient in {len(silent)} of {len(flow.gradients)} parameters: "
        f"{', '.join(silent[:6])}{' …' if len(silent) > 6 else ''}",
        fix="see whether any reward was earned in the rollout"
        if every
        else f"follow the output of '{silent[0]}' to the loss",
        confidence=0.8,
    )


def input_ignored(flow: Flow) -> Iterator[Finding]:
    """Exchanging a block of inputs between envs leaves the policy's output as it is.

    The block does not reach the network: a slice that is off, a mask that covers it, weights that
    start at zero and stay there.

    Follow it from the observation to the first layer.
    """
    ignored = [name for name, change in flow.inputs.items() if change <= NOTHING]
    if ignored:
        every = len(ignored) == len(flow.inputs)
        yield Finding(
            check="input_ignored",
            severity="critical" if every else "warning",
            cause=f"the policy of {flow.role} does not depend on {', '.join(ignored)}",
            evidence=", ".join(f"{name} {change:.2g}" for name, change in flow.inputs.items())
            + " (change of the output)",
            fix=f"follow '{ignored[0]}' from the observation to the first layer",
            confidence=0.8,
        )


CHECKS = (parameter_without_gradient, input_ignored)
