"""Probe envs: each isolates one part of the learner, with a known answer. Two known tasks,
small."""

import contextlib

import numpy as np
import pytest
import torch

from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO
from ludus.batches import make_batch
from ludus.config import Config, PolicyConfig, TrainConfig, resolve

pytestmark = pytest.mark.usefixtures("envs_in_this_process")


def learn(env, iterations, memory="none", envs=16, gamma=0.9, seed=0, **settings):
    torch.set_num_threads(1)
    config = resolve(
        Config(
            game=f"gym:ludus.examine.probes:{env}-v0",
            envs=envs,
            seed=seed,
            policy=PolicyConfig(hidden=(32,), memory=memory, memory_size=16),
            learner=PPOConfig(
                **{
                    "gamma": gamma,
                    "rollout": 20,
                    "epochs": 4,
                    "minibatches": 4,
                    "learning_rate": 3e-3,
                    "entropy": 0.0,
                    **settings,
                }
            ),
            train=TrainConfig(total_agent_steps=1),
        )
    )
    torch.manual_seed(seed)
    ppo = PPO(make_batch(config, envs, seed), config)
    for _ in range(iterations):
        ppo.collect(lambda phase: contextlib.nullcontext())
        metrics = ppo.learn(0.0)
    assert all(np.isfinite(v) for v in metrics.values())
    return ppo


def value(ppo, observation):
    policy = ppo.roles["agent"].policy
    output = policy(
        torch.tensor([[[observation]]]), policy.initial_state(1), torch.ones(1, 1, dtype=torch.bool)
    )
    return policy.real_value(output.value).item(), output.distribution.choice_log_probs[0].exp()[
        0, 0
    ].tolist()


def test_constant_reward_is_worth_one_over_one_minus_gamma():
    """Episodes are cut after 20 steps: without bootstrapping the value would be about 6."""
    assert value(learn("ProbeConstant", 60), 0.0)[0] == pytest.approx(10.0, rel=0.05)


def test_gamma_zero_is_the_next_reward():
    assert value(learn("ProbeConstant", 30, gamma=0.0), 0.0)[0] == pytest.approx(1.0, rel=0.02)


def test_the_value_sees_the_observation():
    ppo = learn("ProbeObservation", 40)
    assert value(ppo, 1.0)[0] == pytest.approx(1.0, abs=0.1) and value(ppo, -1.0)[
        0
    ] == pytest.approx(-1.0, abs=0.1)


def test_credit_over_two_steps():
    ppo = learn("ProbeDelay", 60)
    assert value(ppo, 1.0)[0] == pytest.approx(1.0, abs=0.05) and value(ppo, 0.0)[
        0
    ] == pytest.approx(0.9, abs=0.05)


def test_the_better_action_is_taken():
    assert value(learn("ProbeAction", 30), 0.0)[1][1] > 0.95


def test_the_action_depends_on_the_observation():
    ppo = learn("ProbeMatch", 40)
    assert value(ppo, 1.0)[1][1] > 0.95 and value(ppo, -1.0)[1][0] > 0.95


def last_return(ppo):
    ppo.batch.read_statistics()
    for _ in range(5):
        ppo.collect(lambda phase: contextlib.nullcontext())
    return ppo.batch.read_statistics()["agent"]["return"]


def test_memory_recalls_what_it_saw_and_nothing_else_does():
    settings = dict(rollout=36, gamma=0.99)
    assert last_return(learn("ProbeMemory", 60, memory="lstm", bptt=12, **settings)) > 0.9
    assert abs(last_return(learn("ProbeMemory", 20, **settings))) < 0.4


def test_cartpole_cut_at_50_steps_learns_to_balance_for_longer():
    """Truncation bootstraps: trained on 50-step episodes, it balances far beyond."""
    from ludus.play.evaluate import measure

    ppo = learn("CartPoleShort", 120, gamma=0.99, rollout=32, learning_rate=1e-3, epochs=8)
    policies = {"agent": ppo.roles["agent"].policy}
    config = Config(game="gym:CartPole-v1")
    result = measure(lambda n: make_batch(config, n, 100), policies, "self", 8, 100, greedy=True)
    assert result["return"].mean() >= 200
