"""Rainbow: losses and targets by hand, switches that are really off, schedules, refusals, probes
with known answers, resume."""

import contextlib
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import ludus
from ludus import api
from ludus.algorithms.rainbow import RainbowConfig
from ludus.algorithms.rainbow import rainbow as module
from ludus.algorithms.rainbow.feasible import feasible_values
from ludus.algorithms.rainbow.q_policy import NoisyLinear, move
from ludus.algorithms.rainbow.rainbow import Rainbow, huber, quantile_huber
from ludus.algorithms.replay_buffer import Sample
from ludus.batches import make_batch
from ludus.config import (
    CheckpointConfig,
    Config,
    EvalConfig,
    PolicyConfig,
    TrainConfig,
    resolve,
    set_value,
)
from ludus.errors import LudusError
from ludus.games import load_game
from ludus.recipes import load_recipe
from ludus.runs import checkpoint
from ludus.sim import Batch, Choice, Game, Goal, Param, Role, Term, f32, phase
from ludus.training.start import prepare

pytestmark = pytest.mark.usefixtures("envs_in_this_process")

SMALL = dict(replay=2_000, warm_up=64, batch=16, rollout=8, stream=8, cosines=4, epsilon_over=1_000)


@phase(lanes="agents", writes=("alive", "term_point", "observation", "mask_act", "goal_point"))
def live(env, agent, step, action_act, alive, term_point, observation, mask_act, goal_point):
    """Agent 1 dies at step 3; the third option is never allowed."""
    alive[env, agent] = agent == 0 or step[env] < 3
    term_point[env, agent] = 1.0
    observation[env, agent, 0] = step[env]
    observation[env, agent, 1] = action_act[env, agent]
    mask_act[env, agent, 2] = False
    goal_point[env, agent] = 0.0


@phase(writes="truncated")
def cut(env, step, max_steps, truncated):
    truncated[env] = step[env] >= max_steps[env]


MORTAL = Game(
    name="mortal",
    summary="one of two dies early",
    roles=[Role("agent", 2)],
    state=dict(unused=f32()),
    params=dict(max_steps=Param(6, 1, 50)),
    observation=["time", "last"],
    action=dict(act=Choice(("a", "b", "c"), masked=True)),
    rewards=dict(point=Term("goal", 1.0, most="max_steps")),
    goal_metrics=dict(point=Goal()),
    step=[live, cut],
    reset=[live],
)


def make(game=MORTAL, envs=4, hidden=(8,), seed=0, **settings):
    config = resolve(
        Config(
            game="test",
            envs=envs,
            algorithm="rainbow",
            policy=PolicyConfig(hidden=hidden, normalise_observation=False),
            learner=RainbowConfig(**{**SMALL, **settings}),
        )
    )
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return Rainbow(Batch(game, envs, jit=False), config)


def iterate(algorithm, times=1):
    for _ in range(times):
        algorithm.collect(lambda phase: contextlib.nullcontext())
        metrics = algorithm.learn(0.0)
    return {name.rsplit("/", 1)[-1]: value for name, value in metrics.items()}


# -- losses and targets ----------------------------------------------------------------------------


def test_the_huber_loss_is_a_square_then_a_line():
    assert huber(torch.tensor([0.5, -1.0, 3.0, -3.0]), 1.0).tolist() == [0.125, 0.5, 2.5, 2.5]
    assert huber(torch.tensor([3.0]), 2.0).tolist() == [4.0]


def test_the_quantile_loss_by_hand():
    """Estimates 0 (of the quantile 1/4) and 1 (of 3/4), targets 0.5 and 3: errors 0.5, 3 and -0.5,
    2.

    Huber: 0.125, 2.5 and 0.125, 1.5. Weights: 1/4, 1/4 and 1/4 (below), 3/4. Means over targets:
    0.328125 and 0.578125.
    """
    error = torch.tensor([[0.5, 3.0]]).unsqueeze(1) - torch.tensor([[0.0, 1.0]]).unsqueeze(2)
    assert quantile_huber(error, torch.tensor([[0.25, 0.75]]), 1.0).tolist() == [0.90625]
    # kappa 2: Huber 0.125, 4 and 0.125, 2, then halved
    assert quantile_huber(error, torch.tensor([[0.25, 0.75]]), 2.0).item() == pytest.approx(
        (0.515625 + 0.765625) / 2
    )


def test_the_quantile_loss_finds_quantiles():
    """The minimum for the quantile 0.8 of 0 … 99 is between 79 and 80 (with a small kappa)."""
    samples, share = torch.arange(100.0), torch.tensor([[0.8]])

    def loss(z):
        return quantile_huber((samples - z).view(1, 1, -1), share, 0.01).item()

    assert min(range(100), key=loss) in (79, 80)


def told(bias, role):
    """A sample whose next values are told by the bias of the last layer."""
    for network, values in bias.items():
        last = network.advantage[2]
        with torch.no_grad():
            last.weight.zero_()
            last.bias.copy_(torch.tensor(values))
    one = torch.ones(1)
    return Sample(
        observation=torch.zeros(1, 1, 2),
        seen={},
        action=torch.zeros(1, dtype=torch.long),
        earned=3 * one,
        discount=0.5 * one,
        following=torch.zeros(1, 1, 2),
        following_seen={},
        following_mask=torch.tensor([[[True, True, False]]]),
        usable=one.bool(),
        waiting=~one.bool(),
        weight=one,
        leaf=torch.zeros(1, dtype=torch.long),
        age=one,
    )


@pytest.mark.parametrize("iqn", [False, True])
@pytest.mark.parametrize(("double", "value"), [(True, 10.0), (False, 20.0)])
def test_double_asks_the_target_about_the_choice_of_the_other(iqn, double, value):
    """The learning network prefers a, the target network b; c is best for both and forbidden. 3 of
    reward, then half the value."""
    algorithm = make(double=double, dueling=False, iqn=iqn)
    role = algorithm.roles["agent"]
    sample = told({role.policy.online: [5.0, 1.0, 9.0], role.target: [10.0, 20.0, 99.0]}, role)
    target = algorithm.targets(role, sample)
    assert target.shape == (1, 8 if iqn else 1)
    assert torch.allclose(target, torch.tensor(3 + 0.5 * value))


def test_dueling_adds_the_value_to_advantages_around_zero():
    algorithm = make(iqn=False)
    network = algorithm.roles["agent"].policy.online
    told({network: [1.0, 2.0, 6.0]}, None)
    with torch.no_grad():
        network.value[2].weight.zero_()
        network.value[2].bias.fill_(100.0)
    assert network.values(torch.zeros(1, 8)).tolist() == [[[98.0, 99.0, 103.0]]]


# -- switches --------------------------------------------------------------------------------------


def test_a_component_that_is_off_leaves_nothing_behind():
    algorithm = make(
        double=False,
        dueling=False,
        iqn=False,
        noisy=False,
        batch_norm=False,
        prioritised=False,
        average=0.0,
    )
    role = algorithm.roles["agent"]
    names = {n for n, _ in role.policy.named_parameters()}
    layers = ("actor.network.encoder.0", "advantage.0", "advantage.2")
    assert names == {f"online.{layer}.{kind}" for layer in layers for kind in ("weight", "bias")}
    assert role.replay.tree is None
    metrics = iterate(algorithm, 6)
    assert (
        "value_loss" in metrics and not {"beta", "priority_spread", "noise_scale"} & metrics.keys()
    )
    sample = role.replay.sample(64, role.gamma, role.beta)
    assert torch.equal(sample.weight, sample.usable.float())


def test_a_component_that_is_on_is_there():
    algorithm = make(noisy=True, batch_norm=True, prioritised=True)
    role = algorithm.roles["agent"]
    assert sum(isinstance(m, NoisyLinear) for m in role.policy.online.modules()) == 4
    assert role.policy.online.cosines is not None and role.policy.averaged is not None
    metrics = iterate(algorithm, 8)
    assert metrics["priority_spread"] > 0 and metrics["beta"] == pytest.approx(0.4)
    assert metrics["noise_scale"] == pytest.approx(0.5 / 8**0.5, rel=0.2)
    assert int(role.policy.online.norm.num_batches_tracked) == int(role.count.updates) > 0


def test_noise_explores_and_is_silent_in_evaluation():
    policy = make(noisy=True, average=0.0).policies["agent"]
    x = torch.randn(1, 5, 2)
    policy.train()
    policy.online.draw_noise()
    first = policy.q_values(x)
    assert torch.equal(first, policy.q_values(x))
    policy.online.draw_noise()
    assert not torch.allclose(first, policy.q_values(x))
    policy.eval()
    quiet = policy.q_values(x)
    policy.online.draw_noise()
    assert torch.equal(quiet, policy.q_values(x))


def test_factorised_noise_by_hand():
    layer = NoisyLinear(2, 1, 0.5)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0]]))
        layer.bias.fill_(3.0)
        layer.weight_noise.fill_(0.1)
        layer.bias_noise.fill_(0.2)
        layer.noise_in.copy_(torch.tensor([1.0, -2.0]))
        layer.noise_out.fill_(3.0)
    # weights 1 + 0.1·3·1 and 2 + 0.1·3·(−2), bias 3 + 0.2·3
    assert layer(torch.tensor([1.0, 10.0])).item() == pytest.approx(1.3 + 14.0 + 3.6)


# -- networks that follow --------------------------------------------------------------------------


def test_moving_a_network_by_hand():
    a, b = (make(seed=seed, batch_norm=True).policies["agent"].online for seed in (0, 1))
    before, goal = a.advantage[0].weight.clone(), b.advantage[0].weight.clone()
    b.norm.running_mean.fill_(4.0)
    move(a, b, 0.25)
    assert torch.allclose(a.advantage[0].weight, 0.75 * before + 0.25 * goal)
    assert torch.equal(a.norm.running_mean, b.norm.running_mean)  # they are averages already
    move(a, b, 1.0)
    assert torch.equal(a.advantage[0].weight, goal) and torch.equal(b.advantage[0].weight, goal)


def weights(network):
    return torch.cat([p.detach().flatten() for p in network.parameters()]).clone()


def test_hard_updates_copy_every_n_and_leave_alone_in_between():
    """Eight steps of eight rows, batches of 16: four updates an iteration."""
    algorithm = make(target_every=6)
    role = algorithm.roles["agent"]
    iterate(algorithm, 2)
    assert role.last_updates == 4 and int(role.count.updates) == 8
    old = weights(role.target)
    iterate(algorithm)
    copied = int(role.count.updates) // 6
    assert copied == 2 and not torch.equal(weights(role.target), old)
    role.config.target_every = 10**6
    old = weights(role.target)
    iterate(algorithm)
    assert torch.equal(weights(role.target), old)


def test_soft_updates_move_a_share_at_every_update():
    algorithm = make(target_every=1, target_tau=0.1, replay_ratio=0.25)
    role = algorithm.roles["agent"]
    iterate(algorithm, 2)
    before = weights(role.target)
    iterate(algorithm)
    assert role.last_updates == 1
    assert torch.allclose(
        weights(role.target), 0.9 * before + 0.1 * weights(role.policy.online), atol=1e-6
    )


def test_what_plays_in_evaluation_is_the_running_average():
    """At first the average looks back over a tenth of the updates: the third keeps 3 of 12 parts;
    then `average` is the limit."""
    algorithm = make(average=0.9, replay_ratio=0.25)
    policy = algorithm.policies["agent"]
    iterate(algorithm, 2)
    for updates, keep in ((2, 3 / 12), (200, 0.9)):
        algorithm.roles["agent"].count.updates.fill_(updates)
        before = weights(policy.averaged)
        iterate(algorithm)
        assert torch.allclose(
            weights(policy.averaged), keep * before + (1 - keep) * weights(policy.online), atol=1e-6
        )
    x = torch.randn(1, 5, 2)
    expected = policy.averaged.expectation(policy.averaged.features(policy.prepared(x), {}))
    assert torch.equal(policy.eval().q_values(x), expected)
    assert not torch.equal(policy.train().q_values(x), expected)


# -- acting ----------------------------------------------------------------------------------------


def test_epsilon_by_steps_by_episodes_and_off():
    c = RainbowConfig(epsilon_from=1.0, epsilon_to=0.2, epsilon_over=100)
    assert [c.random_actions(s, 0) for s in (0, 50, 100, 1000)] == pytest.approx(
        [1.0, 0.6, 0.2, 0.2]
    )
    c = replace(c, epsilon_unit="episodes", epsilon_off=400)
    assert [c.random_actions(10**6, e) for e in (0, 25, 399, 400)] == pytest.approx(
        [1.0, 0.8, 0.2, 0.0]
    )


def test_epsilon_of_a_role_with_few_agents_comes_down_with_all_others():
    """One agent beside three: after 400 agent-steps together both have done with random actions."""
    algorithm = make(
        game=replace(MORTAL, name="unequal", roles=[Role("one"), Role("three", 3)]),
        epsilon_over=400,
        epsilon_to=0.1,
    )
    for _ in range(8):
        algorithm.collect(lambda phase: contextlib.nullcontext())
        metrics = algorithm.learn(0.0)
    steps = [int(role.count.steps) for role in algorithm.roles.values()]
    assert steps[0] < 400 < sum(steps)
    assert metrics["learner/one/epsilon"] == metrics["learner/three/epsilon"] == pytest.approx(0.1)


def test_random_actions_are_as_many_as_epsilon_says_and_never_forbidden():
    algorithm = make(epsilon_from=0.5, epsilon_to=0.5, envs=32)
    metrics = iterate(algorithm, 4)
    assert metrics["epsilon"] == 0.5 and metrics["random_action_share"] == pytest.approx(
        0.5, abs=0.1
    )
    r = algorithm.roles["agent"].replay
    assert set(r.action[r.valid].tolist()) == {0, 1}


def test_without_epsilon_the_best_action_is_taken():
    algorithm = make(epsilon_from=0.0, epsilon_to=0.0, warm_up=1900)
    iterate(algorithm)
    role = algorithm.roles["agent"]
    r = role.replay
    q = role.policy.q_values(r.observation[:8], r.mask[:8])
    assert torch.equal(r.action[:8].long(), q.argmax(-1))


def test_playing_is_greedy_but_for_a_few_random_actions():
    policy = make().policies["agent"].eval()
    policy.play_epsilon = 0.3
    x, mask = torch.randn(1, 4000, 2), torch.tensor([True, True, False]).expand(1, 4000, 3)
    output = policy(x, policy.initial_state(4000), torch.zeros(1, 4000, dtype=torch.bool), mask)
    best = policy.q_values(x, mask).argmax(-1)
    assert torch.equal(output.distribution.greedy().choices[..., 0].long(), best)
    sampled = output.distribution.sample().choices[..., 0].long()
    assert not bool((sampled == 2).any())
    # half of the random ones hit the best
    assert float((sampled != best).float().mean()) == pytest.approx(0.15, abs=0.03)
    assert torch.allclose(output.value, policy.q_values(x, mask).amax(-1) / 0.1)


def test_only_decisions_of_the_living_are_learned_from():
    """Episodes of 6 steps and a reset row: 6 valid rows of agent 0, 3 of agent 1, whose last one is
    terminal."""
    algorithm = make(n_step=1)
    iterate(algorithm, 20)
    r = algorithm.roles["agent"].replay
    time = (
        r.head - r.length + torch.arange(r.length - 1)
        if r.head > r.length
        else torch.arange(int(r.head) - 1)
    )
    for agent, per_episode, terminal in ((0, 6, 0), (1, 3, 1)):
        sample = r.transitions(time, torch.full_like(time, agent), torch.tensor(0.9))
        assert sample.usable.float().mean().item() == pytest.approx(per_episode / 7, abs=0.02)
        ends = (sample.discount == 0) & sample.usable
        assert ends.float().sum() / sample.usable.sum() == pytest.approx(terminal / 3, abs=0.02)
        follows = sample.following[0, :, 0] - sample.observation[0, :, 0]
        assert torch.equal(follows[sample.usable], torch.ones(int(sample.usable.sum())))
    assert algorithm.learned_steps() == int(r.valid[r.recent(8)].sum())


# -- how much is learned ---------------------------------------------------------------------------


def test_nothing_is_learned_before_the_warm_up_and_fractions_of_updates_add_up():
    """64 agent-steps an iteration at 0.1 replayed samples each, batches of 16: two updates in five
    iterations."""
    algorithm = make(warm_up=200, replay_ratio=0.1)
    role = algorithm.roles["agent"]
    updates = []
    for _ in range(13):
        metrics = iterate(algorithm)
        updates.append(algorithm.updates())
        assert ("value_loss" in metrics) == (algorithm.updates() > 0)
    assert sum(updates[:3]) == 0 and sum(updates[3:]) == 4 and max(updates) == 1
    assert int(role.count.updates) == 4 and metrics["replay_size"] == 13 * 64


def test_the_possible_range_of_values():
    """Racing: at most 150 of progress and 100 at the finish; with the seed's bonus 500 more.
    Nothing is negative."""
    game = load_game("racing_lidar")[0]

    def values(preset=None, gamma=0.99, overrides=None):
        return feasible_values(game, game.resolve(overrides, preset), "driver", gamma)

    assert values() == (0.0, 250.0) and values("seed_failing") == (0.0, 750.0)
    assert values(overrides={"reward.finish": -100.0}) == (-100.0, 150.0)
    assert feasible_values(MORTAL, MORTAL.resolve(), "agent", 0.5) == (0.0, 6.0)
    # cut off after 6 steps, but worth 1 / (1 − 0.99)
    assert feasible_values(MORTAL, MORTAL.resolve(), "agent", 0.99) == pytest.approx((0.0, 100.0))


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "values", "words"),
    [
        (
            "racing_lidar",
            {"rainbow.replay": 100, "rainbow.batch": 128},
            ["replay of 100", "batch of 128"],
        ),
        (
            "racing_lidar",
            {"rainbow.replay": 4_800, "rainbow.warm_up": 0, "rainbow.n_step": 5},
            ["37 steps of 128 rows", "rollout of 32", "5 steps", "4,864"],
        ),
        ("racing_lidar", {"rainbow.n_step": 2_000}, ["n_step=2000", "episode of 1000"]),
        ("racing_lidar", {"rainbow.warm_up": 300_000}, ["warm_up=300,000", "replay of 200,000"]),
        (
            "racing_lidar",
            {"train.total_agent_steps": 5_000},
            ["warm_up=5,000", "5,000 agent-steps"],
        ),
        (
            "racing_lidar",
            {"train.total_agent_steps": 4_000, "rainbow.warm_up": 0},
            ["4,096 agent-steps", "rainbow.rollout"],
        ),
        ("racing_lidar", {"policy.memory": "lstm"}, ["policy.memory is lstm"]),
        ("racing_lidar", {"rainbow.epsilon_unit": "days"}, ["epsilon_unit=days", "episodes"]),
        ("racing_lidar", {"rainbow.gamma": "0.9 -> 1.1"}, ["rainbow.gamma=0.9 -> 1.1", "0 to 1"]),
        ("racing_lidar", {"rainbow.kappa": 0.0}, ["rainbow.kappa=0.0"]),
        ("racing_lidar", {"rainbow.quantiles": 0}, ["rainbow.quantiles=0", "1 or more"]),
        ("pursuit", {"algorithm": "rainbow"}, ["pursuit", "continuous", "algorithm ppo"]),
        (
            "gym:ludus.examine.probes:CartPoleBlind-v0",
            {"algorithm": "rainbow", "rainbow.warm_up": 100_000},
            ["100,000"],
        ),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_with_the_reason(recipe, values, words):
    config = load_recipe(recipe)
    config.train.threads = 1
    for name, value in values.items():
        set_value(config, name, value)
    with pytest.raises(LudusError) as error:
        prepare(config)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_keys_that_only_keys_press_are_refused():
    def check(game, **actions):
        layout = SimpleNamespace(
            seen={},
            seats=[SimpleNamespace(role="fighter")],
            actions_of=lambda role: SimpleNamespace(**actions),
        )
        RainbowConfig().check_game(Config(game=game, algorithm="rainbow"), layout, None)

    with pytest.raises(LudusError, match="binary action 'jump'"):
        check("brawl", continuous=[], binary=["jump"], choices={})
    with pytest.raises(LudusError, match="asks for 2"):
        check("x", continuous=[], binary=[], choices={"a": [], "b": []})


# -- known answers ---------------------------------------------------------------------------------


def learn(env, iterations, **settings):
    torch.set_num_threads(1)
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
    iterate(algorithm, iterations)
    policy = algorithm.policies["agent"].eval()
    return lambda observation: policy.q_values(torch.tensor([[[observation]]]))[0, 0].tolist()


def test_constant_reward_is_worth_one_over_one_minus_gamma():
    """Episodes are cut after 20 steps: without bootstrapping from the last observation the value
    would be about 6."""
    # the observation is 0, so only biases learn, by about the learning rate at each update
    for n_step in (1, 5):
        q = learn("ProbeConstant", 50, n_step=n_step, learning_rate=0.1, target_every=5, iqn=False)
        assert max(q(0.0)) == pytest.approx(10.0, rel=0.05)


@pytest.mark.parametrize(
    "settings",
    [{}, dict(iqn=False, dueling=False, double=False), dict(prioritised=True, noisy=True)],
    ids=["iqn", "dqn", "all"],
)
def test_the_action_depends_on_the_observation(settings):
    q = learn("ProbeMatch", 40, **settings)
    assert (
        q(1.0)[1] == pytest.approx(1.0, abs=0.25)
        and q(1.0)[1] > q(1.0)[0] + 0.5
        and q(-1.0)[0] > q(-1.0)[1] + 0.5
    )


def test_credit_over_two_steps():
    q = learn("ProbeDelay", 40)
    assert max(q(1.0)) == pytest.approx(1.0, abs=0.1) and max(q(0.0)) == pytest.approx(0.9, abs=0.1)


@pytest.mark.slow
def test_cartpole_within_a_hundred_thousand_steps(tmp_path):
    config = load_recipe("gym:CartPole-v1")
    config.algorithm = "rainbow"
    run = ludus.train(config, run=tmp_path / "cartpole", quiet=True)
    assert api.evaluate(f"{run.path}@best", episodes=50)["metrics"]["return"]["mean"] >= 475


# -- runs ------------------------------------------------------------------------------------------


def pictures(**changes):
    return Config(
        game="tests.algorithms.test_seen:GAME",
        envs=4,
        algorithm="rainbow",
        policy=PolicyConfig(hidden=(8,)),
        learner=RainbowConfig(
            **{**SMALL, "n_step": 2, "prioritised": True, "noisy": True, "replay": 400, **changes}
        ),
        train=TrainConfig(total_agent_steps=900, threads=1),
        eval=EvalConfig(episodes=4, against=("self",)),
        checkpoint=CheckpointConfig(every_agent_steps=200, every_seconds=None, keep=9),
    )


def saved(run):
    newest = checkpoint.Checkpoint(run, checkpoint.steps(run)[-1])
    return {n: t for part in checkpoint.PARTS for n, t in newest.tensors(part).items()}


def test_resume_is_exact_replay_included_and_the_run_can_play(tmp_path):
    run = ludus.train(pictures(), run=tmp_path / "a", quiet=True)
    before = saved(run)
    assert "carried/agent/replay/seen/picture" in before and int(before["agent/count/steps"]) >= 900
    middle = checkpoint.steps(run)[2]
    api.resume(f"{run.path}@{middle}", quiet=True)
    after = saved(run)
    assert before.keys() == after.keys() and all(
        torch.equal(t, after[n]) for n, t in before.items()
    )
    assert 0 <= api.evaluate(run.path, episodes=4)["metrics"]["return"]["mean"] <= 9


def test_a_large_replay_is_filled_anew_after_a_resume(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAVED_BYTES", 0)
    run = ludus.train(pictures(), run=tmp_path / "a", quiet=True)
    assert not any("replay" in name for name in saved(run))
    steps = int(saved(run)["agent/count/steps"])
    api.resume(f"{run.path}@{checkpoint.steps(run)[2]}", quiet=True)
    after = saved(run)
    assert int(after["agent/count/steps"]) >= steps and all(
        bool(torch.isfinite(t.float()).all()) for t in after.values()
    )


def test_a_loaded_agent_acts(tmp_path):
    config = pictures()
    config.game, config.envs = "gym:CartPole-v1", 4
    config.train.total_agent_steps = 300
    run = ludus.train(config, run=tmp_path / "a", quiet=True)
    agent = ludus.load(run.path)
    action, state = agent.act(agent.policy.observation_norm.mean[:4].numpy(), greedy=True)
    assert action in (0, 1) and state.shape == (1, 0)
