"""The examples run: a few steps each. (`name` is the game: tests of one game share a process, and
so its compiled rules.)"""

import importlib.util
import math
import threading

import pytest


@pytest.mark.parametrize("name", ["racing_lidar"])
def test_cleanrl_style(name):
    from examples.cleanrl_ppo import main

    curve = main(f"ludus/{name}-v0", total=2 * 64 * 16, num_envs=16)
    assert all(math.isfinite(value) for value in curve)


@pytest.mark.parametrize("name", ["pursuit"])
def test_rllib_style(name):
    from examples.rllib_style import main

    (result,) = main(1, episodes=2, max_steps=10)
    assert set(result) == {"chaser/episode_return_mean", "runner/episode_return_mean"}


@pytest.mark.parametrize("name", ["hide_and_seek"])
@pytest.mark.skipif(
    importlib.util.find_spec("stable_baselines3") is None,
    reason="Stable-Baselines3 is not installed",
)
def test_stable_baselines_seeks(name):
    from examples.sb3_seeker import main

    (rate,) = main(8 * 256, envs=8, rounds=1)
    assert 0 <= rate <= 1


@pytest.mark.skipif(
    importlib.util.find_spec("websockets") is None,
    reason="remote envs (pip install 'ludus[remote]') are not installed",
)
def test_remote_client():
    from examples.remote_client import ENVS, main
    from ludus.external.foreign import ForeignBatch
    from ludus.external.gate import Gate

    gate, ended = Gate.at("0"), []
    client = threading.Thread(target=lambda: ended.append(main(gate.url())))
    client.start()
    batch = ForeignBatch("remote:0", ENVS)
    for _ in range(30):
        batch.step()
        assert batch["valid"].any() or batch["resetting"].any()
    gate.close()
    client.join(10)
    assert ended == ["refused: the run is over"]
    assert main("ws://127.0.0.1:9/?token=x").startswith("the connection ended: ")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hide_and_seek"])
@pytest.mark.skipif(
    importlib.util.find_spec("stable_baselines3") is None,
    reason="Stable-Baselines3 is not installed",
)
def test_stable_baselines_learns_to_seek(name):
    """It starts with about one hider in thirty; the last third of the budget must bring several
    times as many."""
    from examples.sb3_seeker import main

    curve = main(400_000)
    assert sum(curve[-3:]) / 3 > max(0.1, 3 * curve[0])
