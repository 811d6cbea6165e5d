"""ludus doctor run"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import tyro

from ludus.commands.parsing import ReadsRuns, parse
from ludus.doctor.finding import Finding, as_json, as_text, verdict, worst_first
from ludus.doctor.log import Log, read_log
from ludus.doctor.own_checks import load_checks
from ludus.doctor.reference import REFERENCES, find, track
from ludus.doctor.watch import examine
from ludus.errors import LudusError
from ludus.files import understood


@dataclass(kw_only=True)
class RunCheck(ReadsRuns):
    """Is this run healthy? Reads a run folder, or another library's CSV, JSON lines or TensorBoard
    events. Status 1 if critical. The verdict is ok, warning, critical, or too little data: fewer
    than a dozen rows, in which nothing was found."""

    path: Annotated[str, tyro.conf.Positional]
    """A run folder, a log file, or a folder with one."""
    columns: tuple[str, ...] = ()
    """What the log calls things, as OURS=THEIRS: steps, return, length, goal, entropy, approx_kl,
    value_loss, q_mean …"""
    reference: bool = False
    """Compare with the reference of the recipe: is the run on track?"""
    examine: bool = False
    """First take memory, messages and strategy vector away from the trained policy, and see what it
    does without (a run of ours)."""
    checks: tuple[str, ...] = ()
    """Checks of your own to run too, as package.module:function."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(
        RunCheck,
        arguments,
        "doctor run",
        "ludus doctor run logs/progress.csv --columns return=score goal=win_rate",
    )
    options.believe(options.path)
    own = load_checks(options.checks)
    columns = {}
    for pair in options.columns:
        ours, equals, theirs = pair.partition("=")
        if not (ours and equals and theirs):
            raise LudusError(f"--columns {pair}: write OURS=THEIRS, for example return=score")
        columns[ours] = theirs
    if options.examine:
        from ludus.examine.interventions import examine_run

        examine_run(options.path)
    with understood(options.path):
        log = read_log(options.path, columns)
        findings = examine(log, own)
    if options.reference:
        findings = worst_first([*findings, _track(log)])
    print(json.dumps(as_json(findings)) if options.json else as_text(findings))
    return 1 if verdict(findings) == "critical" else 0


def _track(log: Log) -> Finding:
    reference = find(REFERENCES, log.config)
    if reference is None:
        known = ", ".join(sorted(path.stem for path in REFERENCES.glob("*.json"))) or "none"
        game = log.config.get("game", "a game that is not known")
        raise LudusError(
            f"there is no reference for {game}: there are {known}; make one with `ludus doctor "
            "reference`"
        )
    return track(log, reference)
