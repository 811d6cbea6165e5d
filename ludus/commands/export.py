"""ludus export"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ludus.commands import parse
from ludus.errors import LudusError, nearest

FORMATS = ("onnx", "html", "gif", "mp4")


@dataclass(kw_only=True)
class Export:
    """Writes a trained run for others: onnx, a file per role with normaliser and memory; or a replay as html, gif or mp4."""

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
    speed: float = 1.0
    """gif, mp4: how much faster than it was played."""
    width: int = 640
    """gif, mp4: width in pixels."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(Export, arguments, "export", "ludus export runs/pursuit-1@best --format onnx")
    if options.format not in FORMATS:
        raise LudusError(f"format '{options.format}' is not known: {nearest(options.format, FORMATS)}")
    out = Path(options.out) if options.out else None
    if options.format == "onnx":
        from ludus.export.onnx import export_run

        paths = export_run(options.run, out)
    else:
        paths = [export_replay(options, out)]
    print(json.dumps({"run": options.run, "files": list(map(str, paths))}) if options.json else "\n".join(map(str, paths)))
    return 0


def export_replay(options: Export, out: Path | None) -> Path:
    from ludus.export.film import export_film
    from ludus.training.devices import set_threads

    for name, value, low, high in (
        ("fps", options.fps, 1, 60),
        ("speed", options.speed, 0.1, 16),
        ("width", options.width, 160, 1920),
    ):
        if not low <= value <= high:
            raise LudusError(f"--{name} {value:g} is outside {low:g} to {high:g}")
    set_threads(1)
    return export_film(
        options.run, options.format, options.replay, out, agent=options.agent, fps=options.fps, speed=options.speed,
        width=options.width // 2 * 2,
    )  # fmt: skip
