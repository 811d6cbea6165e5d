"""Whole learning on probe envs, each of which needs one thing more than the last, with answers that
are known."""

from __future__ import annotations

import math
from typing import Any

import torch

from ludus.algorithms.algorithm import Learner
from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO as Algorithm
from ludus.algorithms.rainbow import RainbowConfig
from ludus.algorithms.rainbow.rainbow import Rainbow
from ludus.batches import make_batch
from ludus.config import Config, PolicyConfig, TrainConfig, resolve
from ludus.examine.selftest.core import holds, part
from ludus.examine.selftest.scene import Session, nothing

PPO, RAINBOW = "ludus/algorithms/ppo/ppo.py", "ludus/algorithms/rainbow/rainbow.py"


def ppo(env: str, iterations: int, memory: str = "none", **settings: Any) -> Any:
    learn = {
        "gamma": 0.9,
        "rollout": 20,
        "epochs": 4,
        "minibatches": 4,
        "learning_rate": 3e-3,
        "entropy": 0.0,
        **settings,
    }
    config = resolve(
        Config(
            game=f"gym:ludus.examine.probes:{env}-v0",
            envs=16,
            policy=PolicyConfig(hidden=(32,), memory=memory, memory_size=16),
            learner=PPOConfig(**learn),
            train=TrainConfig(total_agent_steps=1),
        )
    )
    torch.manual_seed(0)
    algorithm = Algorithm(make_batch(config, 16, 0), config)
    for _ in range(iterations):
        algorithm.collect(nothing)
        algorithm.learn(0.0)
    return algorithm


def says(algorithm: Learner, observation: float) -> tuple[float, list[float]]:
    """Value and probabilities of the two actions at the start of an episode."""
    policy = algorithm.roles["agent"].policy
    output = policy(
        torch.tensor([[[observation]]]), policy.initial_state(1), torch.ones(1, 1, dtype=torch.bool)
    )
    probabilities = (
        output.distribution.choice_log_probs[0].exp()[0, 0].tolist()
        if output.distribution.choice_log_probs
        else []
    )
    return policy.real_value(output.value).item(), probabilities


def near(what: str, value: float, expected: float, within: float) -> None:
    holds(
        f"{what} is {value:.3f} instead of {expected:.3f} ± {within:g}",
        math.isfinite(value) and abs(value - expected) <= within,
    )


@part("value learning (PPO)", PPO)
def ppo_values_a_constant_reward(s: Session) -> None:
    """A reward of 1 for ever is worth 1 / (1 − gamma) = 10, though episodes are cut after 20
    steps."""
    near("the value", says(ppo("ProbeConstant", 60), 0.0)[0], 10.0, 0.6)


@part("credit over time (PPO)", PPO)
def ppo_values_a_delayed_reward(s: Session) -> None:
    """A reward of 1 at the second of two steps is worth 1 there and gamma = 0.9 before."""
    algorithm = ppo("ProbeDelay", 60)
    near("the value of the second step", says(algorithm, 1.0)[0], 1.0, 0.08)
    near("the value of the first step", says(algorithm, 0.0)[0], 0.9, 0.08)


@part("policy learning (PPO)", PPO)
def ppo_matches_actions_to_observations(s: Session) -> None:
    """The action that pays depends on the observation: it is taken nearly always, in both cases."""
    algorithm = ppo("ProbeMatch", 40)
    near("the probability of the right action for 1", says(algorithm, 1.0)[1][1], 1.0, 0.07)
    near("the probability of the right action for -1", says(algorithm, -1.0)[1][0], 1.0, 0.07)


@part("continuous actions (PPO)", "ludus/networks/heads.py")
def ppo_finds_a_continuous_action(s: Session) -> None:
    """The best of a continuous action between −1 and 1 is 0.5: the mean of the policy, squashed,
    comes close."""
    algorithm = ppo("ProbeContinuous", 60, learning_rate=1e-2)
    policy = algorithm.roles["agent"].policy
    output = policy(
        torch.zeros(1, 1, 1), policy.initial_state(1), torch.ones(1, 1, dtype=torch.bool)
    )
    near("the action", output.distribution.greedy().continuous.item(), 0.5, 0.15)


@part("memory (PPO)", "ludus/networks/memory.py")
def ppo_remembers(s: Session) -> None:
    """An LSTM recalls what was shown five steps before; returns close to 1."""
    algorithm = ppo("ProbeMemory", 60, memory="lstm", bptt=12, rollout=36, gamma=0.99)
    algorithm.batch.read_statistics()
    for _ in range(3):
        algorithm.collect(nothing)
    near("the mean return", algorithm.batch.read_statistics()["agent"]["return"], 1.0, 0.15)


def rainbow(env: str, iterations: int, **settings: Any) -> Any:
    values = dict(
        gamma=0.9,
        replay=20_000,
        warm_up=200,
        batch=64,
        rollout=20,
        n_step=1,
        epsilon_over=3_000,
        epsilon_to=0.1,
        learning_rate=3e-3,
        target_every=20,
        reward_scale=1.0,
        average=0.9,
        stream=32,
    )
    config = resolve(
        Config(
            game=f"gym:ludus.examine.probes:{env}-v0",
            envs=16,
            algorithm="rainbow",
            train=TrainConfig(total_agent_steps=1),
            policy=PolicyConfig(hidden=(32,), activation="relu"),
            learner=RainbowConfig(**{**values, **settings}),
        )
    )
    torch.manual_seed(0)
    algorithm = Rainbow(make_batch(config, 16, 0), config)
    for _ in range(iterations):
        algorithm.collect(nothing)
        algorithm.learn(0.0)
    policy = algorithm.roles["agent"].policy.eval()
    return lambda observation: policy.q_values(torch.tensor([[[observation]]]))[0, 0].tolist()


@part("value learning (Rainbow)", RAINBOW)
def rainbow_values_a_constant_reward(s: Session) -> None:
    """A reward of 1 for ever is worth 1 / (1 − gamma) = 10, though episodes are cut after 20 steps;
    with five-step targets too."""
    q = rainbow("ProbeConstant", 50, n_step=5, learning_rate=0.1, target_every=5, iqn=False)
    near("the value", max(q(0.0)), 10.0, 0.6)


@part("credit over time (Rainbow)", RAINBOW)
def rainbow_values_a_delayed_reward(s: Session) -> None:
    """A reward of 1 at the second of two steps is worth 1 there and gamma = 0.9 before."""
    q = rainbow("ProbeDelay", 40)
    near("the value of the second step", max(q(1.0)), 1.0, 0.12)
    near("the value of the first step", max(q(0.0)), 0.9, 0.12)


@part("action values (Rainbow)", RAINBOW)
def rainbow_matches_actions_to_observations(s: Session) -> None:
    """The action that pays 1 instead of −1 depends on the observation: values tell them apart, with
    every component on."""
    q = rainbow("ProbeMatch", 40, prioritised=True, noisy=True)
    near("the value of the right action", q(1.0)[1], 1.0, 0.3)
    for observation, right in ((1.0, 1), (-1.0, 0)):
        wrong = q(observation)[1 - right]
        holds(
            f"the wrong action for {observation:g} is worth {wrong:.2f}",
            wrong < q(observation)[right] - 0.5,
        )


CHECKS = (
    ppo_values_a_constant_reward,
    ppo_values_a_delayed_reward,
    ppo_matches_actions_to_observations,
    ppo_finds_a_continuous_action,
    ppo_remembers,
    rainbow_values_a_constant_reward,
    rainbow_values_a_delayed_reward,
    rainbow_matches_actions_to_observations,
)
