"""Replays as pictures: the same scene, frame by frame, in a file others can open."""

import io

import pytest
from PIL import Image

from ludus import LudusError
from ludus.commands.export import main
from ludus.export import film, pictures
from ludus.training.run import Run


@pytest.fixture
def needs_browser():
    try:
        pictures.find_browser()
        pictures.find_ffmpeg()
    except LudusError as missing:
        pytest.skip(f"pictures skipped: {missing}")


def test_a_gif_moves(root, tmp_path, needs_browser):
    """40 steps of 0.1 s, four times as fast, 4 pictures a second: one every 1 s of the game, five or fewer in all."""
    arguments = [str(root / "learned"), "--format", "gif", "--out", str(tmp_path), "--speed", "4", "--fps", "4", "--width", "160"]
    assert main(arguments) == 0
    (path,) = tmp_path.iterdir()
    image = Image.open(path)
    assert path.suffix == ".gif" and image.size == (160, 90) and 2 <= image.n_frames <= 5 and image.info["duration"] == 250
    first = image.convert("RGB").tobytes()
    image.seek(1)
    assert image.convert("RGB").tobytes() != first


def test_an_mp4_is_one(tmp_path, needs_browser):
    frames = []
    for shade in (0, 128, 255):
        buffer = io.BytesIO()
        Image.new("RGB", (64, 36), (shade, 0, 0)).save(buffer, "PNG")
        frames.append(buffer.getvalue())
    pictures.write_mp4(iter(frames), tmp_path / "x.mp4", 10)
    assert (tmp_path / "x.mp4").read_bytes()[4:8] == b"ftyp"
    assert [p.name for p in tmp_path.iterdir()] == ["x.mp4"]


@pytest.mark.parametrize(("option", "words"), [(["--fps", "0"], "--fps 0 is outside 1 to 60"), (["--width", "9999"], "outside 160 to 1920"),
                                               (["--replay", "x"], "has no replay 'x'"), (["--agent", "9"], "no agent 9 to follow")])  # fmt: skip
def test_what_cannot_be_exported_is_refused(root, tmp_path, option, words):
    with pytest.raises(LudusError, match=words):
        main([str(root / "learned"), "--format", "html", "--out", str(tmp_path / "out"), *option])
    assert not (tmp_path / "out").exists()


def test_without_a_browser_it_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CHROMIUM", raising=False)
    with pytest.raises(LudusError, match="apt-get install chromium, or use --format html"):
        pictures.find_browser()


def test_the_newest_best_replay_is_taken(root):
    run = Run(root / "learned")
    names = sorted(p.stem for p in (run.path / "replays").glob("*-best.safetensors"))
    assert film.choose(run, None).stem == names[-1]
