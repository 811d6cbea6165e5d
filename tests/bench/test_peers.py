"""Peers do the work they are said to do."""

import pytest

from ludus.bench import peers
from ludus.config import resolve
from ludus.errors import LudusError
from ludus.recipes import load_recipe


def test_qr_dqn_replays_as_many_samples_per_step_as_rainbow(monkeypatch):
    pytest.importorskip("sb3_contrib")
    made = {}

    def one_round(model, env, step, seconds):
        model.learn(step)
        made.update(model=model, steps=step, seen=env.valid)
        return 1.0

    monkeypatch.setattr(peers, "_rate", one_round)
    config = load_recipe("racing_lidar")
    config.envs, config.rainbow.batch, config.rainbow.replay_ratio, config.rainbow.replay = 16, 64, 2.0, 2048
    peers.sb3_qrdqn(resolve(config), 0.0, defaults=False)
    assert made["model"]._n_updates * 64 == 2 * made["steps"] == 2 * 64 * 16  # two rounds of 32 steps in 16 envs
    assert 0.9 * made["steps"] < made["seen"] <= made["steps"]  # all but reset rows
    assert made["model"].policy.quantile_net.quantile_net[-1].out_features == 11 * 8


def test_sb3_is_given_no_pictures():
    with pytest.raises(LudusError, match=r"racing is seen as pictures.*racing_lidar"):
        peers.measure("sb3", resolve(load_recipe("racing")), 0.1)
