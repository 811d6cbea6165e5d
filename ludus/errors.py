"""Errors a user can act on: one sentence with the value, the limit and the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LudusError(Exception):
    """Something impossible was asked for. The command line prints it without a traceback and exits with status 2."""


class RuleError(LudusError):
    """A game's rules or declaration cannot work. Raised when the game is defined."""


def nearest(name: str, known: Iterable[str]) -> str:
    """' Did you mean …?' or the list of what there is."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return "there is " + ", ".join(sorted(known)) if known else "there is none"
