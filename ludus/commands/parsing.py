"""Arguments of a command as a dataclass, and options that several commands have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import tyro

from ludus.runs.run import split_reference
from ludus.runs.trust import believe

T = TypeVar("T")


def parse(kind: type[T], arguments: list[str], command: str, example: str) -> T:
    """Arguments as a dataclass; `--help` ends with an example. tyro prints what is wrong and exits
    with status 2."""
    description = f"{(kind.__doc__ or '').strip()}\n\nExample: {example}"
    config = (tyro.conf.FlagCreatePairsOff,)
    return tyro.cli(
        kind, args=arguments, prog=f"ludus {command}", description=description, config=config
    )


@dataclass(kw_only=True)
class ReadsRuns:
    """An option of commands that load what runs are made of."""

    trust: bool = False
    """Load the code that a run names (its game, algorithm, network …) although the run was not made
    on this machine: that executes it."""

    def believe(self, *references: str) -> None:
        """With --trust: the runs that were named."""
        for reference in references if self.trust else ():
            believe(split_reference(reference)[0])
