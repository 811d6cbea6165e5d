"""ludus export"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ludus.commands.parsing import ReadsRuns, parse
from ludus.errors import LudusError, nearest
from ludus.machine import set_threads

FORMATS = ("onnx", "html", "gif", "mp4")


@dataclass(kw_only=True)
class Export(ReadsRuns):
    """Writes a trained run for others: onnx, a file per role with normaliser and memory; or a
    replay as html, gif or mp4."""

    run: Annotated[str, tyro.conf.Positional]
    """RUN, RUN@STEP or RUN@best."""
    format: str = "onnx"
    """onnx, html (one page that opens from disk), gif or mp4."""
    out: str | None = None
    """Folder to write to (default: RUN/export)."""
    replay: str | None = None
    """Name of the replay, of those in RUN/replays (default: the newest best one)."""
    agent: int | None = None
    """gif, mp4: the agent the camera follows (default: none, an overview)."""
    fps: int = 12
    """gif, mp4: pictures per second."""
    speed: float | None = None
    """gif, mp4: how much faster than it was played (default: 1, more for long episodes, so that 240
    pictures are enough)."""
    width: int = 640
    """gif, mp4: width in pixels."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(Export, arguments, "export", "ludus export runs/pursuit-1@best --format onnx")
    options.believe(options.run)
    if options.format not in FORMATS:
        raise LudusError(
            f"format '{options.format}' is not known: {nearest(options.format, FORMATS)}"
        )
    out = Path(options.out) if options.out else None
    if options.format == "onnx":
        from ludus.export.onnx import export_run

        paths = export_run(options.run, out)
    else:
        paths = [export_replay(options, out)]
    print(
        json.dumps({"run": options.run, "files": list(map(str, paths))})
        if options.json
        else "\n".join(map(str, paths))
    )
    return 0


def export_replay(options: Export, out: Path | None) -> Path:
    from ludus.export.film import export_film

    for name, value, low, high in (
        ("fps", options.fps, 1, 60),
        ("speed", options.speed, 0.1, 16),
        ("width", options.width, 160, 1920),
    ):
        if value is not None and not low <= value <= high:
            raise LudusError(f"--{name} {value:g} is outside {low:g} to {high:g}")
    set_threads(1)
    with progress() as tell:
        path, speed = export_film(
            options.run,
            options.format,
            options.replay,
            out,
            agent=options.agent,
            fps=options.fps,
            speed=options.speed,
            width=options.width // 2 * 2,
            tell=tell,
        )
    if options.speed is None and speed > 1:
        print(
            f"Shown {speed:g} times as fast as it was played, because it is long; --speed sets "
            "another pace.",
            file=sys.stderr,
        )
    return path


@contextmanager
def progress() -> Iterator[Callable[[str, int, int | None], None]]:
    """What is being done, on stderr: a line with a bar that goes away at the end; without a
    terminal a line for each thing."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description} …"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        task, now = shown.add_task("", total=None), ""

        def tell(what: str, done: int, total: int | None) -> None:
            nonlocal now
            shown.update(task, description=what, completed=done, total=total)
            if what != now and not console.is_terminal:
                print(f"{what} …", file=sys.stderr, flush=True)
            now = what

        yield tell
