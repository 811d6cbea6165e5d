"""Who is shown how a training goes. A display that fails says so once and never ends a training."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ludus.training.loop import Trainer


class Display(Protocol):
    def iteration(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        """An iteration is over; `line` is what metrics.jsonl got."""

    def status(self, text: str) -> None:
        """What happens now where it is no iteration: an evaluation and how far it is, the
        report."""

    def stopping(self) -> None:
        """Someone asked to stop. Called from a signal handler: nothing that another call may have
        interrupted."""


class Silent:
    """Shows nothing."""

    def iteration(self, trainer: Trainer, line: Mapping[str, Any]) -> None: ...

    def status(self, text: str) -> None: ...

    def stopping(self) -> None: ...


class Guarded:
    """A display whose failures are reported once, on stderr."""

    def __init__(self, display: Display) -> None:
        self.display = display
        self._reported = False

    def iteration(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        self._try(self.display.iteration, trainer, line)

    def status(self, text: str) -> None:
        self._try(self.display.status, text)

    def stopping(self) -> None:
        self._try(self.display.stopping)

    def _try(self, show: Callable[..., None], *arguments: Any) -> None:
        try:
            show(*arguments)
        except Exception as error:
            self._report(error)

    def _report(self, error: Exception) -> None:
        if not self._reported:
            self._reported = True
            what = f"{type(error).__name__}: {error}"
            with contextlib.suppress(OSError):  # the terminal may be what went away
                print(
                    f"ludus: the display failed and training goes on ({what})",
                    file=sys.stderr,
                    flush=True,
                )
