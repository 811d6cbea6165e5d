"""Mechs: one recurrent policy shared by all of a team, against itself, its past and the bots."""

from ludus.algorithms.ppo import PPOConfig
from ludus.config import Config, EvalConfig, LeagueConfig, PolicyConfig, Stage, TrainConfig


def mechs_2v2() -> Config:
    """Two against two on a small map: minutes on a CPU."""
    return Config(
        game="mechs:small",
        game_values={
            # a potential: it leads to the zone. With the game's own 0.25 a third of the budget goes
            # by before anybody stays there
            "reward.approach": 5.0,
            "maps": 256,  # with the game's 8, mechs learn the maps by heart and lose on others
        },
        envs=256,
        policy=PolicyConfig(
            hidden=(128,),
            memory="lstm",
            memory_size=128,
            separate_value=False,
            normalise_observation=False,
            initial_log_std=-0.5,
            initial_log_std_of={"turn": -1.0},
            initial_mean_of={"forward": 0.5},
            initial_key_logit=-1.0,
        ),
        learner=PPOConfig(
            gamma=0.99,
            gae_lambda=0.95,
            learning_rate="1e-3 -> 1e-4",
            entropy=0.001,
            rollout=32,
            bptt=16,
            epochs=2,
            minibatches=8,
            reward_scale=0.1,
        ),
        league=LeagueConfig(mix="self 35, pool 10, bot:objective 35, bot:hunter 10, bot:random 10"),
        train=TrainConfig(total_seconds=1200.0),
        eval=EvalConfig(
            episodes=64,
            every_seconds=240.0,
            greedy=False,
            against=("bot:objective", "bot:hunter", "bot:random"),
        ),
    )


def mechs() -> Config:
    """Ten against ten on the whole map, for a GPU."""
    config = mechs_2v2()
    config.game = "mechs"
    config.game_values["maps"] = (
        1024  # with 256, three runs won 92% of matches on their own maps and 88% on others
    )
    config.envs = 1024
    config.policy.activation = "relu"
    config.learner.minibatches = 32
    config.learner.learning_rate = "1e-3 -> 3e-5"
    config.league = LeagueConfig()
    config.curriculum.stages = (
        # ten beginners never beat the bot: they learn from each other first
        Stage(
            mix="self 50, pool 10, bot:objective 25, bot:hunter 5, bot:random 10",
            opponent="bot:objective",
            win_rate=0.5,
        ),
        Stage(mix="self 20, pool 5, bot:objective 70, bot:hunter 5"),
    )
    config.train = TrainConfig(total_seconds=420.0)
    return config
