"""Pursuit: both roles learn together, in about two minutes on one core."""

from ludus.algorithms.ppo import PPOConfig
from ludus.config import Config, PolicyConfig, TrainConfig


def pursuit() -> Config:
    return Config(
        game="pursuit",
        # a fast chaser first: fleeing is learned sooner than chasing, and who never catches learns
        # nothing
        game_values={"chaser_speed": "0:0.5, 0.6:0.25"},
        envs=128,
        policy=PolicyConfig(hidden=(64, 64)),
        learner=PPOConfig(
            gamma=0.99,
            rollout=32,
            epochs=4,
            minibatches=8,
            learning_rate="1e-3 -> 0",
            entropy=0.003,
        ),
        train=TrainConfig(total_agent_steps=3_000_000),
    )
