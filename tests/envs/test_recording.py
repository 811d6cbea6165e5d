"""Episodes of foreign envs as evaluations record them: numbers that are known, pictures where an
env draws itself."""

import io

import numpy as np
import pytest
from PIL import Image

from ludus.external import pictures
from ludus.external.foreign import ForeignBatch
from ludus.external.pictures import SIDE
from ludus.external.recorder import ForeignRecorder
from ludus.external.recording import MOST_PICTURES, Pictures, Recording, is_recording
from tests.envs.odd import TENTH

ODD = "env:tests.envs.odd:"
HEADER = {"source": "x", "step": 7, "against": "self", "role": "agent", "label": "best"}


def play(batch, players=()):
    """One episode of every env that is watched."""
    batch.arrays["finished"][...] = True
    batch.step()
    recorder = ForeignRecorder(batch, 16, players)
    while recorder.open:
        for player in players:
            player.act()
        recorder.before()
        batch.step()
        recorder.after()
    return recorder


def saved(recorder, path, env=0):
    recorder.save(path, env, HEADER)
    assert is_recording(path)
    return Recording(path)


class Doubter:
    """Chooses 1 and expects what remains; never the same twice where it is asked for chances."""

    def __init__(self, batch, agents, width):
        self.batch, self.agents, self.width = batch, agents, width
        self.envs, self.num_envs, self.count = (
            slice(0, batch.num_envs),
            batch.num_envs,
            agents.stop - agents.start,
        )

    def act(self):
        self.batch["choices"][:, self.agents] = 1

    def thought(self):
        left = TENTH - self.batch["episode_length"][:, self.agents].astype(np.float32).reshape(-1)
        return {
            "value": left,
            "chances": np.full((len(left), self.width), 1 / self.width, np.float32),
        }


def test_what_happened_is_in_the_file(tmp_path):
    """Hand-worked: Counter shows 0 to 10, pays 1 a step; nothing is decided after the last step."""
    batch = ForeignBatch(ODD + "counter", 2, workers=0, filmed=1)
    recorder = play(batch, [Doubter(batch, slice(0, 1), 2)])
    found = saved(recorder, tmp_path / "a.safetensors")
    assert found.steps == 10 and found.agents == 1 and found.header["players"] == ["policy"]
    assert found.tensors["observation"][:, 0, 0].tolist() == list(range(11))
    assert found.tensors["reward"].sum() == 10 and (found.tensors["choices"] == 1).all()
    assert found.tensors["alive"][:, 0].tolist() == [True] * 10 + [False]
    assert found.tensors["value"][:10, 0].tolist() == list(range(10, 0, -1)) and np.isnan(
        found.tensors["value"][10, 0]
    )
    assert "pictures" not in found.tensors and "no render mode" in found.header["note"]


def test_roles_that_differ_are_kept_apart(tmp_path):
    """The cutter's chances are one mean for each of two numbers, the others' are padded with
    NaN."""
    batch = ForeignBatch(ODD + "Workshop", 1, workers=0)
    batch.set_controller("painter", "random")
    widths = {"cutter": 2, "painter": 4, "apprentice_0": 4, "apprentice_1": 2}
    recorder = play(
        batch,
        [
            Doubter(batch, s.agents, widths[s.role])
            for s in batch.layout.seats
            if s.role != "painter"
        ],
    )
    found = saved(recorder, tmp_path / "a.safetensors")
    assert [(r["name"], r["count"]) for r in found.header["roles"]] == [
        (s.role, s.count) for s in batch.layout.seats
    ]
    painter = next(seats for role, seats in found.seats() if role["name"] == "painter")
    assert (
        found.header["players"][painter.start] == "bot:random"
        and np.isnan(found.tensors["value"][:, painter]).all()
    )
    cutter = next(seats for role, seats in found.seats() if role["name"] == "cutter")
    assert found.tensors["chances"][0, cutter.start, :2].tolist() == [0.5, 0.5]
    assert np.isnan(found.tensors["chances"][0, cutter.start, 2:]).all()


@pytest.mark.parametrize("workers", [0, 1])
def test_pictures_show_the_step_they_are_of(tmp_path, workers):
    """Painter draws one column of 10 pixels more in every step, 80 × 640 pixels in all, which is
    halved."""
    batch = ForeignBatch(ODD + "Painter", 5, workers=workers, filmed=3)
    recorder = play(batch)
    # only envs that are drawn are watched: a replay without pictures would be the poorer one
    assert recorder.count == 3
    found = saved(recorder, tmp_path / "a.safetensors", 2)
    assert (
        found.tensors["picture_step"].tolist() == list(range(11))
        and found.header["seconds_per_step"] == 0.25
    )
    for step, end in enumerate(found.tensors["picture_end"]):
        start = found.tensors["picture_end"][step - 1] if step else 0
        image = np.asarray(Image.open(io.BytesIO(found.tensors["pictures"][start:end].tobytes())))
        assert image.shape == (40, SIDE, 3)
        assert abs(int((image[20, :, 0] > 128).sum()) - 5 * step) <= 1
    assert recorder.drawing_seconds > 0


def test_filming_changes_nothing(tmp_path):
    """The same seeds pay the same, with and without; and an env that cannot draw after all is
    played without pictures."""
    paid = []
    for filmed in (0, 2):
        batch = ForeignBatch(ODD + "NoisyPainter", 2, seed=3, workers=0, filmed=filmed)
        recorder = play(batch)
        paid.append([recorder.takes[env].returns.tolist() for env in range(2)])
    assert paid[0] == paid[1]
    batch = ForeignBatch(ODD + "CannotDraw", 1, workers=0, filmed=1)
    found = saved(play(batch), tmp_path / "a.safetensors")
    assert (
        found.steps == 10
        and "render() failed with RuntimeError: the paint is dry" in found.header["note"]
    )
    assert not ForeignBatch(ODD + "counter", 1, workers=0, filmed=1).filmed
    found = saved(play(ForeignBatch(ODD + "Painter", 1, workers=0)), tmp_path / "b.safetensors")
    assert "drawing had taken enough" in found.header["note"]


def test_long_episodes_keep_pictures_of_every_part():
    """1,000 frames: at most MOST_PICTURES, evenly spread over all of it."""
    kept = Pictures()
    for frame in range(1000):
        if kept.due(frame):
            kept.add(frame, b"x" * 100)
    steps = list(kept.taken)
    assert kept.every == 8 and steps == list(range(0, 1000, 8)) and len(steps) <= MOST_PICTURES


def test_the_best_the_worst_and_the_middle():
    batch = ForeignBatch(ODD + "Noisy", 5, seed=1, workers=0)
    recorder = play(batch)
    order = np.argsort([float(take.returns[0]) for take in recorder.takes]).tolist()
    assert recorder.chosen(0) == {"best": order[4], "worst": order[0], "middle": order[2]}
    recorder.takes = recorder.takes[:1]
    recorder.count = 1
    assert recorder.chosen(0) == {"best": 0}


def test_a_picture_must_be_one():
    with pytest.raises(ValueError, match=r"gave float64 \(3, 3, 3\) instead of a picture"):
        pictures.shrink(np.zeros((3, 3, 3)))
    assert pictures.shrink(np.zeros((SIDE * 2 + 1, 10, 4), np.uint8)).shape == (
        -(-(SIDE * 2 + 1) // 3),
        4,
        3,
    )
