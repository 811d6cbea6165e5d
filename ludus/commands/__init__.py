"""One module per command; each has `main(arguments)` and returns the exit status."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def parse(kind: type[T], arguments: list[str], command: str, example: str) -> T:
    """Arguments as a dataclass; `--help` ends with an example. tyro prints what is wrong and exits with status 2."""
    import tyro

    description = f"{(kind.__doc__ or '').strip()}\n\nExample: {example}"
    config = (tyro.conf.FlagCreatePairsOff,)
    return tyro.cli(kind, args=arguments, prog=f"ludus {command}", description=description, config=config)
