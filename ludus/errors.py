"""Errors a user can act on: one sentence with the value, the limit and the fix."""

from __future__ import annotations

import contextlib
import difflib
import errno
from collections.abc import Iterable, Iterator
from pathlib import Path


class LudusError(Exception):
    """Something impossible was asked for. The command line prints it without a traceback and exits
    with status 2."""


class RuleError(LudusError):
    """A game's rules or declaration cannot work. Raised when the game is defined."""


FAULTS = (Exception, SystemExit)
"""What to catch of a user's code: a call of sys.exit() in it would end the program without a word,
and with success."""


LISTED = 30  # names in a message


def nearest(name: str, known: Iterable[str]) -> str:
    """'did you mean …?', or the list of what there is."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    if not names:
        return "there is none"
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"there is {', '.join(names[:LISTED])}{rest}"


OF_THE_DISK = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EROFS,
    errno.EFBIG,
    errno.EACCES,
    errno.EPERM,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ELOOP,
)


def reason(error: BaseException) -> str:
    """What is wrong, without the number of an error of the system."""
    return getattr(error, "strerror", None) or str(error)


@contextlib.contextmanager
def disk_in_one_sentence(path: Path | None = None) -> Iterator[None]:
    """A disk that is full or broken, a folder that may not be written, a folder where a file should
    be: no traceback. `path`:
    what is being written, where the error does not say."""
    try:
        yield
    except Exception as error:
        of_safetensors = type(error).__name__ == "SafetensorError" and "(os error " in str(error)
        if not of_safetensors and not (isinstance(error, OSError) and error.errno in OF_THE_DISK):
            raise
        where = getattr(error, "filename", None) or path or "a file"
        raise LudusError(
            f"{where} could not be written or read ({reason(error)}): what was saved before is "
            "intact; put that right, and run the "
            f"command again (a training: `ludus resume`)"
        ) from error
