"""Action masks that allow nothing: at an end, and while others move, that is as it should be."""

import math

import pytest

from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.rainbow import RainbowConfig
from ludus.api import train
from ludus.config import Config, EvalConfig, LogConfig, PolicyConfig, TrainConfig
from ludus.errors import LudusError
from ludus.external.foreign import ForeignBatch
from tests.envs.test_in import ODD


@pytest.mark.parametrize("kind", ["Board", "CutBoard", "DictBoard"])
@pytest.mark.parametrize("workers", [0, 1])
def test_nothing_is_allowed_at_the_end(kind, workers):
    """Three squares, three steps. Whoever looks at the final row finds everything allowed: nothing
    that is chosen there counts."""
    batch = ForeignBatch(ODD + kind, 1, workers=workers)
    for _ in range(3):  # episodes
        for square in range(3):
            batch["choices"][0, 0, 0] = square
            batch.step()
            assert batch["valid"][0, 0]
            expected = [True] * 3 if square == 2 else [i > square for i in range(3)]
            assert batch["action_mask"][0, 0].tolist() == expected
        assert batch["finished"][0] and batch["agent_truncated"][0, 0] == (kind == "CutBoard")
        batch.step()
        assert (
            batch["resetting"][0] and not batch["valid"][0, 0] and batch["action_mask"][0, 0].all()
        )


def test_who_is_not_to_move_is_idle():
    """Hand-worked: player 0 decides in steps 1 and 3, player 1 in 2 and 4; both earn in all
    four."""
    batch = ForeignBatch(ODD + "Turns", 1, workers=0)
    decided = []
    for square in range(4):
        batch["choices"][0, :, 0] = square
        batch.step()
        decided.append(batch["valid"][0].tolist())
        assert batch["was_alive"][0].all()
    assert decided == [[True, False], [False, True]] * 2
    assert batch["episode_return"][0].tolist() == [2.0, 2.0] and batch["agent_terminated"][0].all()
    batch.step()
    assert batch["resetting"][0] and batch["idle"][0].tolist() == [False, True]
    batch.set_controller("player", "random")
    for _ in range(20):
        batch.step()  # the env asserts


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "Stuck",
            "env 0 of .*Stuck, step 3: the action mask of agent allows nothing, and the episode "
            "goes on",
        ),
        ("Forgetful", "env 0 of .*Forgetful, step 1: no action mask came"),
    ],
)
def test_who_must_act_must_be_allowed_something(name, message):
    batch = ForeignBatch(ODD + name, 1, workers=0)
    batch.set_controller("agent", "random")
    with pytest.raises(LudusError, match=message):
        for _ in range(5):
            batch.step()


LEARNERS = {
    "ppo": PPOConfig(rollout=16, minibatches=1, epochs=2),
    "rainbow": RainbowConfig(
        replay=1000, warm_up=40, rollout=8, batch=16, n_step=2, epsilon_over=100
    ),
}


@pytest.mark.parametrize("algorithm", ["ppo", "rainbow"])
@pytest.mark.parametrize("kind", ["CutBoard", "Turns"])
def test_such_envs_are_trained(tmp_path, algorithm, kind):
    """Nothing that is logged is NaN: neither what policies make of such rows nor what is
    bootstrapped from them."""
    config = Config(
        game=ODD + kind,
        envs=2,
        algorithm=algorithm,
        policy=PolicyConfig(hidden=(8,)),
        learner=LEARNERS[algorithm],
        train=TrainConfig(total_agent_steps=250, threads=1),
        eval=EvalConfig(episodes=2),
        log=LogConfig(tensorboard=False),
    )
    lines = train(config, run=tmp_path / "run", quiet=True).metrics()
    values = {
        n: v for line in lines for n, v in line.items() if n.startswith(("learner/", "eval/"))
    }
    assert any("loss" in name for name in values)
    assert all(math.isfinite(v) for v in values.values())
