"""Ctrl-C while rules are compiled."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C within this block always ends it with KeyboardInterrupt.

    LLVM calls back into Python. A KeyboardInterrupt raised in such a callback is printed and
    dropped: either Ctrl-C seems to be ignored, or the compiler fails later with another error. So
    it is remembered, and raised when the block ends.
    """
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # whoever has a handler of their own (the training loop) remembers it already
        return
    pressed, report = False, sys.unraisablehook

    def remember(number: int, frame: Any) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    def report_others(dropped: Any) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            report(dropped)

    signal.signal(signal.SIGINT, remember)
    sys.unraisablehook = report_others
    try:
        yield
    except Exception:
        if not pressed:
            raise
    finally:
        sys.unraisablehook = report
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt
