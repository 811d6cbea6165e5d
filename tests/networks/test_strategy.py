"""The strategy encoder: windows and masks by hand, the same while acting and while learning,
gradients everywhere."""

import contextlib

import pytest
import torch
from safetensors.torch import load_file

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO
from ludus.config import (
    CheckpointConfig,
    Config,
    EvalConfig,
    LogConfig,
    PolicyConfig,
    TrainConfig,
    resolve,
)
from ludus.errors import LudusError
from ludus.networks.heads import Actions, ActionSpace
from ludus.networks.policy import Policy
from ludus.networks.strategy import History, StrategyEncoder, sinusoids
from ludus.networks.strategy_config import StrategyConfig
from ludus.networks.strategy_metrics import NAMES, StrategyMetrics
from ludus.play.player import Player
from ludus.runs import checkpoint
from ludus.sim import Batch, Choice, Game, Goal, Param, Role, Term, float32, phase
from ludus.training.start import prepare

NOTHING = contextlib.nullcontext
SMALL = dict(history=7, stride=3, layers=2, heads=2, width=8, vector=6)


@phase(writes="terminated")
def tick(env, step, max_steps, terminated):
    terminated[env] = step[env] >= max_steps[env] - env % 3


@phase(lanes="agents", writes=("observation", "term_point", "goal_point"))
def look(env, agent, step, episode, observation, action_act, term_point, goal_point):
    """The opponent's entries tell the step, and which episode it is."""
    observation[env, agent, 0] = float32(episode[env])
    observation[env, agent, 1] = 1.0
    observation[env, agent, 2] = 0.1 * float32(step[env])
    term_point[env, agent] = 1.0 if action_act[env, agent] == 1 else 0.0
    goal_point[env, agent] = 0.0


GAME = Game(
    name="clock",
    summary="shows its clock",
    roles=[Role("agent")],
    state={},
    params=dict(max_steps=Param(9, 2, 100)),
    observation=["opponent_episode", "self_one", "opponent_clock"],
    action=dict(act=Choice(("no", "yes"))),
    rewards=dict(point=Term("goal", 1.0, most="max_steps")),
    goal_metrics=dict(point=Goal()),
    step=[tick, look],
    reset=[look],
)
# entries in the order of their names, and the mark of a step that there is
CLOCK, EPISODE, THERE = 0, 1, 2


def make(memory="none", envs=6, rollout=10, **policy):
    config = Config(
        game="clock",
        envs=envs,
        learner=PPOConfig(rollout=rollout, minibatches=2, bptt=5 if memory == "lstm" else 1),
        policy=PolicyConfig(
            hidden=(8,),
            memory=memory,
            memory_size=4,
            network="strategy",
            network_settings=StrategyConfig(size="small", **SMALL),
            **policy,
        ),
    )
    torch.manual_seed(0)
    return PPO(Batch(GAME, envs, jit=False), resolve(config))


def collect(ppo, times):
    for _ in range(times):
        ppo.collect(lambda phase: NOTHING())


def test_windows_hold_every_third_step_of_the_episode_and_nothing_before_it():
    """History 7, stride 3: the steps 6, 3 and 0 ago. Rollouts of 10 steps are longer than it, and
    those of 4 shorter."""
    for rollout in (10, 4):
        ppo = make(rollout=rollout)
        for _ in range(5):
            collect(ppo, 1)
            r = ppo.roles["agent"].rollout
            window = r.stacks(*r.everything())["history"][..., 0, :]
            steps, episodes = (r.observation[..., 2] * 10).round(), r.observation[..., 0]
            for k, back in enumerate((6, 3, 0)):
                there = steps >= back
                assert torch.equal(window[:, :, k, THERE] > 0, there)
                assert torch.allclose(
                    window[:, :, k, CLOCK], torch.where(there, (steps - back) / 10, 0.0)
                )
                assert torch.equal(window[:, :, k, EPISODE], torch.where(there, episodes, 0.0))
        assert bool((steps >= 6).any()) and bool((episodes > 1).any())


@pytest.mark.parametrize("memory", ["none", "lstm"])
@pytest.mark.parametrize("separate_value", [False, True])
def test_learning_recomputes_what_acting_stored_and_reaches_every_module(memory, separate_value):
    ppo = make(memory, separate_value=separate_value)
    collect(ppo, 3)
    role = ppo.roles["agent"]
    data = ppo.chunks(role)
    seen = ppo.seen(role, torch.arange(data["valid"].shape[1]))
    output = role.policy(data["observation"], data["state"][0], data["starts"], seen=seen)
    actions = Actions(data["raw"], data["binary"], data["choices"])
    assert torch.allclose(output.distribution.log_prob(actions), data["log_prob"], atol=1e-5)
    ppo.learn(0.0)
    silent = [
        n
        for n, p in role.policy.named_parameters()
        if "seen.history" in n and not (p.grad is not None and p.grad.any())
    ]
    assert not silent


def test_a_player_sees_what_the_learner_sees():
    ppo = make()
    role, batch = ppo.roles["agent"], ppo.batch
    player = Player(role.policy, batch, role.agents)
    windows = []
    push = player.frames.push
    player.frames.push = lambda newest, starts: windows.append(push(newest, starts)) or windows[-1]
    for t in range(10):
        player.act()
        assert torch.equal(role.observe(t)["history"], windows[-1]["history"])
        batch.step()
        role.record_step(t)


def make_encoder(entries=3, history=5):
    torch.manual_seed(1)
    encoder = StrategyEncoder(
        History(tuple(range(entries)), history, 1),
        StrategyConfig(size="small", layers=2, heads=2, width=8, vector=4),
        6,
    )
    torch.nn.init.normal_(encoder.interest.weight)
    return encoder


def test_steps_that_are_not_there_change_nothing():
    encoder = make_encoder()
    history = torch.randn(1, 2, 5, 1, 4)
    history[..., -1] = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0])[:, None]
    other = history.clone()
    other[:, :, :2, :, :-1] = 100.0
    vector, attention = encoder.recognise(history)
    assert torch.equal(vector, encoder.recognise(other).vector)
    assert torch.equal(attention[..., :2], torch.zeros(1, 2, 2)) and torch.allclose(
        attention.sum(-1), torch.ones(1, 2)
    )
    other[:, :, 2:, :, :-1] += 1.0
    assert not torch.allclose(vector, encoder.recognise(other).vector)


def test_a_short_history_is_the_end_of_a_long_one():
    """Positions count from now backwards: three steps alone mean what they mean after two steps of
    an earlier episode."""
    long, short = make_encoder(history=5), make_encoder(history=3)
    history = torch.randn(1, 2, 5, 1, 4)
    history[..., -1] = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0])[:, None]
    assert torch.allclose(
        long.recognise(history).vector, short.recognise(history[:, :, 2:]).vector, atol=1e-6
    )


def test_positions_are_sines_and_cosines_of_steps_back():
    table = sinusoids([2, 0], 4)
    at = torch.tensor(2.0)
    assert torch.allclose(
        table[0], torch.stack([at.sin(), at.cos(), (at / 100).sin(), (at / 100).cos()])
    )
    assert torch.equal(table[1], torch.tensor([0.0, 1.0, 0.0, 1.0]))


def test_sizes_of_small_and_full():
    small, full = (StrategyConfig(size=size).filled() for size in ("small", "full"))
    assert len(History((), small.history, small.stride).steps_back) == 13
    assert len(History((), full.history, full.stride).steps_back) == 65
    assert (full.layers, full.heads, full.width, full.vector) == (6, 8, 256, 256)
    assert StrategyConfig(size="full", layers=1).filled().layers == 1


def test_the_order_of_observation_entries_does_not_matter():
    """Weights belong to names: a checkpoint of a game whose entries were reordered means the
    same."""
    config = PolicyConfig(
        hidden=(4,), network="strategy", network_settings=StrategyConfig(size="small", **SMALL)
    )
    row = {"opponent_b": 2.0, "self_x": 5.0, "opponent_a": 1.0}
    for names in (list(row), list(reversed(row))):
        policy = Policy(names, ActionSpace(0, 0, (2,)), config)
        kept = policy.remembered(torch.tensor([[row[name] for name in names]]))
        assert torch.equal(kept, torch.tensor([[[1.0, 2.0, 1.0]]]))


def test_a_history_is_normalised_as_observations_are():
    policy = make(normalise_observation=True).roles["agent"].policy
    policy.observation_norm.mean[:3] = torch.tensor([1.0, 2.0, 3.0])
    policy.observation_norm.var[:3] = 4.0
    window = torch.tensor([5.0, 9.0, 1.0]).expand(1, 1, 3, 1, 3)  # clock 5, episode 9
    assert torch.allclose(
        policy.normalised({"history": window})["history"][0, 0, 0, 0], torch.tensor([1.0, 4.0, 1.0])
    )


def test_what_cannot_work_is_refused():
    def refused(match, algorithm="ppo", hidden=(8,), **strategy):
        config = Config(
            game="pursuit",
            envs=4,
            algorithm=algorithm,
            policy=PolicyConfig(
                hidden=hidden, network="strategy", network_settings=StrategyConfig(**strategy)
            ),
            train=TrainConfig(total_agent_steps=10_000, threads=1),
        )
        config.policy.network_settings.entries = strategy.get("entries", "other0_")
        with pytest.raises(LudusError, match=match):
            prepare(config)

    refused("did you mean 'small'", size="smal")
    refused("use a multiple of 8", size="small", width=30)
    refused("use 1 or more", size="small", history=0)
    refused("use 0 or more, and less than 1", size="small", dropout=1.0)
    refused("use algorithm ppo", "rainbow", size="small")
    refused("no observation entry begins so", size="small", entries="nobody_")
    refused("give policy.hidden a layer", hidden=(), size="small", entries="")


def test_metrics_tell_spread_entropy_and_drift():
    """Alike windows have no spread; uniform attention has all of its entropy; what does not learn
    does not drift."""
    encoder = make_encoder()
    torch.nn.init.zeros_(encoder.interest.weight)
    history = torch.randn(1, 8, 5, 1, 4)
    history[..., -1] = 1.0
    history[:, :, 0, :, -1] = 0.0
    metrics = StrategyMetrics(encoder)
    metrics.before({"history": history})
    metrics.after({"history": history})
    read = metrics.read()
    assert (
        read["attention_entropy"] == pytest.approx(1.0)
        and read["drift"] == 0
        and read["vector_std"] > 0.01
    )
    with torch.no_grad():
        encoder.refine[-1].bias += read["vector_std"]
    metrics.after({"history": history})
    assert metrics.read()["drift"] == pytest.approx(1.0, rel=1e-4)
    metrics.before({"history": history[:, :1].expand(-1, 8, -1, -1, -1)})
    assert metrics.read()["vector_std"] == pytest.approx(0.0, abs=1e-6)


def test_a_run_logs_strategy_metrics_and_resumes_exactly(tmp_path):
    config = Config(
        game="tests.networks.test_strategy:GAME",
        envs=6,
        train=TrainConfig(total_agent_steps=100, threads=1),
        learner=PPOConfig(rollout=5, minibatches=2, bptt=5, learning_rate=1e-3),
        policy=PolicyConfig(
            hidden=(8,),
            memory="lstm",
            memory_size=4,
            network="strategy",
            network_settings=StrategyConfig(size="small", **SMALL),
        ),
        eval=EvalConfig(episodes=2, every_agent_steps=1000, against=("self",), greedy=False),
        checkpoint=CheckpointConfig(every_agent_steps=1, every_seconds=None, keep=9),
        log=LogConfig(tensorboard=False),
    )
    run = ludus.train(config, run=tmp_path / "run", quiet=True)
    first = run.metrics()[0]
    assert {f"strategy/agent/{name}" for name in NAMES} <= first.keys() and first[
        "strategy/agent/drift"
    ] > 0
    steps = checkpoint.steps(run)
    end = checkpoint.folder(run, steps[-1]) / "policy.safetensors"
    before = load_file(end)
    ludus.resume(f"{run.path}@{steps[2]}", quiet=True)
    after = load_file(end)
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
