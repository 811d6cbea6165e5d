"""Errors a user can act on: one sentence with the value, the limit and the fix."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable

BEYOND_US = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
"""What a disk or its owner says no to: told in one sentence. Any other error of the system is a defect of ours."""


class LudusError(Exception):
    """Something impossible was asked for. The command line prints it without a traceback and exits with status 2."""


class RuleError(LudusError):
    """A game's rules or declaration cannot work. Raised when the game is defined."""


FAULTS = (Exception, SystemExit)
"""What to catch of a user's code: a call of sys.exit() in it would end the program without a word, and with success."""


def nearest(name: str, known: Iterable[str]) -> str:
    """' Did you mean …?' or the list of what there is."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return "there is " + ", ".join(sorted(known)) if known else "there is none"
