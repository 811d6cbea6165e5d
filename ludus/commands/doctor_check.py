"""ludus doctor check"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import tyro

from ludus.commands import parse
from ludus.doctor.finding import Finding, as_json, as_text, verdict
from ludus.errors import LudusError


@dataclass(kw_only=True)
class Check:
    """Can this recipe work? Audits its reward before the first step. Status 1 if the verdict is critical."""

    recipe: Annotated[str | None, tyro.conf.Positional] = None
    """A recipe or game, NAME:PRESET, or module:function of your own."""
    rewards: str | None = None
    """A reward described in a TOML file (docs/doctor/rewards.md), for a game that is not in Ludus."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(Check, arguments, "doctor check", "ludus doctor check --rewards my_reward.toml --json")
    if (options.recipe is None) == (options.rewards is None):
        raise LudusError("'ludus doctor check' needs a recipe or --rewards FILE, and not both")
    findings = _of_file(options.rewards) if options.rewards is not None else _of_recipe(str(options.recipe))
    print(json.dumps(as_json(findings)) if options.json else as_text(findings))
    return 1 if verdict(findings) == "critical" else 0


def _of_file(path: str) -> list[Finding]:
    from ludus.doctor.audit import audit
    from ludus.doctor.rewards import read_reward

    return audit(read_reward(path))


def _of_recipe(name: str) -> list[Finding]:
    from ludus.examine.audit_game import audit_recipe

    return audit_recipe(name)
