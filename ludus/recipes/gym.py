"""A starting point for any env of another library, tuned on the classic ones of Gymnasium."""

from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.rainbow import RainbowConfig
from ludus.config import CheckpointConfig, Config, EvalConfig, PolicyConfig, TrainConfig


def gym(game: str) -> Config:
    """`game` is gym:ID, pettingzoo:MODULE, env:MODULE:FUNCTION or remote:PORT."""
    elsewhere = game.startswith("remote:")
    return Config(
        game=game,
        envs=8 if elsewhere else 16,  # as many as the demo page of remote envs offers
        policy=PolicyConfig(hidden=(64, 64)),
        learner=PPOConfig(
            gamma=0.99, rollout=64, epochs=10, minibatches=4, learning_rate="1e-3 -> 0", entropy=0.0
        ),
        other_learners={
            # steps are dear here, so each is replayed more often than where envs are cheap
            "rainbow": RainbowConfig(n_step=3, replay_ratio=4.0, learning_rate="1e-3 -> 1e-4")
        },
        train=TrainConfig(total_agent_steps=100_000),
        eval=EvalConfig(episodes=8 if elsewhere else 20),
        checkpoint=CheckpointConfig(every_seconds=30.0),
    )
