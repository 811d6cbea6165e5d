"""Is this run healthy? Every check over a log."""

from __future__ import annotations

from ludus.doctor.checks import FAMILIES, checks_of
from ludus.doctor.finding import TOO_LITTLE, Finding, worst_first
from ludus.doctor.foreign import in_their_words
from ludus.doctor.log import FEW_ROWS, Log
from ludus.doctor.names import OF_VALUES

WANTED = {"return": "whether anything is learnt"}
WANTED_OF_POLICIES = {
    "entropy": "whether the policy makes up its mind",
    "approx_kl": "whether updates are of a sensible size",
}


def examine(log: Log) -> list[Finding]:
    """Everything the checks find, worst first, and a note on what they could not see."""
    found = checked(log) if log.ours else [in_their_words(finding, log) for finding in checked(log)]
    return worst_first([*found, *_too_little(log), *_unseen(log)])


def checked(log: Log) -> list[Finding]:
    """What the checks find, causes before symptoms."""
    found: list[Finding] = []
    for family in FAMILIES:
        for check in checks_of(family):
            try:
                found += check(log)
            except (ArithmeticError, ValueError, IndexError) as error:
                # one strange column must not silence all other checks
                log.notes.append(f"the check {check.__name__} could not read this log: {error}")
    return found


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
    by_values = any(_logged(log, key) for key in OF_VALUES)
    wanted = WANTED if by_values else WANTED | WANTED_OF_POLICIES
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
