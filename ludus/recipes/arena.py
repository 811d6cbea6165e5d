"""The arena: agents learn the chain from ore to heart. Paying for what is taken, and not for what
is held, learns faster."""

from ludus.algorithms.ppo import PPOConfig
from ludus.config import Config, EvalConfig, PolicyConfig, TrainConfig
from ludus.games.arena.spec import SMALL

# what is on the way to a heart pays less than a tenth of what hearts can pay: nothing to prefer to
# them
PAY = {"reward.ore": 0.05, "reward.batteries": 0.15}


def arena_small() -> Config:
    """One room with 6 agents: minutes on a CPU."""
    return Config(
        game="arena:gains",
        game_values={**SMALL, **PAY},
        envs=128,
        policy=PolicyConfig(
            hidden=(128, 128), activation="relu", separate_value=False, normalise_observation=False
        ),
        learner=PPOConfig(
            gamma=0.99,
            gae_lambda=0.95,
            learning_rate="2e-3 -> 2e-4",
            entropy=0.01,
            rollout=64,
            epochs=1,
            minibatches=16,
        ),
        train=TrainConfig(total_seconds=900.0),
        eval=EvalConfig(episodes=16, every_seconds=120.0, greedy=False, against=("self",)),
    )


def arena() -> Config:
    """The whole map with 24 agents, for a GPU."""
    config = arena_small()
    config.game_values = dict(PAY)
    config.envs = 1024
    config.learner.minibatches = 32
    config.train = TrainConfig(total_seconds=420.0)
    return config
