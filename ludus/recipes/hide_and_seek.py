"""Hide-and-seek: both sides learn from the first step, from the bots and from each other's past.
Potentials show each side its way:
the seeker to hiders it does not see, the hiders out of its sight.
"""

from ludus.algorithms.ppo import PPOConfig
from ludus.config import Config, EvalConfig, LeagueConfig, PolicyConfig, TrainConfig


def hide_and_seek() -> Config:
    return Config(
        game="hide_and_seek",
        game_values={
            # a potential: it tells the way to hiders nobody sees. Without it a seeker that sees
            # nobody turns on the spot
            "reward.approach": 100.0,
            # a potential too. Without it hiders run as far as they can and stand at the edge of the
            # world with their back to the seeker. Less than the 50 that being caught takes: it is
            # paid back at the end, and being caught must not pay who was seen
            "reward.cover": 48.0,
            # less than a tenth of the goal; without it seekers that see nobody walk in small
            # circles
            "reward.searches": 0.5,
            "terrains": 1024,  # with few, seekers learn the places rather than how to search
        },
        envs=512,
        policy=PolicyConfig(
            hidden=(128, 128),
            activation="relu",  # on a CPU tanh would take a fifth of the time
            # the game's own scaling is better than statistics of entries that are almost always 0
            normalise_observation=False,
            # a full turn is 112 degrees a step: wider noise only spins
            initial_log_std_of={"turn": -1.5, "look": -1.5},
            initial_key_logit=-1.0,
            initial_mean_of={"forward": 1.0},  # who walks finds
            # 128 of the 161 entries: heard from the first step, they drown the direction of the
            # nearest opponent
            quiet_inputs=("ray",),
        ),
        learner=PPOConfig(
            # a horizon of 200 steps: the goal is felt from the start of a 240-step episode
            gamma=0.995,
            learning_rate="1e-3 -> 2e-5",
            entropy=0.0,
            rollout=32,  # with 16, and twice the envs, seekers of three seeds caught 3 points fewer
            epochs=2,
            minibatches=8,
            reward_scale=0.02,
            roles={
                # its rewards are dense; without the entropy its turns are almost certain after half
                # of the budget
                "seeker": {"minibatches": 16, "gae_lambda": 0.9, "entropy": "0.008 -> 0"},
                # its fate is decided within seconds: what a step behind a tree is worth shows at
                # once. With the seeker's rate to the end its noise is gone before it has found out
                # about trees
                "hider": {"gamma": 0.98, "learning_rate": "0:1e-3, 0.4:2e-4, 1:5e-5"},
            },
        ),
        # three envs for the seeker to one for the hiders, of whom there are two: it needs more
        # steps to be as good as its bot. One slot: on a CPU each past opponent is a network of its
        # own for a handful of envs
        league=LeagueConfig(mix="pool 4, bot:hider 72, bot:seeker 24", slots=1),
        train=TrainConfig(total_seconds=600.0),
        eval=EvalConfig(episodes=100, every_seconds=60.0, greedy=False),
    )
