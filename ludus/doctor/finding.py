"""What the doctor reports: a cause in plain words, the evidence, how sure it is, and a fix."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SEVERITIES = ("info", "warning", "critical")
TOO_LITTLE = "too_little_data"
"""The check, and the verdict where nothing worse is found: there is not enough to say that all is
well."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One failure, seen once or for long. `check` is a stable key: scripts and the handbook go by
    it."""

    check: str
    severity: str
    cause: str
    evidence: str
    fix: str
    confidence: float
    """0 to 1: how often a reward or run that looks like this is really sick."""
    first_step: int | None = None
    last_step: int | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    """The fix as config values where it is one: ppo.target_kl → 0.02; *0.1 means a tenth of what
    it is."""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity '{self.severity}' is not one of {', '.join(SEVERITIES)}")


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Critical before warning before info; among equals in the order given, which puts causes
    before symptoms."""
    return sorted(findings, key=lambda f: -SEVERITIES.index(f.severity))


def verdict(findings: Iterable[Finding]) -> str:
    """ok, warning, critical, or too_little_data. Other information leaves a verdict of ok."""
    found = list(findings)
    worst = max((SEVERITIES.index(f.severity) for f in found), default=0)
    if worst:
        return SEVERITIES[worst]
    return TOO_LITTLE if any(f.check == TOO_LITTLE for f in found) else "ok"


def verdict_in_words(verdict: str) -> str:
    return verdict.replace("_", " ")


def as_json(findings: Iterable[Finding]) -> dict[str, Any]:
    """What commands print with --json; overrides are in the text of the fix."""
    found = worst_first(findings)
    shown = [f.name for f in dataclasses.fields(Finding) if f.name != "overrides"]
    return {
        "verdict": verdict(found),
        "findings": [{name: getattr(f, name) for name in shown} for f in found],
    }


def as_text(findings: Iterable[Finding]) -> str:
    found = worst_first(findings)
    lines = [f"verdict: {verdict_in_words(verdict(found))}"]
    for f in found:
        lines += ["", f"{f.severity}: {f.check} (confidence {f.confidence:.0%}){_steps(f)}"]
        lines += [f"  cause     {f.cause}", f"  evidence  {f.evidence}", f"  fix       {f.fix}"]
    return "\n".join(lines)


def _steps(finding: Finding) -> str:
    if finding.first_step is None:
        return ""
    return f", from step {finding.first_step:,}" + (
        "" if finding.last_step is None else f" to {finding.last_step:,}"
    )
