"""A decision whose reward comes after many idle steps, in rollouts that are much shorter."""

import contextlib

import pytest
import torch

from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO
from ludus.algorithms.rainbow import RainbowConfig
from ludus.algorithms.rainbow.rainbow import Rainbow
from ludus.config import Config, PolicyConfig, resolve
from ludus.sim import Batch, Choice, Game, Goal, Param, Role, Term, i32, phase

GAMMA, WAITING = 0.97, 30


@phase(lanes="agents", writes=("chosen", "idle", "term_prize", "term_small", "goal_waited"))
def decide(
    env, agent, step, chosen, idle, action_pick, max_steps, term_prize, term_small, goal_waited
):
    if step[env] == 1:
        chosen[env, agent] = action_pick[env, agent]
        if chosen[env, agent] == 1:
            term_small[env, agent] = 1.0
    idle[env, agent] = True
    if step[env] >= max_steps[env] and chosen[env, agent] == 0:
        term_prize[env, agent] = 1.0
        goal_waited[env, agent] = 1.0


@phase(writes=("terminated", "truncated"))
def judge(env, step, max_steps, cut, chosen, terminated, truncated):
    over = step[env] >= max_steps[env] or chosen[env, 0] == 1
    terminated[env] = over and cut[env] == 0
    truncated[env] = over and cut[env] == 1


@phase(lanes="agents", writes="observation")
def observe(env, agent, step, observation):
    observation[env, agent, 0] = 1.0 if step[env] == 0 else 0.0
    observation[env, agent, 1] = 0.0 if step[env] == 0 else 1.0


@phase(lanes="agents", writes="chosen")
def start(env, agent, chosen):
    chosen[env, agent] = -1


WAIT = Game(
    name="wait",
    summary="one decision: a small reward now, or a large one after many idle steps",
    roles=[Role("agent")],
    state=dict(chosen=i32("agents")),
    params=dict(
        max_steps=Param(60, 2, 1000, "steps until the prize"),
        cut=Param(0, 0, 1, "1: the end is a truncation"),
    ),
    observation=["first", "later"],
    action=dict(pick=Choice(("wait", "now"))),
    rewards=dict(prize=Term("goal", 1.0, most=1), small=Term("goal", 0.2, most=1)),
    goal_metrics=dict(waited=Goal("waited for the prize", share=True)),
    step=[decide, judge, observe],
    reset=[start, observe],
)


def train(make, config, iterations):
    torch.manual_seed(config.seed)
    algorithm = make(
        Batch(WAIT, config.envs, seed=config.seed, overrides={"max_steps": WAITING}, stagger=True),
        resolve(config),
    )
    for i in range(iterations):
        algorithm.collect(lambda phase: contextlib.nullcontext())
        algorithm.learn(i / iterations)
    return algorithm


def test_ppo_learns_to_wait():
    """A rollout of 6 ends in the middle of the idle steps: the value of idle observations is its
    bootstrap."""
    config = Config(
        game="pursuit",
        envs=96,
        policy=PolicyConfig(hidden=(16,), normalise_observation=False),
        learner=PPOConfig(
            gamma=GAMMA,
            rollout=6,
            minibatches=2,
            learning_rate="5e-3 -> 5e-4",
            entropy=0.001,
            bptt=1,
        ),
    )
    ppo = train(PPO, config, 60)
    policy, rollout = ppo.policies["agent"], ppo.roles["agent"].rollout
    with torch.no_grad():
        out = policy(
            torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]),
            policy.initial_state(2),
            torch.zeros(1, 2, dtype=torch.bool),
        )
    values = policy.real_value(out.value)[0]
    # the share of those who take the small reward at once
    assert rollout.choices[rollout.valid].float().mean() < 0.2
    assert values[0] == pytest.approx(GAMMA ** (WAITING - 1), abs=0.15)
    # an idle step: the prize is 0 to 29 steps away, which nobody can see
    assert 0.4 < values[1] < 0.8


def test_rainbow_learns_to_wait():
    config = Config(
        game="pursuit",
        envs=32,
        algorithm="rainbow",
        policy=PolicyConfig(hidden=(16,), normalise_observation=False),
        learner=RainbowConfig(
            gamma=GAMMA,
            replay=32 * 400,
            warm_up=200,
            batch=64,
            rollout=8,
            reward_scale=1.0,
            epsilon_from=1.0,
            epsilon_to=0.2,
            epsilon_over=500,
            replay_ratio=4.0,
            learning_rate=3e-3,
            stream=16,
            cosines=8,
            quantiles=4,
            target_quantiles=4,
        ),
    )
    rainbow = train(Rainbow, config, 40)
    q = rainbow.policies["agent"].q_values(torch.tensor([[[1.0, 0.0]]]))[0, 0].tolist()
    assert q == pytest.approx([GAMMA ** (WAITING - 1), 0.2], abs=0.12)
