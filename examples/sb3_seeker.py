"""Stable-Baselines3's PPO learns to seek, through the Gymnasium adapter: nothing of Ludus' own
trainer is used.

    pip install stable-baselines3
    python examples/sb3_seeker.py --steps 1000000

Hiders move at random. PPO there has one Box of actions, so the adapter gives it one (box_action).
The curve is the share of hiders that the seeker catches.
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import ludus.envs  # noqa: F401 (makes the games known to Gymnasium)

CATCH_RATE = "goal_catch_rate"


def make_env() -> gymnasium.Env:
    return gymnasium.make(
        "ludus/hide_and_seek-v0", role="seeker", opponent="bot:random", box_action=True
    )


def main(steps: int, envs: int = 16, rounds: int = 10) -> list[float]:
    """Trains, and returns the catch rate of the episodes finished in each of `rounds` equal parts
    of the budget."""
    torch.set_num_threads(1)
    vector = make_vec_env(make_env, envs, monitor_kwargs={"info_keywords": (CATCH_RATE,)})
    # rewards of 50 and 100 are large for the value network: scaled by their running deviation
    model = PPO(
        "MlpPolicy",
        VecNormalize(vector, norm_obs=False, gamma=0.995),
        device="cpu",
        seed=0,
        n_steps=128,
        batch_size=512,
        n_epochs=4,
        learning_rate=1e-3,
        gamma=0.995,
        ent_coef=0.0,
        # a full turn is 112 degrees a step: wider noise only spins
        policy_kwargs={"log_std_init": -1.0, "net_arch": [64, 64]},
    )
    curve, begin = [], time.perf_counter()
    for _ in range(rounds):
        model.ep_info_buffer = None  # only the episodes of this part
        model.learn(steps // rounds, reset_num_timesteps=False)
        episodes = model.ep_info_buffer or []
        curve.append(
            float(np.mean([episode[CATCH_RATE] for episode in episodes]))
            if episodes
            else float("nan")
        )
        print(
            f"{model.num_timesteps:>9,} steps   {time.perf_counter() - begin:>5.0f} s   catch rate "
            f"{curve[-1]:.2f}",
            flush=True,
        )
    return curve


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1_000_000)
    main(parser.parse_args().steps)
