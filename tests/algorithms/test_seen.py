"""What is seen as bytes: stored once, stacked within the episode, the same while acting and while
learning."""

import contextlib

import numpy as np
import pytest
import torch

from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO
from ludus.config import Config, PolicyConfig, resolve
from ludus.errors import RuleError
from ludus.networks.encoders import Picture, TokenTable
from ludus.networks.heads import Actions
from ludus.play.player import Player
from ludus.sim import (
    Batch,
    Choice,
    Game,
    Goal,
    Image,
    Param,
    Role,
    Term,
    Tokens,
    float32,
    phase,
    u8,
)
from ludus.sim.layout import Seen

NOTHING = contextlib.nullcontext


@phase(writes="terminated")
def tick(env, step, max_steps, terminated):
    terminated[env] = step[env] >= max_steps[env] - env % 3


@phase(
    lanes="agents",
    writes=("seen_picture", "seen_things", "observation", "term_point", "goal_point"),
)
def look(
    env,
    agent,
    step,
    episode,
    seen_picture,
    seen_things,
    observation,
    action_act,
    term_point,
    goal_point,
):
    """The picture's first pixel says which step it is, its second which episode; one token counts
    steps."""
    seen_picture[env, agent, 0, 0] = step[env] + 1
    seen_picture[env, agent, 1, 1] = episode[env] % 200
    seen_things[env, agent, 0, 0] = step[env] % 4
    seen_things[env, agent, 0, 1] = 1
    seen_things[env, agent, 0, 2] = 3
    observation[env, agent, 0] = 0.1 * float32(step[env])
    term_point[env, agent] = 1.0 if action_act[env, agent] == 1 else 0.0
    goal_point[env, agent] = 0.0


def make_game(**changes):
    values = dict(
        name="pictures",
        summary="shows its clock",
        roles=[Role("agent")],
        state=dict(seen_picture=u8("agents", 2, 2), seen_things=u8("agents", 5, 3)),
        params=dict(max_steps=Param(9, 2, 100)),
        observation=["time"],
        seen=dict(picture=Image(frames=3), things=Tokens(cells=4, features=2)),
        action=dict(act=Choice(("no", "yes"))),
        rewards=dict(point=Term("goal", 1.0, most="max_steps")),
        goal_metrics=dict(point=Goal()),
        step=[tick, look],
        reset=[look],
    )
    return Game(**{**values, **changes})


GAME = make_game()


def make(memory="none", envs=6, rollout=16):
    config = Config(
        game="pictures",
        envs=envs,
        policy=PolicyConfig(hidden=(8,), memory=memory, memory_size=4),
        learner=PPOConfig(rollout=rollout, minibatches=2),
    )
    torch.manual_seed(0)
    return PPO(Batch(GAME, envs, jit=False), resolve(config))


def test_stacks_show_the_last_frames_of_the_episode_and_black_before_it():
    """Over two rollouts: the newest frame shows the step, the older ones the steps before it or
    nothing."""
    ppo = make()
    role = ppo.roles["agent"]
    for _ in range(2):
        ppo.collect(lambda phase: NOTHING())
        r = role.rollout
        stack = r.stacks(*r.everything())["picture"]
        steps = (r.observation[..., 0] * 10).round().int()
        for k in range(3):
            back = 2 - k
            expected = torch.where(steps >= back, steps - back + 1, 0)
            assert torch.equal(stack[:, :, k, 0, 0].int(), expected)
    assert bool((steps == 0).any()) and bool((steps > 3).any())


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_learning_recomputes_what_acting_stored(memory):
    ppo = make(memory)
    for _ in range(2):
        ppo.collect(lambda phase: NOTHING())
    role = ppo.roles["agent"]
    data = ppo.chunks(role)
    seen = ppo.seen(role, torch.arange(data["valid"].shape[1]))
    output = role.policy(data["observation"], data["state"][0], data["starts"], seen=seen)
    actions = Actions(data["raw"], data["binary"], data["choices"])
    assert torch.allclose(output.distribution.log_prob(actions), data["log_prob"], atol=1e-5)
    metrics = ppo.learn(0.0)
    assert metrics["learner/agent/grad_norm"] > 0
    for name in ("picture", "things"):
        for p in role.policy.actor.network.seen[name].parameters():
            assert p.grad is not None and bool(p.grad.any())


def test_a_player_sees_what_the_learner_sees():
    ppo = make()
    role, batch = ppo.roles["agent"], ppo.batch
    player = Player(role.policy, batch, role.agents)
    stacks = []
    push = player.frames.push
    player.frames.push = lambda newest, starts: stacks.append(push(newest, starts)) or stacks[-1]
    for t in range(16):
        player.act()
        seen = role.observe(t)
        assert torch.equal(seen["picture"], stacks[-1]["picture"]) and torch.equal(
            seen["things"], stacks[-1]["things"]
        )
        batch.step()
        role.record_step(t)


def test_a_token_table_is_a_weighted_sum_of_rows():
    table = TokenTable(Tokens(cells=3, features=2), 4)
    tokens = torch.tensor([[[[2, 1, 1], [0, 0, 3], [0, 0, 0]]]], dtype=torch.uint8)
    expected = table.table[2 * 2 + 1] * 1.0 + table.table[0] * 2.0  # log2(1 + amount)
    assert torch.allclose(table(tokens)[0, 0], expected)


def test_large_pictures_pass_convolutions_and_small_ones_do_not():
    large, small = Picture(Seen(Image(4), 64, 64), 16), Picture(Seen(Image(), 11, 11), 16)
    assert large(torch.zeros(2, 3, 4, 64, 64, dtype=torch.uint8)).shape == (2, 3, 16)
    assert small(torch.zeros(2, 3, 1, 11, 11, dtype=torch.uint8)).shape == (2, 3, 16)
    assert any(p.ndim == 4 for p in large.parameters()) and not any(
        p.ndim == 4 for p in small.parameters()
    )


def test_what_is_seen_must_be_declared_as_bytes():
    with pytest.raises(RuleError, match="declare the state field seen_camera"):
        make_game(seen=dict(camera=Image()))


def test_pictures_are_stored_once():
    r = make().roles["agent"].rollout
    assert r.seen["picture"].shape == (16 + 3, 6, 2, 2) and r.seen["picture"].dtype == torch.uint8
    assert np.prod(r.seen["things"].shape) == 17 * 6 * 15
