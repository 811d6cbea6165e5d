"""A replay as a GIF or MP4: the exported page, opened in a headless Chromium and photographed frame
by frame.

What is in the file is what the browser shows. Pictures come as PNG; pillow makes the GIF, ffmpeg
the MP4.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ludus.errors import LudusError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
COLOURS = 255  # of a GIF's palette; one more says "as in the picture before"
BITS = 6  # of each colour channel, when colours are counted

Tell = Callable[[str, int, int | None], None]
"""Hears what is being done, how much of it is done, and of how much (None: unknown)."""


def silent(what: str, done: int, total: int | None) -> None:
    """For callers who do not want to hear it."""


def find_browser() -> str:
    """The path of a Chromium; CHROMIUM names another one."""
    found = next(
        (
            path
            for name in (os.environ.get("CHROMIUM", ""), *BROWSERS)
            if name and (path := shutil.which(name))
        ),
        None,
    )
    if found is None:
        raise LudusError(
            "no Chromium is installed, which draws the pictures: apt-get install chromium, or use "
            "--format html"
        )
    if importlib.util.find_spec("playwright") is None:
        raise LudusError(
            "driving the browser needs playwright: pip install 'ludus[pictures]', or use --format "
            "html"
        )
    return found


def find_ffmpeg() -> str:
    found = shutil.which("ffmpeg")
    if found is None and importlib.util.find_spec("imageio_ffmpeg") is not None:
        import imageio_ffmpeg

        found = imageio_ffmpeg.get_ffmpeg_exe()
    if found is None:
        raise LudusError(
            "an MP4 needs ffmpeg: apt-get install ffmpeg or pip install 'ludus[pictures]', or use "
            "--format gif"
        )
    return found


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium. Without a sandbox where there is none to be had, as for root in a
    container."""
    from playwright.sync_api import sync_playwright

    path = find_browser()
    flags = [*FLAGS, *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])]
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=path, args=flags)
        try:
            yield chromium
        finally:
            chromium.close()


def picture_count(seconds: float, fps: int, speed: float) -> int:
    """One at the start, and those that fit in the rest."""
    return int(seconds * fps / speed + 1e-6) + 1


def photograph(
    page_path: Path,
    fps: int,
    speed: float,
    width: int,
    agent: int | None,
    folder: Path,
    tell: Tell = silent,
) -> list[Path]:
    """PNG files of the scene, at this many pictures per second of the film."""
    height = width * 9 // 16 // 2 * 2
    made = []
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": width + 320, "height": height + 50})
        page.goto(f"{page_path.resolve().as_uri()}#still")
        page.wait_for_function("window.ludusPlayer || document.querySelector('.empty')")
        if page.query_selector(".empty"):
            raise LudusError(f"the page could not be drawn: {page.inner_text('.empty')}")
        page.evaluate(
            "style => document.head.append(Object.assign(document.createElement('style'), "
            "{textContent: style}))",
            f".frame{{width:{width}px;height:{height}px;flex:none}}",
        )
        last, seconds = page.evaluate(
            "[ludusPlayer.film.last, ludusPlayer.film.header.step_seconds]"
        )
        if agent is not None:
            page.evaluate(
                "agent => { ludusPlayer.pick(agent); ludusPlayer.setMode('follow'); }", agent
            )
        count = picture_count(last * seconds, fps, speed)
        scene = page.locator(".frame")
        for i in range(count):
            tell("taking pictures", i, count)
            page.evaluate(
                "([t, s]) => { ludusPlayer.seek(t); ludusPlayer.draw(s); }",
                [i * speed / (fps * seconds), 1 / fps],
            )
            made.append(folder / f"{i:05d}.png")
            scene.screenshot(path=made[-1], type="png", animations="disabled", scale="css")
    return made


def write_gif(pictures: Sequence[Path], path: Path, fps: int, tell: Tell = silent) -> Path:
    """One palette for the whole clip, no dithering: the same thing has the same colour in all
    pictures."""
    from PIL import Image

    palette = shared_palette(pictures)
    frames = []
    for i, picture in enumerate(pictures):
        tell("writing the GIF", i, len(pictures))
        frames.append(
            Image.open(picture).convert("RGB").quantize(palette=palette, dither=Image.Dither.NONE)
        )
    frames[0].save(
        path,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=round(1000 / fps),
        loop=0,
        optimize=False,
    )
    return path


def shared_palette(pictures: Sequence[Path]) -> Any:
    """The colours that suit all pictures best. One counts by the square root of how often it is
    there: a small fighter in front of a wide sky keeps its colour."""
    from PIL import Image

    counts = np.zeros(1 << 3 * BITS)
    for picture in pictures:
        red, green, blue = np.moveaxis(
            np.asarray(Image.open(picture).convert("RGB")).astype(np.int32) >> 8 - BITS, -1, 0
        )
        counts += np.bincount(
            ((red << 2 * BITS) + (green << BITS) + blue).ravel(), minlength=len(counts)
        )
    there = np.flatnonzero(counts)
    times = np.ceil(np.sqrt(counts[there])).astype(int)
    middle = (1 << 8 - BITS) // 2
    colours = np.stack(
        [
            ((there >> shift & (1 << BITS) - 1) << 8 - BITS) + middle
            for shift in (2 * BITS, BITS, 0)
        ],
        -1,
    )
    sample = np.repeat(colours, times, 0).astype(np.uint8)
    return Image.fromarray(sample[None]).quantize(
        COLOURS, method=Image.Quantize.MEDIANCUT, kmeans=2
    )


def write_mp4(pictures: Sequence[Path], path: Path, fps: int, tell: Tell = silent) -> Path:
    """From pictures that lie in one folder and are numbered from 0."""
    tell("writing the MP4", 0, None)
    command = [
        find_ffmpeg(),
        "-y",
        "-loglevel",
        "error",
        "-framerate",
        str(fps),
        "-i",
        str(pictures[0].with_name("%05d.png")),
        "-c:v",
        "libx264",
        "-pix_fmt",
        "yuv420p",
        "-movflags",
        "+faststart",
        str(path),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise LudusError(
            f"ffmpeg could not write {path}: "
            f"{done.stderr.strip().splitlines()[-1] if done.stderr.strip() else '?'}"
        )
    return path
