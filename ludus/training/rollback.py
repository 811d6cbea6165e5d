"""Going back after a critical finding: a new run from the last healthy checkpoint, with the
finding's fix in its config."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ludus.config import Config, flatten, set_value
from ludus.config.schedules import parse
from ludus.doctor.finding import Finding
from ludus.errors import LudusError
from ludus.imports import section_name
from ludus.runs import checkpoint
from ludus.runs.run import Run

MOST = 3
"""Rollbacks in a row: what the third did not mend, a fourth will not."""
_NUMBERED = re.compile(r"(.*)-rollback-(\d+)")


@dataclass(frozen=True)
class Plan:
    """Where the new run starts, what it changes, and where it lives."""

    step: int
    seconds: float
    schedule_share: float
    changes: dict[str, str]
    path: Path


def plan(run: Run, finding: Finding, config: Config) -> Plan | None:
    """None where going back would not help: no suggested change, or it has been tried often
    enough."""
    values = flatten(config)
    changes = {
        name: _changed(name, values[name], change)
        for name, change in named(finding, config).items()
    }
    path = _next_path(run.path)
    if not changes or path is None:
        return None
    first = finding.first_step or 0
    healthy = [step for step in checkpoint.steps(run) if step < first]
    step = max(healthy, default=min(checkpoint.steps(run)))
    progress = checkpoint.read_manifest(run, step)["progress"]
    return Plan(step, progress["seconds"], progress["schedule_share"], changes, path)


def named(finding: Finding, config: Config) -> dict[str, str]:
    """The overrides that the config has, for roles with a value of their own as well."""
    known, out = flatten(config), {}
    own = f"{section_name(config.algorithm)}."
    for name, change in finding.overrides.items():
        if name in known:
            out[name] = change
            key = name.removeprefix(own)
            out |= {
                n: change for n in known if n.startswith(f"{own}roles.") and n.endswith(f".{key}")
            }
    return out


def apply(config: Config, chosen: Plan) -> None:
    """Puts the changes in; what is left of the budget is the new run's, and its schedules go on
    where they stood."""
    values = flatten(config)
    for name, value in chosen.changes.items():
        set_value(config, name, _as(values[name], value))
    if config.train.total_agent_steps is not None:
        config.train.total_agent_steps -= chosen.step
    if config.train.total_seconds is not None:
        config.train.total_seconds -= chosen.seconds


def _changed(name: str, value: object, change: str) -> str:
    """`*0.1` as a value: a number or every number of a schedule is multiplied."""
    if not change.startswith("*"):
        return change
    if not isinstance(value, int | float | str):
        raise LudusError(f"{name}={value} is no number that could be multiplied by {change[1:]}")
    factor, schedule = float(change[1:]), parse(value, name)
    if len(schedule.points) == 1:
        return f"{schedule.values[0] * factor:g}"
    if schedule.cosine:
        return f"cosine {schedule.values[0] * factor:g} -> {schedule.values[1] * factor:g}"
    return ", ".join(f"{share:g}:{value * factor:g}" for share, value in schedule.points)


def _as(now: object, value: str) -> object:
    """The text as what the field holds: a number where it is one."""
    try:
        number = float(value)
    except ValueError:
        return value
    return (
        int(number)
        if isinstance(now, int) and not isinstance(now, bool) and number.is_integer()
        else number
    )


def _next_path(path: Path) -> Path | None:
    match = _NUMBERED.fullmatch(path.name)
    stem, done = (match[1], int(match[2])) if match else (path.name, 0)
    return path.with_name(f"{stem}-rollback-{done + 1}") if done < MOST else None
