"""Is this run healthy? Every check over a log."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from ludus.doctor.checks import Check, in_order
from ludus.doctor.finding import TOO_LITTLE, Finding, worst_first
from ludus.doctor.foreign import in_their_words
from ludus.doctor.log import FEW_ROWS, Log
from ludus.imports import where_raised

WANTED = {"return": "whether anything is learnt"}
WANTED_OF_POLICIES = {
    "entropy": "whether the policy makes up its mind",
    "approx_kl": "whether updates are of a sensible size",
}
OF_STRANGE_COLUMNS = (ArithmeticError, ValueError, IndexError)
"""What a column of unusual numbers raises in a check. In one of ours anything else is a mistake."""


def examine(log: Log, own: Sequence[Check] = ()) -> list[Finding]:
    """Everything the checks find, those of the user's `own` too, worst first, and a note on what
    they could not see."""
    found = checked(log, own)
    found = found if log.ours else [in_their_words(finding, log) for finding in found]
    return worst_first([*found, *_too_little(log), *_unseen(log)])


def checked(log: Log, own: Sequence[Check] = ()) -> list[Finding]:
    """What the checks find, causes before symptoms. A check that fails is noted in log.notes: it
    must not silence all others."""
    found: list[Finding] = []
    for check in in_order(own):
        try:
            found += _named(check, check(log)) if check in own else check(log)
        except (Exception, SystemExit) as error:
            if check not in own and not isinstance(error, OF_STRANGE_COLUMNS):
                raise
            why = where_raised(error) if check in own else error
            log.notes.append(f"the check {check.name} could not read this log: {why}")
    return found


def _named(check: Check, findings: Iterable[Finding]) -> list[Finding]:
    """Under the name of their check, by which everything else goes."""
    return [dataclasses.replace(finding, check=check.name) for finding in findings]


def _too_little(log: Log) -> list[Finding]:
    if log.rows >= FEW_ROWS:
        return []
    return [
        Finding(
            check=TOO_LITTLE,
            severity="info",
            cause="too little was logged to judge: silence does not mean that all is well",
            evidence=f"{log.rows} row(s) say something about learning, and most checks wait for "
            f"{FEW_ROWS}",
            confidence=1.0,
            fix="train longer, or log more often",
        )
    ]


def _unseen(log: Log) -> list[Finding]:
    notes = list(log.notes)
    wanted = WANTED if log.by_values else WANTED | WANTED_OF_POLICIES
    missing = [f"{key} ({why})" for key, why in wanted.items() if not _logged(log, key)]
    if missing and log.curves:
        notes.append(f"not in the log: {'; '.join(missing)}")
    if not notes:
        return []
    return [
        Finding(
            check="not_seen",
            severity="info",
            cause="parts of the log are missing or could not be used, so what they would show was "
            "not looked at",
            evidence="; ".join(notes),
            confidence=1.0,
            fix="log what is missing, or say what it is called: --columns OURS=THEIRS (return, "
            "length, goal, entropy, approx_kl …)",
        )
    ]


def _logged(log: Log, key: str) -> bool:
    return any(log.of(role, key) is not None for role in log.roles())
