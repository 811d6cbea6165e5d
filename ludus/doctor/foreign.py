"""Findings on logs of other libraries: with the names of that log, and without options that only
our trainer has."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

from ludus.doctor.finding import Finding
from ludus.doctor.log import Log

_OPTION = r"(?:learn|rainbow|policy)\.[a-z]"
IN_BRACKETS = re.compile(rf" \((?:--)?{_OPTION}[^)]*\)")
"""An option beside words that say the same."""
OPTION = re.compile(rf"(--)?{_OPTION}(?:[\w.-]*\w)?(=)?")
WORDS = {
    "entropy": "the entropy coefficient",
    "max_grad_norm": "gradient clipping",
    "target_kl": "the target KL",
    "clip": "the clip range",
    "value_weight": "the weight of the value loss",
    "gamma": "gamma",
}
"""Options whose name says too little; of others the name itself does: the learning rate."""


def in_their_words(finding: Finding, log: Log) -> Finding:
    """A finding as somebody can use it who has only that log and the library that wrote it."""
    return dataclasses.replace(
        finding,
        cause=_with_columns(finding.cause, log),
        evidence=_with_columns(finding.evidence, log),
        fix=OPTION.sub(_plainly, IN_BRACKETS.sub("", finding.fix)),
        overrides={},
    )


def _plainly(option: re.Match[str]) -> str:
    """learn.entropy=0.01 and --learn.entropy 0.01 → the entropy coefficient at 0.01"""
    dashes, equals = option.groups()
    name = option.group().strip("-=").replace("-", "_").rsplit(".", 1)[-1]
    words = WORDS.get(name, f"the {name.replace('_', ' ')}")
    return words + (" at " if equals else " at" if dashes else "")


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
