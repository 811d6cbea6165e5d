"""Pursuit: both roles learn together, in about a minute on two cores."""

from ludus.config import Config, PolicyConfig, PPOConfig, TrainConfig


def pursuit() -> Config:
    return Config(
        game="pursuit",
        envs=128,
        policy=PolicyConfig(hidden=(64, 64)),
        learn=PPOConfig(
            gamma=0.99, rollout=32, epochs=4, minibatches=8, learning_rate="1e-3 -> 0", entropy=0.003, reward_scale=0.1
        ),
        train=TrainConfig(total_agent_steps=3_000_000),
    )
