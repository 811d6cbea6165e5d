"""Brawl: first the motionless opponent, then one that fights, then the agent's own past beside
everyone met before."""

from ludus.algorithms.ppo import PPOConfig
from ludus.config import (
    Config,
    CurriculumConfig,
    EvalConfig,
    LeagueConfig,
    PolicyConfig,
    Stage,
    TrainConfig,
)
from ludus.networks.strategy_config import StrategyConfig


def brawl() -> Config:
    return Config(
        game="brawl",
        # a potential: it tells the way across the pit and cannot be farmed. Without it one side
        # learns to stay at home
        game_values={"reward.closing": 3.0},
        envs=512,
        policy=PolicyConfig(
            hidden=(128,),
            memory="lstm",
            memory_size=128,
            separate_value=False,
            normalise_observation=False,
            initial_key_logit=-1.0,  # keys pressed half of the time make an agent that jumps off
        ),
        learner=PPOConfig(
            gamma=0.99,  # a half-life of 7 seconds
            gae_lambda=0.95,
            learning_rate="1e-3 -> 2e-4",
            entropy="0.005 -> 0.001",
            rollout=64,
            bptt=16,
            epochs=2,
            minibatches=8,
            reward_scale=0.01,
        ),
        league=LeagueConfig(slots=8),
        curriculum=CurriculumConfig(
            stages=(
                Stage(mix="self 20, bot:constant 80", opponent="bot:constant", win_rate=0.9),
                Stage(
                    mix="self 20, bot:constant 20, bot:based 50, bot:random 10",
                    opponent="bot:based",
                    win_rate=0.7,
                ),
                Stage(mix="self 35, pool 35, bot:constant 5, bot:based 15, bot:random 10"),
            )
        ),
        train=TrainConfig(total_seconds=900.0),
        eval=EvalConfig(
            episodes=64,
            every_seconds=180.0,
            greedy=False,
            against=("bot:constant", "bot:based", "bot:random"),
        ),
    )


STYLES = (
    "based",
    "aggressive",
    "defensive",
    "kiter",
    "parry",
    "pounce",
    "switcher",
    "random",
    "constant",
)


def brawl_strategy() -> Config:
    """Recognises how its opponent plays: a small transformer over the opponent's last 65 steps, and
    opponents of many styles."""
    config = brawl()
    config.envs = 128  # a CPU gets through few steps with it: better many small updates
    config.policy.network = "strategy"
    # without next_keys the vector says little about how the opponent plays
    config.policy.network_settings = StrategyConfig(size="small", vector=16, next_keys=1.0)
    first, second, _ = config.curriculum.stages
    everyone = ", ".join(f"bot:{style} 9" for style in STYLES)
    config.curriculum.stages = (first, second, Stage(mix=f"self 10, pool 9, {everyone}"))
    return config


def brawl_strategy_full() -> Config:
    """The same with the full transformer over all 65 steps, for a GPU."""
    config = brawl_strategy()
    config.device, config.envs = "cuda", 512
    config.learner.minibatches = 32  # it gets through few steps: better many small updates
    # wide layers move far in a step: at 1e-3 a fighter it begins with is forgotten
    config.learner.learning_rate = "3e-4 -> 1e-4"
    config.policy.network_settings = StrategyConfig(size="full", vector=16, next_keys=1.0)
    config.policy.memory_size = 512
    return config
