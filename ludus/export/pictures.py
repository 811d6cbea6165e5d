"""A replay as a GIF or MP4: the exported page, opened in a headless Chromium and photographed frame by frame.

What is in the file is what the browser shows. Pictures come as PNG; pillow makes the GIF, ffmpeg the MP4.
"""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ludus.errors import LudusError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
MOST_FRAMES = 600


def find_browser() -> str:
    """The path of a Chromium; CHROMIUM names another one."""
    found = next((path for name in (os.environ.get("CHROMIUM", ""), *BROWSERS) if name and (path := shutil.which(name))), None)
    if found is None:
        raise LudusError("no Chromium is installed, which draws the pictures: apt-get install chromium, or use --format html")
    if importlib.util.find_spec("playwright") is None:
        raise LudusError("driving the browser needs playwright: pip install 'ludus[pictures]', or use --format html")
    return found


def find_ffmpeg() -> str:
    found = shutil.which("ffmpeg")
    if found is None and importlib.util.find_spec("imageio_ffmpeg") is not None:
        import imageio_ffmpeg

        found = imageio_ffmpeg.get_ffmpeg_exe()
    if found is None:
        raise LudusError("an MP4 needs ffmpeg: apt-get install ffmpeg or pip install 'ludus[pictures]', or use --format gif")
    return found


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium. Without a sandbox where there is none to be had, as for root in a container."""
    from playwright.sync_api import sync_playwright

    path = find_browser()
    flags = [*FLAGS, *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])]
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=path, args=flags)
        try:
            yield chromium
        finally:
            chromium.close()


def photograph(page_path: Path, fps: int, speed: float, width: int, agent: int | None) -> Iterator[bytes]:
    """PNG after PNG of the scene, at this many pictures per second of the film."""
    height = width * 9 // 16 // 2 * 2
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": width + 320, "height": height + 50})
        page.goto(f"{page_path.resolve().as_uri()}#still")
        page.wait_for_function("window.ludusPlayer || document.querySelector('.empty')")
        if page.query_selector(".empty"):
            raise LudusError(f"the page could not be drawn: {page.inner_text('.empty')}")
        page.evaluate("style => document.head.append(Object.assign(document.createElement('style'), {textContent: style}))",
                      f".frame{{width:{width}px;height:{height}px;flex:none}}")  # fmt: skip
        last, seconds = page.evaluate("[ludusPlayer.film.last, ludusPlayer.film.header.step_seconds]")
        if agent is not None:
            page.evaluate("agent => { ludusPlayer.pick(agent); ludusPlayer.setMode('follow'); }", agent)
        stride = speed / (fps * seconds)
        frames = int(last / stride) + 1
        if frames > MOST_FRAMES:
            raise LudusError(f"{frames} pictures are more than {MOST_FRAMES}: raise --speed or lower --fps")
        scene = page.locator(".frame")
        for i in range(frames):
            page.evaluate("([t, s]) => { ludusPlayer.seek(t); ludusPlayer.draw(s); }", [i * stride, 1 / fps])
            yield scene.screenshot(type="png", animations="disabled", scale="css")


def write_gif(pictures: Iterator[bytes], path: Path, fps: int) -> None:
    from PIL import Image

    frames = [Image.open(io.BytesIO(png)).convert("P", palette=Image.Palette.ADAPTIVE, colors=128) for png in pictures]
    partial = path.with_name(path.name + ".tmp")
    frames[0].save(partial, "GIF", save_all=True, append_images=frames[1:], duration=round(1000 / fps), loop=0, optimize=True)
    partial.replace(path)


def write_mp4(pictures: Iterator[bytes], path: Path, fps: int) -> None:
    ffmpeg = find_ffmpeg()
    partial = path.with_name(path.name + ".tmp.mp4")
    with tempfile.TemporaryDirectory() as folder:
        for i, png in enumerate(pictures):
            (Path(folder) / f"{i:05d}.png").write_bytes(png)
        command = [ffmpeg, "-y", "-loglevel", "error", "-framerate", str(fps), "-i", f"{folder}/%05d.png",
                   "-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(partial)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        partial.unlink(missing_ok=True)
        raise LudusError(f"ffmpeg could not write {path}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else '?'}")
    partial.replace(path)
