"""Makes the Stable-Baselines3 logs in sb3/: python tests/doctor/logs/make_sb3.py [NAME …]. Needs
stable-baselines3; one thread."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor

HERE = Path(__file__).parent / "sb3"
BIG = {"n_steps": 512, "batch_size": 64, "n_epochs": 10}

# name → (algorithm, env, steps, settings); names of healthy runs start with "healthy".
RUNS: dict[str, tuple[Any, str, int, dict[str, Any]]] = {
    "healthy_ppo_cartpole_0": (PPO, "CartPole-v1", 40_000, {**BIG, "seed": 0}),
    "healthy_ppo_cartpole_1": (PPO, "CartPole-v1", 40_000, {**BIG, "seed": 1}),
    "healthy_a2c_cartpole": (A2C, "CartPole-v1", 40_000, {"seed": 0}),
    "healthy_dqn_cartpole": (
        DQN,
        "CartPole-v1",
        50_000,
        {
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1000,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
            "seed": 0,
        },
    ),
    "healthy_ppo_acrobot": (PPO, "Acrobot-v1", 50_000, {**BIG, "seed": 0}),
    "healthy_ppo_pendulum": (
        PPO,
        "Pendulum-v1",
        60_000,
        {
            "n_steps": 1024,
            "gamma": 0.9,
            "learning_rate": 1e-3,
            "use_sde": True,
            "sde_sample_freq": 4,
            "seed": 0,
        },
    ),
    "healthy_sac_pendulum": (
        SAC,
        "Pendulum-v1",
        6_000,
        {"learning_rate": 1e-3, "policy_kwargs": {"net_arch": [64, 64]}, "seed": 0},
    ),
    "sick_ppo_learning_rate_large": (
        PPO,
        "CartPole-v1",
        25_000,
        {**BIG, "learning_rate": 0.3, "seed": 0},
    ),
    "sick_ppo_learning_rate_tiny": (
        PPO,
        "CartPole-v1",
        25_000,
        {**BIG, "learning_rate": 1e-8, "seed": 0},
    ),
    "sick_ppo_entropy_large": (PPO, "CartPole-v1", 25_000, {**BIG, "ent_coef": 10.0, "seed": 0}),
    "sick_ppo_gamma_zero": (PPO, "CartPole-v1", 25_000, {**BIG, "gamma": 0.0, "seed": 0}),
    "sick_ppo_no_reward_seen": (PPO, "MountainCar-v0", 25_000, {**BIG, "seed": 0}),
    "sick_ppo_reward_flipped": (PPO, "flipped:CartPole-v1", 25_000, {**BIG, "seed": 0}),
    "sick_ppo_entropy_bonus_continuous": (
        PPO,
        "Pendulum-v1",
        40_000,
        {"n_steps": 1024, "ent_coef": 1.0, "seed": 0},
    ),
    "sick_a2c_learning_rate_large": (A2C, "CartPole-v1", 25_000, {"learning_rate": 0.1, "seed": 0}),
    "sick_dqn_diverges": (
        DQN,
        "CartPole-v1",
        30_000,
        {
            "learning_rate": 1e-2,
            "gamma": 1.0,
            "learning_starts": 500,
            "target_update_interval": 1,
            "max_grad_norm": 1e9,
            "exploration_fraction": 0.1,
            "seed": 0,
        },
    ),
    "sick_dqn_no_exploration": (
        DQN,
        "MountainCar-v0",
        25_000,
        {
            "learning_starts": 500,
            "exploration_fraction": 0.001,
            "exploration_final_eps": 0.0,
            "seed": 0,
        },
    ),
    "healthy_ppo_huge_observations": (PPO, "scaled:CartPole-v1", 25_000, {**BIG, "seed": 0}),
    "sick_dqn_reward_nan": (
        DQN,
        "nan:CartPole-v1",
        8_000,
        {"learning_starts": 500, "train_freq": 16, "seed": 0},
    ),
    "sick_ppo_noise_tiny": (
        PPO,
        "Pendulum-v1",
        16_000,
        {**BIG, "policy_kwargs": {"log_std_init": -6.0}, "seed": 0},
    ),
    # made after the checks were first written, and not looked at before
    "later_sick_clip_tiny": (PPO, "CartPole-v1", 20_000, {**BIG, "clip_range": 1e-5, "seed": 3}),
    "later_sick_rate": (PPO, "CartPole-v1", 20_000, {**BIG, "learning_rate": 0.03, "seed": 3}),
    "later_sick_blind": (PPO, "blind:CartPole-v1", 20_000, {**BIG, "seed": 3}),
    "later_sick_dqn_rate": (
        DQN,
        "CartPole-v1",
        12_000,
        {"learning_rate": 1.0, "learning_starts": 500, "seed": 3},
    ),
    "later_sick_value": (
        PPO,
        "CartPole-v1",
        20_000,
        {**BIG, "vf_coef": 0.0, "gae_lambda": 0.0, "seed": 3},
    ),
    "later_sick_dqn_always_random": (
        DQN,
        "CartPole-v1",
        12_000,
        {
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "learning_starts": 1000,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_final_eps": 1.0,
            "seed": 32,
        },
    ),
    "later_sick_blinded_late": (PPO, "late:CartPole-v1", 22_000, {**BIG, "seed": 30}),
    "healthy_ppo_cartpole_later": (
        PPO,
        "CartPole-v1",
        25_000,
        {**BIG, "seed": 7, "learning_rate": 1e-3},
    ),
    "healthy_a2c_acrobot_later": (A2C, "Acrobot-v1", 60_000, {"seed": 3}),
    "sick_ppo_one_batch_many_epochs": (
        PPO,
        "CartPole-v1",
        25_000,
        {"n_steps": 64, "batch_size": 64, "n_epochs": 200, "learning_rate": 3e-3, "seed": 0},
    ),
}


class Blind(gymnasium.ObservationWrapper):
    """Observations that say nothing."""

    def observation(self, observation: Any) -> Any:
        return 0 * observation


class BlindLater(gymnasium.ObservationWrapper):
    """Observations that say nothing from the 14,000th on."""

    seen = 0

    def observation(self, observation: Any) -> Any:
        self.seen += 1
        return observation if self.seen < 14_000 else 0 * observation


class Scaled(gymnasium.ObservationWrapper):
    """Observations a million times too large. PPO learns all the same."""

    def observation(self, observation: Any) -> Any:
        return observation * 1e6


def make(name: str) -> gymnasium.Env:
    kind, _, env_id = name.rpartition(":")
    env: gymnasium.Env = gymnasium.make(env_id)
    if kind == "flipped":
        env = gymnasium.wrappers.TransformReward(env, lambda reward: -reward)
    if kind == "nan":
        rewards = iter(range(10**9))
        env = gymnasium.wrappers.TransformReward(
            env, lambda reward: reward if next(rewards) < 4_000 else float("nan")
        )
    if kind == "blind":
        env = Blind(env)
    if kind == "late":
        env = BlindLater(env)
    if kind == "scaled":
        env = Scaled(env)
    return env


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:] or RUNS:
        algorithm, env, steps, settings = RUNS[name]
        folder = Path(tempfile.mkdtemp())
        start = time.time()
        monitored = Monitor(make(env), str(folder / name))
        model = algorithm("MlpPolicy", monitored, device="cpu", **settings)
        model.set_logger(configure(str(folder), ["csv"]))
        try:
            model.learn(steps)
        except ValueError as error:  # SB3 stops at NaN in the action distribution
            print(f"{name} stopped: {str(error)[:80]}")
        model.logger.close()
        shutil.copy(folder / "progress.csv", HERE / f"{name}.csv")
        print(f"{name}: {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
