"""The checks of a training log, one file per family. A check takes the log and yields findings; its
name is the finding's.

A docstring has three paragraphs for a newcomer: what the check sees, why it happens, what to do.
The handbook is made of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from ludus.doctor.finding import Finding
from ludus.doctor.log import Log

Check = Callable[[Log], Iterable[Finding]]

# Causes before symptoms: among equally severe findings the first is the one to mend.
FAMILIES = (
    "gradients",
    "environment",
    "updates",
    "value",
    "entropy",
    "exploration",
    "reward_hacking",
    "self_play",
    "curriculum",
    "memory",
    "learning",
    "throughput",
)


def checks_of(family: str) -> tuple[Check, ...]:
    found: tuple[Check, ...] = importlib.import_module(f"ludus.doctor.checks.{family}").CHECKS
    return found
