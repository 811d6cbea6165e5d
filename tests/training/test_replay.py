"""Replays play again exactly, from any keyframe, and damaged ones are refused."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import ludus
from ludus import LudusError
from ludus.play.replay import KEYFRAME_EVERY, Replay
from tests.training.test_runs import config


@pytest.fixture(scope="module")
def replays(tmp_path_factory):
    c = config(game_values={"max_steps": 150})
    c.eval.against = ("self", "bot:flee")
    run = ludus.train(c, run=tmp_path_factory.mktemp("replays") / "run", quiet=True)
    return sorted(run.path.glob("replays/*.safetensors"))


def test_an_evaluation_stores_a_few(replays):
    names = [p.name.split("-", 1)[1] for p in replays]
    assert {
        "self-chaser-best.safetensors",
        "bot_flee-chaser-worst.safetensors",
        "bot_flee-chaser-random.safetensors",
    } <= set(names)
    assert len(replays) <= 30


def test_a_replay_plays_again_exactly(replays):
    """Bots included: what they chose was recorded."""
    for path in (replays[0], replays[-1]):
        replay = Replay(path)
        rows = [(batch["reward"][0].copy(), bool(batch["finished"][0])) for batch in replay.play()]
        rewards = np.stack([reward for reward, _ in rows])
        assert np.array_equal(rewards, replay.tensors["reward"])
        assert [finished for _, finished in rows] == [False] * (len(rows) - 1) + [True]
        if len(replay) > KEYFRAME_EVERY:
            later = np.stack([b["reward"][0].copy() for b in replay.play(KEYFRAME_EVERY)])
            assert np.array_equal(later, rewards[KEYFRAME_EVERY:])


def test_damaged_replays_are_refused(replays, tmp_path):
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(replays[0].read_bytes()[:200])
    with pytest.raises(LudusError, match="is no replay"):
        Replay(path)
    tensors = load_file(replays[0])
    save_file(tensors, path)
    with pytest.raises(LudusError, match="no header"):
        Replay(path)
    save_file(tensors, path, {"replay": json.dumps({"version": 99})})
    with pytest.raises(LudusError, match="version 99, this Ludus reads version 1"):
        Replay(path)
    header = {"replay": json.dumps(Replay(replays[0]).header)}
    save_file({**tensors, "reward": tensors["reward"][:-1]}, path, header)
    with pytest.raises(LudusError, match="damaged"):
        Replay(path)
