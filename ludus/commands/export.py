"""ludus export"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ludus.commands import parse
from ludus.errors import LudusError, nearest

FORMATS = ("onnx",)


@dataclass(kw_only=True)
class Export:
    """Writes a trained run in the format of another program: onnx, a file per role with normaliser and memory."""

    run: Annotated[str, tyro.conf.Positional]
    """RUN, RUN@STEP or RUN@best."""
    format: str = "onnx"
    """onnx."""
    out: str | None = None
    """Folder to write to (default: RUN/export)."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(Export, arguments, "export", "ludus export runs/pursuit-1@best --format onnx")
    if options.format not in FORMATS:
        raise LudusError(f"format '{options.format}' is not known: {nearest(options.format, FORMATS)}")
    from ludus.export.onnx import export_run

    paths = export_run(options.run, Path(options.out) if options.out else None)
    print(json.dumps({"run": options.run, "files": list(map(str, paths))}) if options.json else "\n".join(map(str, paths)))
    return 0
