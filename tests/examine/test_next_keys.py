"""Predicting the opponent's keys from the strategy vector and a later observation: whose keys,
when, which loss, what learns."""

import contextlib
import copy
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO
from ludus.config import Config, PolicyConfig, TrainConfig, resolve
from ludus.errors import LudusError
from ludus.examine.next_keys import foretold
from ludus.networks.next_keys import later_steps
from ludus.networks.strategy_config import StrategyConfig
from ludus.runs.checkpoint import Checkpoint
from ludus.runs.weights import load_policies, tensors_of
from ludus.sim import Batch, Binary, Game, Goal, Param, Role, Term, float32, i32, phase
from ludus.training.start import prepare


@phase(writes="terminated")
def tick(env, step, max_steps, terminated):
    terminated[env] = step[env] >= max_steps[env]


@phase(lanes="agents", writes=("up", "goal_ups", "term_none"))
def count(env, agent, action_up, up, goal_ups, term_none):
    up[env, agent] = action_up[env, agent]
    goal_ups[env, agent] += float32(action_up[env, agent])
    term_none[env, agent] = 0.0


@phase(lanes="agents", writes="up")
def release(env, agent, up):
    up[env, agent] = 0


@phase(lanes="agents", writes="observation")
def look(env, agent, agents, up, step, observation):
    observation[env, agent, 0] = float32(up[env, agents - 1 - agent])
    observation[env, agent, 1] = float32(step[env] % 2)


@phase(lanes="agents", writes=("action_up", "action_down"))
def alternate(env, agent, step, action_up, action_down):
    """Up in every odd step, down never."""
    action_up[env, agent] = step[env] % 2
    action_down[env, agent] = 0


@phase(lanes="agents", writes=("action_up", "action_down"))
def steady(env, agent, action_up, action_down):
    """Up in every step, down never."""
    action_up[env, agent] = 1
    action_down[env, agent] = 0


GAME = Game(
    name="keys",
    summary="two press keys",
    roles=[Role("player", teams=2)],
    state=dict(up=i32("agents")),
    params=dict(max_steps=Param(9, 2, 100)),
    observation=["opponent_up", "odd"],
    action=dict(up=Binary(), down=Binary()),
    rewards=dict(none=Term("goal", 1.0, most=1)),
    goal_metrics=dict(ups=Goal()),
    step=[tick, count, look],
    reset=[release, look],
    bots=dict(player=[alternate, steady]),
)
NAME = "tests.examine.test_next_keys:GAME"
STRATEGY = StrategyConfig(size="small", history=4, stride=1, layers=1, heads=1, width=8, vector=6)


def config(next_keys, network="strategy", **learn):
    settings = replace(STRATEGY, next_keys=next_keys) if network == "strategy" else None
    return Config(
        game=NAME,
        envs=8,
        train=TrainConfig(total_agent_steps=1000, threads=1),
        policy=PolicyConfig(hidden=(8,), network=network, network_settings=settings),
        learner=PPOConfig(
            rollout=12,
            epochs=2,
            minibatches=2,
            learning_rate=1e-2,
            entropy=0.0,
            **learn,
        ),
    )


def make(next_keys=1.0, bots=("alternate",), **learn):
    torch.manual_seed(0)
    batch = Batch(GAME, 8, jit=False)
    for i, bot in enumerate(bots):
        batch.set_controller("player", bot, slice(8 * i // len(bots), 8 * (i + 1) // len(bots)), 1)
    batch.reset()
    return PPO(batch, resolve(config(next_keys, **learn)))


def predictor_of(role):
    (auxiliary,) = role.auxiliaries
    return auxiliary.predictor


def learn(ppo):
    ppo.collect(lambda phase: contextlib.nullcontext())
    return ppo.learn(0.0)


def test_what_is_predicted_are_the_keys_that_the_other_side_pressed():
    ppo = make()
    ppo.collect(lambda phase: contextlib.nullcontext())
    r = ppo.roles["player"].rollout
    keys = r.recorded["opponent_keys"].view(12, 8, 2, 2)  # time, env, agent, key
    own = r.binary.view(12, 8, 2, 2)
    valid = r.valid.view(12, 8, 2)[..., 0]
    # whether the coming step is odd
    step = (r.observation[:12, :, 1].view(12, 8, 2)[..., 0] + 1) % 2
    assert (
        torch.equal(keys[:, :, 0, 0][valid], step[valid].to(torch.int8))
        and not keys[:, :, 0, 1][valid].any()
    )
    assert torch.equal(keys[:, :, 1], own[:, :, 0])  # the bot's opponent is the policy
    assert int(valid.sum()) > 60


def test_a_guess_costs_ln_2_and_what_can_be_known_is_learned():
    """After a press in an even step nothing but the history tells who presses next: the one who
    alternates does not."""
    ppo = make(bots=("alternate", "steady"))
    role = ppo.roles["player"]
    with torch.no_grad():
        predictor_of(role).layers[-1].weight.zero_()
        predictor_of(role).layers[-1].bias.zero_()
    role.optimizer.param_groups[0]["lr"] = 0.0
    role.config = replace(role.config, learning_rate=1e-9)
    assert learn(ppo)["learner/player/next_keys_loss"] == pytest.approx(math.log(2), abs=1e-5)
    role.config = replace(role.config, learning_rate=1e-2)
    first = learn(ppo)["learner/player/next_keys_loss"]
    for _ in range(80):
        last = learn(ppo)["learner/player/next_keys_loss"]
    assert first > 0.5 and last < 0.07  # without the vector half of the presses are open: 0.17

    def held_out(num_envs):
        return Batch(GAME, num_envs, seed=9, jit=False)

    told = foretold(held_out, role.policy, predictor_of(role), ["alternate"], seed=0, steps=20)
    # 'up' is pressed in every second step but the first and last of nine: 4 of 9; 'down' never
    share = 4 / 9
    assert told["keys_guess"] == pytest.approx(
        -(share * math.log(share) + (1 - share) * math.log(1 - share)) / 2, abs=0.01
    )
    assert told["keys_loss"] < 0.1 and "keys_loss_shuffled" not in told
    told = foretold(
        held_out, role.policy, predictor_of(role), ["alternate", "steady"], seed=0, steps=20
    )
    assert told["keys_loss"] < 0.1 and told["keys_loss_shuffled"] > 5 * told["keys_loss"]


class Stored(Checkpoint):
    """As read from a run."""

    def __init__(self, tensors, layout):
        self.manifest, self.where, self._tensors = {"layout": layout}, "run", {"policy": tensors}
        self.run = SimpleNamespace(settings=lambda: config(0.0))


def test_what_is_beside_the_policy_is_never_read_in_another_order():
    """The predictor reads observations by place: with another order it starts anew; an older one is
    refused."""
    trained, fresh = make(), make()
    tensors, names = tensors_of(trained)["policy"], list(GAME.observation)
    saved = {**trained.batch.layout.describe(), "observation": names[::-1]}
    before = copy.deepcopy(predictor_of(fresh.roles["player"]).state_dict())
    for tensor in before.values():
        assert tensor.any()
    with torch.no_grad():
        for tensor in tensors.values():
            tensor += 1.0
    load_policies(fresh, fresh.batch.layout, Stored(tensors, saved))
    assert all(
        torch.equal(t, before[n])
        for n, t in predictor_of(fresh.roles["player"]).state_dict().items()
    )
    load_policies(fresh, fresh.batch.layout, Stored(tensors, fresh.batch.layout.describe()))
    assert all(
        torch.equal(t, tensors[f"player/next_keys/predictor.{n}"])
        for n, t in predictor_of(fresh.roles["player"]).state_dict().items()
    )
    older = {n: t for n, t in tensors.items() if "next_keys" not in n} | {
        "player/next_keys/weight": torch.ones(2, 6)
    }
    with pytest.raises(
        LudusError,
        match="player/next_keys was made with other settings or by an older version: train again",
    ):
        load_policies(fresh, fresh.batch.layout, Stored(older, fresh.batch.layout.describe()))


def test_a_later_step_is_one_of_the_same_episode_by_hand():
    """Six steps of two rows. The first row's episode ends with its third step, the second row's
    with its last but one."""
    ends = torch.zeros(6, 2, dtype=torch.bool)
    ends[2, 0] = ends[4, 1] = True
    assert later_steps(ends, torch.zeros(6, 2)).tolist() == [[t, t] for t in range(6)]
    assert later_steps(ends, torch.full((6, 2), 0.999)).tolist() == [
        [2, 4],
        [2, 4],
        [2, 4],
        [5, 4],
        [5, 4],
        [5, 5],
    ]
    assert later_steps(ends, torch.full((6, 2), 0.5)).tolist() == [
        [1, 2],
        [2, 3],
        [2, 3],
        [4, 4],
        [5, 4],
        [5, 5],
    ]


def test_in_training_every_later_step_of_the_episode_is_asked_for():
    ppo = make()
    r, ahead = ppo.roles["player"].rollout, set()
    for _ in range(20):
        learn(ppo)
        steps, rows = r.reward.shape
        later_row = r.prepared["later"]
        times, of = later_row // rows, later_row % rows
        assert torch.equal(of, torch.arange(rows).expand(steps, -1))
        for t, row in r.valid.nonzero().tolist():
            later = int(times[t, row])
            assert t <= later < steps and not r.starts[t + 1 : later + 1, row].any()
            ahead.add(later - t)
    assert ahead == set(range(9))  # an episode has nine steps


def test_it_is_off_unless_asked_for():
    ppo = make(next_keys=0.0)
    assert (
        "learner/player/next_keys_loss" not in learn(ppo)
        and ppo.modules() == {}
        and not ppo.roles["player"].rollout.recorded
    )
    assert list(make().modules()) == ["player/next_keys"]


def test_where_it_cannot_work_it_is_refused(monkeypatch):
    monkeypatch.setenv("LUDUS_JIT", "0")
    prepare(config(0.5))
    with pytest.raises(
        LudusError, match="needs a game of one against one with keys, and pursuit is not one"
    ):
        wrong = config(0.5)
        wrong.policy.network_settings.entries = "other"
        prepare(replace(wrong, game="pursuit", envs=8))
    with pytest.raises(
        LudusError, match=r"policy\.strategy\.next_keys=-1 cannot work: use 0 or more"
    ):
        prepare(config(-1))
