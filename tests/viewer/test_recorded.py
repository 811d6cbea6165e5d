"""Recordings of foreign envs as the viewer serves them; damaged ones; and a run that makes them."""

import random

import numpy as np
import pytest

import ludus
from ludus import LudusError
from ludus.commands.export import main as export
from ludus.commands.play import main as play
from ludus.commands.view import main as view
from ludus.external.recording import KEY, Recording
from ludus.films.pack import unpack
from ludus.films.recorded import RecordedFilm
from ludus.play.replay import Replay
from ludus.recipes.gym import gym
from tests.viewer.shelf import serving
from tests.viewer.test_mutated import cut, flip_body, flip_bytes, join, split
from tests.viewer.test_server import get

BEST = "000000000007-self-agent-best.safetensors"
STRANGE = [None, True, -1, 2**63, 0.5, float("nan"), "", "<script>", [], [1], {}, "9" * 5000]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """CartPole, trained for a moment. The last evaluation is filmed, however long drawing took
    before."""
    config = gym("gym:CartPole-v1")
    config.envs, config.learner.rollout, config.learner.epochs = 4, 32, 1
    config.train.total_agent_steps, config.train.threads, config.eval.episodes = 128, 1, 4
    return ludus.train(config, run=tmp_path_factory.mktemp("runs") / "cart", quiet=True)


def test_a_run_records_its_evaluation(run):
    """Three of its four episodes are drawn; what the policy thinks is there in every step, and
    rewards add up to the length."""
    files = sorted((run.path / "replays").iterdir())[-3:]
    assert [p.stem.rsplit("-", 1)[1] for p in files] == ["best", "middle", "worst"]
    found = [Recording(path) for path in files]
    assert found[0].steps >= found[1].steps >= found[2].steps
    for one in found:
        assert (
            one.tensors["reward"].sum() == one.steps
            and len(one.tensors["picture_step"]) == one.steps + 1
        )
        assert np.isfinite(one.tensors["value"][:-1]).all()
        assert one.tensors["chances"][:-1].sum(-1) == pytest.approx(1.0, abs=1e-5)
        assert one.header["source"] == "gym:CartPole-v1" and one.header["seconds_per_step"] == 0.02


def test_a_film_of_it(root):
    """Frame t has the action and the reward that led to it, and the return so far."""
    with serving(root) as (_, port):
        status, body, _ = get(port, f"/api/run/foreign/replay/{BEST}")
        whole = get(port, "/api/run/foreign")[1]
    header, arrays = unpack(body)
    assert (
        status == 200
        and header["view"] == "recorded"
        and header["players"] == ["bot:random"]
        and not header["playable"]
    )
    recorded = Recording(root / "foreign" / "replays" / BEST)
    frames = recorded.steps + 1
    assert header["frames"] == frames and arrays["step/episode_return"][:, 0].tolist() == list(
        range(frames)
    )
    assert (
        arrays["step/choices"][1:, 0, 0].tolist() == recorded.tensors["choices"][:, 0, 0].tolist()
    )
    assert arrays["static/picture_end"][-1] == len(arrays["static/pictures"])
    assert b'"foreign": true' in whole


def test_it_is_exported_as_one_page(run, tmp_path):
    assert export([str(run.path), "--format", "html", "--out", str(tmp_path)]) == 0
    (page,) = tmp_path.iterdir()
    assert page.stem.endswith("best") and 'id="film"' in page.read_text()


def change_header(rng, data):
    import json

    header, body = split(data)
    ours = json.loads(header["__metadata__"][KEY])
    place = (
        ours if rng.random() < 0.6 else rng.choice([ours["roles"][0], ours["roles"][0]["actions"]])
    )
    place[rng.choice(list(place))] = rng.choice(STRANGE)
    header["__metadata__"][KEY] = json.dumps(ours)
    return join(header, body)


def change_tensors(rng, data):
    header, body = split(data)
    name = rng.choice([n for n in header if n != "__metadata__"])
    entry = header.pop(name)
    what = rng.randrange(4)
    if what == 0:
        entry["shape"] = [rng.choice((0, 1, 2, 10)) for _ in range(rng.randrange(4))]
    elif what == 1:
        entry["dtype"] = rng.choice(("F32", "I64", "I32", "I8", "BOOL", "U8"))
    elif what == 2:
        name = rng.choice(("reward", "pictures", "x"))
    if what != 3:
        header[name] = entry
    return join(header, body)


def test_damaged_recordings_give_a_film_or_a_sentence(root, tmp_path):
    whole = (root / "foreign" / "replays" / BEST.replace("best", "worst")).read_bytes()
    rng, path = random.Random(0), tmp_path / "damaged.safetensors"
    films = refused = 0
    for i in range(1500):
        path.write_bytes(
            [flip_bytes, flip_body, cut, change_header, change_tensors][i % 5](rng, whole)
        )
        try:
            message = RecordedFilm(Recording(path)).message()
        except LudusError as error:
            refused += 1
            assert len(str(error)) < 600 and "\n" not in str(error).strip()
        else:
            films += 1
            header, arrays = unpack(message)
            (options,) = header["actions"]["choices"].values()
            assert arrays["step/choices"].min() >= 0 and arrays["step/choices"].max() < len(options)
    assert films > 100 and refused > 500


def test_what_the_viewer_does_not_run_is_refused(run):
    with pytest.raises(
        LudusError,
        match=r"gym:CartPole-v1 is an env of another library.*`ludus train gym:CartPole-v1`",
    ):
        view(["gym:CartPole-v1", "--headless"])
    with pytest.raises(
        LudusError,
        match=r"cart plays gym:CartPole-v1.*`ludus view .*cart` shows what evaluations recorded",
    ):
        play([str(run.path), "--headless"])


def test_what_is_no_recording_says_so(root, tmp_path):
    with pytest.raises(LudusError, match="is no replay: it has no header"):
        Replay(root / "foreign" / "replays" / BEST)
    newer = (
        (root / "foreign" / "replays" / BEST)
        .read_bytes()
        .replace(b'\\"version\\": 1,', b'\\"version\\": 2,')
    )
    (tmp_path / "newer.safetensors").write_bytes(newer)
    with pytest.raises(LudusError, match="version 2, this Ludus reads version 1: update Ludus"):
        Recording(tmp_path / "newer.safetensors")
