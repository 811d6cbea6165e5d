"""A replay of a run, written as a page, GIF or MP4."""

from __future__ import annotations

import math
import shutil
import tempfile
from pathlib import Path

from ludus.batches import is_foreign
from ludus.errors import LudusError, nearest
from ludus.export.page import write_page
from ludus.export.pictures import (
    Tell,
    find_browser,
    find_ffmpeg,
    photograph,
    picture_count,
    silent,
    write_gif,
    write_mp4,
)
from ludus.external.recording import Recording, is_recording
from ludus.films.pages import Pages
from ludus.films.replayed import FilmMaker
from ludus.films.shows import Shows
from ludus.play.replay import Replay
from ludus.runs.run import Run, split_reference

ENOUGH_PICTURES = 240  # of an episode that nobody gave a speed for: 20 seconds at 12 a second
MOST_PICTURES = 600


def export_film(
    reference: str,
    format: str,
    replay: str | None,
    out: Path | None,
    *,
    agent: int | None = None,
    fps: int = 12,
    speed: float | None = None,
    width: int = 640,
    tell: Tell = silent,
) -> tuple[Path, float]:
    """The path of what was written, by default the newest replay of the run's best episode, into
    RUN/export; and how much faster than it was played it is shown."""
    moving = format in ("gif", "mp4")
    if moving:
        find_browser()
    if format == "mp4":
        find_ffmpeg()
    run = Run(split_reference(reference)[0])
    source = choose(run, replay)
    folder = out or run.path / "export"
    if folder.exists() and not folder.is_dir():
        raise LudusError(f"{folder} is a file: --out names a folder")
    own = run.config().game
    shows = Shows([own] if ":" in own and not is_foreign(own) else [])
    steps, agents, step_seconds = extent(source, shows)
    if agent is not None and not 0 <= agent < agents:
        raise LudusError(f"there is no agent {agent} to follow: use 0 to {agents - 1}")
    speed = pace(steps * step_seconds, fps, speed) if moving else 1.0
    tell(f"playing {source.stem} again", 0, None)
    film = FilmMaker(shows).make(run, source)
    pages = pages_of(shows, own)
    path, title = folder / f"{source.stem}.{format}", f"{run.path.name} · {source.stem}"
    if not moving:
        return write_page(film, pages, path, title), speed
    with tempfile.TemporaryDirectory() as aside:
        page = write_page(film, pages, Path(aside) / "film.html", title)
        pictures = photograph(page, fps, speed, width, agent, Path(aside), tell)
        made = {"gif": write_gif, "mp4": write_mp4}[format](
            pictures, Path(aside) / path.name, fps, tell
        )
        publish(made, path)
    return path, speed


def publish(made: Path, path: Path) -> None:
    """Complete or not at all. `made` may be on another disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".tmp")
    try:
        shutil.copyfile(made, partial)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise LudusError(f"{path} cannot be written: {error.strerror}") from None


def extent(source: Path, shows: Shows) -> tuple[int, int, float]:
    """Steps, agents and seconds of a step of a replay, as its file says, before it is played
    again."""
    if is_recording(source):
        recording = Recording(source)
        return recording.steps, recording.agents, recording.header["seconds_per_step"]
    replay = Replay(source)
    show = shows.find(str(replay.header.get("source", replay.header.get("game"))))
    return len(replay), replay.tensors["reward"].shape[-1], show.step_seconds


def pace(seconds: float, fps: int, speed: float | None) -> float:
    """How much faster than it was played an episode is shown: as asked for, or so that it takes few
    pictures."""
    if speed is None:
        return max(1.0, math.ceil(seconds * fps / ENOUGH_PICTURES))
    count = picture_count(seconds, fps, speed)
    if count > MOST_PICTURES:
        least = math.ceil(seconds * fps / (MOST_PICTURES - 1))
        raise LudusError(
            f"{seconds:.0f} seconds of play at --speed {speed:g} and --fps {fps} are {count:,} "
            f"pictures, at most {MOST_PICTURES} are "
            f"possible: use --speed {least} or more, or leave --speed out"
        )
    return speed


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
