"""ludus doctor check"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from ludus.commands.options import parse_config
from ludus.commands.parsing import parse
from ludus.doctor.audit import audit
from ludus.doctor.finding import Finding, as_json, as_text, verdict
from ludus.doctor.rewards import read_reward
from ludus.errors import LudusError

OURS = ("--rewards", "--overfit", "--help", "-h")
EXAMPLE = "ludus doctor check hide_and_seek --game.reward.sees 0.2"


@dataclass(kw_only=True)
class Check:
    """Can this recipe work? Audits its reward, then tries it out: what players earn, spaces,
    budget, one update. All options of `ludus train RECIPE` may follow. Status 1 if the verdict is
    critical."""

    recipe: Annotated[str | None, tyro.conf.Positional] = None
    """A recipe or game, NAME:PRESET, or module:function of your own."""
    rewards: str | None = None
    """A reward described in a TOML file (docs/doctor/rewards.md), for a game that is not in
    Ludus."""
    paper: bool = False
    """Only audit the declared reward, without playing: a second instead of twenty."""
    overfit: float | None = None
    """Also train for so many seconds on a single fixed seed, which must be mastered."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    own, changes = _split(arguments)
    options = parse(Check, own, "doctor check", EXAMPLE)
    if (options.recipe is None) == (options.rewards is None):
        raise LudusError("'ludus doctor check' needs a recipe or --rewards FILE, and not both")
    if options.rewards is not None:
        findings = _of_file(options.rewards)
    else:
        findings = _of_recipe(str(options.recipe), changes, options)
    print(json.dumps(as_json(findings)) if options.json else as_text(findings))
    return 1 if verdict(findings) == "critical" else 0


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our own options, which come anywhere, and those of the config."""
    own: list[str] = []
    changes: list[str] = []
    into = own
    for argument in arguments:
        name = argument.partition("=")[0]
        if name in ("--json", "--paper"):
            own.append(argument)
            continue
        if name.startswith("-"):
            into = own if name in OURS else changes
        into.append(argument)
    return own, changes


def _of_file(path: str) -> list[Finding]:
    return audit(read_reward(path))


def _of_recipe(name: str, changes: list[str], options: Check) -> list[Finding]:
    from ludus.examine.audit_game import audit_config, config_of

    config: Any = config_of(name)
    if changes:
        config, _, _ = parse_config(
            config, changes, f"doctor check {name}", EXAMPLE, "Checks a recipe with changes."
        )
    if options.paper:
        return audit_config(config)
    from ludus.examine.check import check_config

    return check_config(config, overfit=options.overfit)
