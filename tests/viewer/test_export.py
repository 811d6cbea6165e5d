"""Replays as pictures: the same scene, frame by frame, in a file others can open."""

import numpy as np
import pytest
from PIL import Image

from ludus import LudusError
from ludus.commands.export import main
from ludus.export import film, pictures
from ludus.runs.run import Run


@pytest.fixture
def needs_browser():
    try:
        pictures.find_browser()
        pictures.find_ffmpeg()
    except LudusError as missing:
        pytest.skip(f"pictures skipped: {missing}")


def test_a_gif_moves(root, tmp_path, needs_browser):
    """40 steps of 0.1 s, four times as fast, 4 pictures a second: one every 1 s of the game, five
    or fewer in all."""
    arguments = [
        str(root / "learned"),
        "--format",
        "gif",
        "--out",
        str(tmp_path),
        "--speed",
        "4",
        "--fps",
        "4",
        "--width",
        "160",
    ]
    assert main(arguments) == 0
    (path,) = tmp_path.iterdir()
    image = Image.open(path)
    assert (
        path.suffix == ".gif"
        and image.size == (160, 90)
        and 2 <= image.n_frames <= 5
        and image.info["duration"] == 250
    )
    first = image.convert("RGB").tobytes()
    image.seek(1)
    assert image.convert("RGB").tobytes() != first


def test_a_long_episode_is_shown_faster_and_says_so(
    root, tmp_path, needs_browser, monkeypatch, capsys
):
    """60 steps of 0.1 s at 12 a second are 72 pictures; where 9 are enough it is played 8 times as
    fast. Small things keep their colours too."""
    kept = []
    write = film.write_gif
    monkeypatch.setattr(film, "ENOUGH_PICTURES", 9)
    monkeypatch.setattr(
        film,
        "write_gif",
        lambda found, *rest: (
            kept.extend(np.array(Image.open(p).convert("RGB")) for p in found),
            write(found, *rest),
        )[1],
    )
    name = "000000000007-bots-brawl-best"
    assert (
        main(
            [
                str(root / "shelf"),
                "--format",
                "gif",
                "--replay",
                name,
                "--out",
                str(tmp_path),
                "--width",
                "320",
            ]
        )
        == 0
    )
    said = capsys.readouterr()
    assert (
        "Shown 8 times as fast" in said.err
        and "taking pictures" in said.err
        and said.out.split() == [str(tmp_path / f"{name}.gif")]
    )
    image = Image.open(tmp_path / f"{name}.gif")
    assert image.n_frames == len(kept) == 10
    for i, picture in enumerate(kept):
        image.seek(i)
        apart = np.abs(np.array(image.convert("RGB")).astype(int) - picture).max(-1)
        assert (apart > 40).sum() < 20, i  # of 57,600 pixels


def test_what_fails_leaves_nothing_behind(root, tmp_path, monkeypatch):
    monkeypatch.setattr(film, "find_browser", lambda: None)
    arguments = [
        str(root / "learned"),
        "--format",
        "gif",
        "--out",
        str(tmp_path / "out"),
        "--width",
        "160",
    ]

    def photograph(*_):
        raise LudusError("the browser is gone")

    monkeypatch.setattr(film, "photograph", photograph)
    with pytest.raises(LudusError, match="the browser is gone"):
        main(arguments)
    monkeypatch.setattr(film.FilmMaker, "make", lambda *_: pytest.fail("too late to refuse"))
    with pytest.raises(
        LudusError,
        match=r"4 seconds of play at --speed 0\.1 and --fps 60 are 2,401 pictures, .* use --speed "
        r"1 or more",
    ):
        main([*arguments, "--speed", "0.1", "--fps", "60"])
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").write_text("")
    with pytest.raises(LudusError, match="is a file: --out names a folder"):
        main(arguments)


def test_an_mp4_is_one(tmp_path, needs_browser):
    found = [tmp_path / f"{i:05d}.png" for i in range(3)]
    for i, path in enumerate(found):
        Image.new("RGB", (64, 36), (100 * i, 0, 0)).save(path)
    pictures.write_mp4(found, tmp_path / "x.mp4", 10)
    assert (tmp_path / "x.mp4").read_bytes()[4:8] == b"ftyp"


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--fps", "0"], "--fps 0 is outside 1 to 60"),
        (["--width", "9999"], "outside 160 to 1920"),
        (["--replay", "x"], "has no replay 'x'"),
        (["--agent", "9"], "no agent 9 to follow"),
    ],
)
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
