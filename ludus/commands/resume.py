"""ludus resume"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import tyro

from ludus.commands.parsing import ReadsRuns, parse
from ludus.commands.summary import report
from ludus.errors import LudusError


@dataclass(kw_only=True)
class Budget:
    total_agent_steps: int | None = None
    """Agent-steps in all."""
    total_seconds: float | None = None
    """Seconds in all."""


@dataclass(kw_only=True)
class Resume(ReadsRuns):
    """Goes on where a run stopped, bit for bit. Only budgets may change: anything else makes a new
    run, `ludus fork`."""

    run: Annotated[str, tyro.conf.Positional]
    """Folder of the run; RUN@STEP goes on from an older checkpoint."""
    train: Budget = field(default_factory=Budget)
    quiet: bool = False
    """No dashboard, no lines."""
    json: bool = False
    """Print the result as JSON."""
    full: bool = False
    """At the end print everything that was measured, and the evidence of all findings."""


def main(arguments: list[str]) -> int:
    for argument in arguments:
        known = ("--train.total", "--quiet", "--trust", "--json", "--full", "--help", "-h")
        if argument.startswith("-") and not argument.startswith(known):
            name = argument.lstrip("-").partition("=")[0]
            raise LudusError(
                f"resume may change only budgets, not {name}: `ludus fork RUN --{name} …` makes a "
                "new run from the same weights"
            )
    options = parse(
        Resume, arguments, "resume", "ludus resume runs/pursuit-1 --train.total-agent-steps 5000000"
    )
    from ludus.api import resume

    budgets = {f"train.{k}": v for k, v in vars(options.train).items() if v is not None}
    run = resume(options.run, quiet=options.quiet or options.json, trust=options.trust, **budgets)
    return report(run, options.json, options.full)
