"""A replay of a run, written as a page, GIF or MP4."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ludus.errors import LudusError, nearest
from ludus.export.page import write_page
from ludus.export.pictures import find_browser, find_ffmpeg, photograph, write_gif, write_mp4
from ludus.training.run import Run, split_reference
from ludus.training.sources import is_foreign
from ludus.viewer.library import Library
from ludus.viewer.pages import Pages
from ludus.viewer.shows import Shows
from ludus.viewer.theatre import Theatre


def export_film(
    reference: str, format: str, replay: str | None, out: Path | None, *, agent: int | None = None, fps: int = 12,
    speed: float = 1.0, width: int = 640,
) -> Path:  # fmt: skip
    """The path of what was written: by default the newest replay of the run's best episode, into RUN/export."""
    if format in ("gif", "mp4"):
        find_browser()
    if format == "mp4":
        find_ffmpeg()
    run = Run(split_reference(reference)[0])
    source = choose(run, replay)
    own = run.config().game
    shows = Shows([own] if ":" in own and not is_foreign(own) else [])
    film = Theatre(Library(None, [run.path]), shows).make_film(run, source)
    pages = pages_of(shows, own)
    if agent is not None and not 0 <= agent < len(film.header["agents"]):
        raise LudusError(f"there is no agent {agent} to follow: use 0 to {len(film.header['agents']) - 1}")
    folder = out or run.path / "export"
    path, title = folder / f"{source.stem}.{format}", f"{run.path.name} · {source.stem}"
    if format == "html":
        return write_page(film, pages, path, title)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as aside:
        page = write_page(film, pages, Path(aside) / "film.html", title)
        {"gif": write_gif, "mp4": write_mp4}[format](photograph(page, fps, speed, width, agent), path, fps)
    return path


def pages_of(shows: Shows, game: str) -> Pages:
    """With the view of a game of the user's own."""
    show = None if is_foreign(game) else shows.find(game)
    return Pages({show.name: show.script} if show and show.script else {})


def choose(run: Run, name: str | None) -> Path:
    """The replay with this name, or the newest best one."""
    found = sorted((run.path / "replays").glob("*.safetensors"))
    if not found:
        raise LudusError(f"{run.path} has no replays: evaluations store some (log.replay-every)")
    if name is None:
        return next((p for p in reversed(found) if p.stem.endswith("-best")), found[-1])
    stem = Path(name).name.removesuffix(".safetensors")
    if stem not in (stems := {p.stem: p for p in found}):
        raise LudusError(f"{run.path} has no replay '{stem}': {nearest(stem, stems)}")
    return stems[stem]
