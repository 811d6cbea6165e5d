"""A resume in envs that cannot be saved: their episodes are cut where they stood, and everything
else goes on."""

import numpy as np
import pytest
import torch

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.rainbow import RainbowConfig
from ludus.config import Config, EvalConfig, LogConfig, PolicyConfig, TrainConfig
from ludus.runs import checkpoint
from ludus.runs.run import Run
from ludus.training.loop import Trainer
from tests.envs.test_in import ODD

LENGTH = 6  # steps of a rollout: an episode of `counter` has ten


def trained(folder, algorithm="ppo", **changes):
    config = Config(
        game=ODD + "counter",
        envs=3,
        policy=PolicyConfig(hidden=(8,)),
        learner=PPOConfig(rollout=LENGTH, minibatches=1, epochs=1),
        other_learners={
            "rainbow": RainbowConfig(
                replay=300, warm_up=10, rollout=LENGTH, batch=8, n_step=2, epsilon_over=100
            )
        },
        train=TrainConfig(total_agent_steps=40, threads=1),
        eval=EvalConfig(episodes=1, greedy=False),
        log=LogConfig(tensorboard=False, replay_every=0),
    )
    config.choose_algorithm(algorithm)
    for name, value in changes.items():
        setattr(config, name, value)
    return ludus.train(config, run=folder, quiet=True)


def restored(run, step=None):
    trainer = Trainer(Run(run.path), run.config())
    step = checkpoint.steps(run)[-1] if step is None else step
    trainer.restore(checkpoint.Checkpoint(trainer.run, step))
    return trainer


@pytest.fixture(scope="module")
def rainbow(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("rainbow") / "run", algorithm="rainbow")


def test_the_replay_goes_on_and_nothing_runs_across(rainbow):
    """`counter` shows its step, so every transition can be read: what follows step 3 is step 4,
    never the new episode's 0."""
    trainer = restored(rainbow)
    role = trainer.algorithm.roles["agent"]
    replay, rows, last, pay = (
        role.replay,
        torch.arange(3),
        int(role.replay.head) - 1,
        role.config.reward_scale,
    )
    assert last >= LENGTH  # it was kept
    before = replay.observation[last, :, 0].clone()
    assert (before > 0).all() and (before < 9).all()  # in the middle of an episode
    trainer.iterate()
    gamma = torch.tensor(0.5)
    cut = replay.transitions(torch.full((3,), last), rows, gamma)
    # one step, then its value
    assert cut.earned.tolist() == pytest.approx([pay] * 3) and cut.usable.all()
    assert cut.discount.tolist() == [0.5] * 3
    assert torch.equal(cut.following[0, :, 0], before + 1)
    two = replay.transitions(torch.full((3,), last - 1), rows, gamma)
    assert two.earned.tolist() == pytest.approx([1.5 * pay] * 3) and torch.equal(
        two.following[0, :, 0], before + 1
    )
    # the row that shows the end, and the first of the new episode
    final, first = last + 1, last + 2
    assert (
        torch.equal(replay.observation[final, :, 0], before + 1) and not replay.valid[final].any()
    )
    assert (replay.observation[first, :, 0] == 0).all() and replay.valid[first].all()


def test_a_memory_does_not_reach_into_the_next_episode(tmp_path):
    run = trained(tmp_path / "run", policy=PolicyConfig(hidden=(8,), memory="lstm", memory_size=4))
    trainer = restored(run)
    role = trainer.algorithm.roles["agent"]
    # as it was when the episodes were cut
    assert role.state.abs().sum() > 0 and not role.start.any()
    trainer.iterate()
    assert not role.rollout.valid[0].any() and role.rollout.valid[1].all()
    assert role.rollout.starts[:3].tolist() == [[False] * 3, [True] * 3, [False] * 3]
    assert (role.rollout.observation[1, :, 0] == 0).all()


def test_every_resume_has_new_seeds(tmp_path):
    """Seeds depend on the run's seed and on how far it is: the same for the same checkpoint, others
    for another one."""
    run = trained(
        tmp_path / "run",
        game=ODD + "Noisy",
        checkpoint=ludus.config.CheckpointConfig(every_agent_steps=10),
    )
    first, *_, newest = checkpoint.steps(run)

    def begins(step):
        trainer = restored(run, step)
        trainer.batch.step()
        assert trainer.batch["resetting"].all()
        return trainer.batch.numpy("observation").ravel().tolist()

    fresh = Trainer(Run(run.path), run.config()).batch.numpy("observation").ravel().tolist()
    shown = [fresh, begins(first), begins(newest)]
    assert len(set(np.ravel(shown))) == 9
    assert begins(newest) == shown[2]
