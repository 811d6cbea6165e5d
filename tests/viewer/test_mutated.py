"""Ten thousand damaged replays: each gives a film or one sentence, never anything else."""

import json
import random
import struct

import numpy as np
import pytest

from ludus import LudusError
from ludus.films import resimulate as rehearse
from ludus.films.resimulate import Script
from ludus.films.shows import Shows
from ludus.play.replay import Replay
from ludus.sim import Batch
from tests.viewer.shelf import SMALL, record

COUNT = 10_000
STRANGE = [
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    10**40,
    0.5,
    -1e300,
    float("nan"),
    float("inf"),
    "",
    "x",
    "../../etc/passwd",
    "os:path",
    "pursuit:nope",
    "brawl",
    "<script>alert(1)</script>",
    [],
    [1, 2],
    {},
    {"a": 1},
    "9" * 500,
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A short episode, small enough to damage often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SMALL, "pursuit", dict(max_steps=10, runners=1))
        path = tmp_path_factory.mktemp("whole") / "replay.safetensors"
        record("pursuit", path)
    return path.read_bytes()


@pytest.fixture(scope="module", autouse=True)
def one_batch_per_settings():
    """Envs are made once per settings: making them is not what is tested here, and an episode
    starts the same in any."""
    made = {}

    def make(show, overrides, preset=None, seed=0):
        key = (show.game.name, preset, json.dumps(overrides, sort_keys=True))
        if key not in made:
            made[key] = Batch(show.game, 1, overrides=overrides, preset=preset, seed=seed)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearse, "make_batch", make)
        yield


def split(data):
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def join(header, body):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def flip_bytes(rng, data):
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def flip_body(rng, data):
    """Only in the numbers: the file stays readable."""
    size = 8 + struct.unpack("<Q", data[:8])[0]
    out = bytearray(data)
    for _ in range(rng.choice((1, 4, 32))):
        out[rng.randrange(size, len(out))] = rng.randrange(256)
    return bytes(out)


def cut(rng, data):
    return data[: rng.randrange(len(data))] + (rng.randbytes(20) if rng.random() < 0.3 else b"")


def change_header(rng, data):
    """A value of our own header becomes something strange, or goes."""
    header, body = split(data)
    ours = json.loads(header["__metadata__"]["replay"])
    place = ours
    for _ in range(3):
        key = rng.choice(list(place))
        if isinstance(place[key], dict) and place[key] and rng.random() < 0.8:
            place = place[key]
            continue
        if rng.random() < 0.2:
            del place[key]
        else:
            place[key] = rng.choice(STRANGE)
        break
    header["__metadata__"]["replay"] = json.dumps(ours)
    return join(header, body)


def change_tensors(rng, data):
    """A tensor gets another shape, type, place or name, or goes."""
    header, body = split(data)
    name = rng.choice([n for n in header if n != "__metadata__"])
    entry = header.pop(name)
    what = rng.randrange(5)
    if what == 0:
        entry["shape"] = [rng.choice((0, 1, 2, 10, 2**40, 10)) for _ in range(rng.randrange(5))]
    elif what == 1:
        entry["dtype"] = rng.choice(("F32", "F64", "I64", "I32", "I8", "BOOL", "U8", "F16"))
    elif what == 2:
        start = rng.randrange(len(body))
        entry["data_offsets"] = [start, start + entry["data_offsets"][1] - entry["data_offsets"][0]]
    elif what == 3:
        name = rng.choice(("reward", "keyframe/seed", "keyframe/controller", "x"))
    if what != 4:
        header[name] = entry
    return join(header, body)


def test_damaged_replays_give_a_film_or_a_sentence(whole, tmp_path):
    rng, shows, path = random.Random(0), Shows(), tmp_path / "damaged.safetensors"
    ways = [flip_bytes, flip_body, cut, change_header, change_tensors]
    films = refused = 0
    for i in range(COUNT):
        path.write_bytes(ways[i % len(ways)](rng, whole))
        try:
            film = Script(Replay(path), shows).film()
        except LudusError as error:
            refused += 1
            assert len(str(error)) < 600 and "\n" not in str(error).strip(), str(error)
        else:
            films += 1
            assert 2 <= len(film) <= 11
            assert all(
                np.isfinite(v).all() for v in film.frames[-1].values() if v.dtype.kind == "f"
            )
    assert films > 1000 and refused > 3000


def test_the_whole_one_is_fine(whole, tmp_path):
    path = tmp_path / "whole.safetensors"
    path.write_bytes(whole)
    assert Script(Replay(path), Shows()).film().header["differs"] is None


def test_a_newer_version_says_so(whole, tmp_path):
    header, body = split(whole)
    ours = json.loads(header["__metadata__"]["replay"])
    header["__metadata__"]["replay"] = json.dumps({**ours, "version": 2})
    path = tmp_path / "newer.safetensors"
    path.write_bytes(join(header, body))
    with pytest.raises(LudusError, match="version 2, this Ludus reads version 1"):
        Replay(path)


def test_sizes_that_would_fill_the_memory_are_refused(whole, tmp_path):
    record("mechs", tmp_path / "mechs.safetensors")
    header, body = split((tmp_path / "mechs.safetensors").read_bytes())
    ours = json.loads(header["__metadata__"]["replay"])
    ours["sizes"] |= {"maps": 4096, "world": 128}
    header["__metadata__"]["replay"] = json.dumps(ours)
    (tmp_path / "mechs.safetensors").write_bytes(join(header, body))
    with pytest.raises(LudusError, match="more than the 512 MB"):
        Script(Replay(tmp_path / "mechs.safetensors"), Shows())
