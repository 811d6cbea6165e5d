"""Findings on logs of other libraries: with the names of that log. Fixes need no translation: they
name options only where a run of ours has them (ludus/doctor/options.py)."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

from ludus.doctor.finding import Finding
from ludus.doctor.log import Log


def in_their_words(finding: Finding, log: Log) -> Finding:
    """A finding as somebody can use it who has only that log and the library that wrote it."""
    return dataclasses.replace(
        finding,
        cause=_with_columns(finding.cause, log),
        evidence=_with_columns(finding.evidence, log),
    )


def _with_columns(text: str, log: Log) -> str:
    """Our names of curves, whole or only their last part, become those of the columns they were
    read from. A last part that several columns share stays, and so does one that is a word of its
    own and not in quotes."""
    often = Counter(ours.rsplit("/", 1)[-1] for ours in log.theirs)
    names = dict(log.theirs)
    for ours, theirs in log.theirs.items():
        key = ours.rsplit("/", 1)[-1]
        if often[key] == 1:
            names |= {f"'{key}'": f"'{theirs}'"} | ({key: theirs} if "_" in key else {})
    if not names:
        return text
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(
        rf"(?<![\w/])(?:{longest_first})(?![\w/])", lambda found: names[found.group()], text
    )
