"""PPO on real rollouts: what acting stored is what learning recomputes; chunks; masks; switches."""

import contextlib

import pytest
import torch

from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO
from ludus.config import Config, PolicyConfig, resolve
from ludus.evidence.diagnostics import Diagnostics
from ludus.networks.heads import Actions
from ludus.networks.policy import Policy
from ludus.play.player import Player
from ludus.sim import Batch
from ludus.sim.episode import FROZEN
from tests.sim.games import COUNTER, PURSUIT

NOTHING = contextlib.nullcontext


def make(game=PURSUIT, envs=6, memory="lstm", rollout=48, bptt=16, overrides=None, **learn):
    config = Config(
        game="pursuit",
        envs=envs,
        policy=PolicyConfig(hidden=(16,), memory=memory, memory_size=8),
        learner=PPOConfig(
            rollout=rollout, bptt=bptt if memory == "lstm" else 1, minibatches=1, **learn
        ),
    )
    torch.manual_seed(0)
    batch = Batch(game, envs, seed=3, overrides=overrides or {"max_steps": 20})
    return PPO(batch, resolve(config))


def collect(ppo):
    ppo.collect(lambda phase: NOTHING())
    return ppo


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_learning_recomputes_what_acting_stored(memory):
    """Log-probabilities, values and hidden states, over two rollouts with resets and deaths inside
    chunks."""
    ppo = collect(collect(make(memory=memory)))
    assert bool(ppo.roles["runner"].rollout.starts[1:].any())
    for role in ppo.roles.values():
        data = ppo.chunks(role)
        output = role.policy(data["observation"], data["state"][0], data["starts"])
        actions = Actions(data["raw"], data["binary"], data["choices"])
        assert torch.allclose(output.distribution.log_prob(actions), data["log_prob"], atol=1e-4)
        assert torch.allclose(role.policy.real_value(output.value), data["value"], atol=1e-4)


def test_metrics_of_values_are_in_units_of_the_game():
    """Values are learned from rewards times reward_scale; what is logged is not."""
    ppo = collect(make(reward_scale=0.02))
    metrics = ppo.learn(0.0)
    for name, role in ppo.roles.items():
        r = role.rollout
        for metric, scaled in (("return_mean", r.target), ("value_mean", r.value[:-1])):
            mean = (scaled * r.valid).sum() / r.valid.sum()
            assert metrics[f"learner/{name}/{metric}"] == pytest.approx(
                float(mean) / 0.02, rel=1e-4
            ), metric
        spread = r.advantage[r.valid].std(correction=0)
        assert metrics[f"learner/{name}/advantage_std"] == pytest.approx(
            float(spread) / 0.02, rel=1e-4
        )


def test_hidden_states_while_acting_equal_those_of_the_whole_sequence():
    ppo = collect(make())
    for role in ppo.roles.values():
        r = role.rollout
        state = r.state[0]
        for t in range(r.reward.shape[0]):
            if t % role.chunk == 0:
                assert torch.allclose(state, r.state[t // role.chunk], atol=1e-5)
            state = role.policy(r.observation[t : t + 1], state, r.starts[t : t + 1]).state
        assert torch.allclose(state, role.state, atol=1e-5)


def test_the_memory_is_fresh_exactly_at_episode_starts():
    """A reset row's observation is the first of an episode: the next action starts from zero, no
    other does."""
    ppo = make(bptt=1, overrides={"max_steps": 10})
    starts = 0
    for _ in range(2):
        collect(ppo)
        role = ppo.roles["chaser"]
        r = role.rollout
        for t in range(1, r.reward.shape[0]):
            fresh = role.policy(
                r.observation[t : t + 1], torch.zeros_like(r.state[t]), r.starts[t : t + 1]
            ).state
            carried = role.policy(r.observation[t : t + 1], r.state[t], r.starts[t : t + 1]).state
            same = torch.isclose(fresh, carried, atol=1e-6).all(-1)
            assert torch.equal(same, r.starts[t])
            starts += int(r.starts[t].sum())
    assert starts >= 6


def loss_of_everything(ppo, role, data):
    totals = [data[name].sum().float() for name in ("valid", "valued")]
    return ppo.loss(role, data, torch.arange(data["valid"].shape[1]), *totals, {})[0]


def gradients(ppo, role, bptt):
    """Of the loss over the whole rollout, cut into chunks of `bptt` steps (a multiple of those that
    were stored)."""
    r, stored = role.rollout, role.rollout.state
    role.optimizer.zero_grad()
    role.set_schedules(0.0)
    r.standardised.copy_(r.advantage)
    torch.add(r.advantage, r.value[:-1], out=r.target)
    kept = role.chunk
    r.state, role.chunk = stored[:: bptt // kept], bptt
    data = ppo.chunks(role)
    loss_of_everything(ppo, role, data).backward()
    r.state, role.chunk = stored, kept
    return {n: p.grad.clone() for n, p in role.policy.named_parameters() if p.grad is not None}


def test_chunked_gradients_equal_full_ones_when_nothing_is_cut():
    """Episodes of 15 steps plus their reset row are 16 rows: every chunk of 16 starts with an
    episode, so no gradient is lost."""
    ppo = collect(make(game=COUNTER, rollout=48, bptt=8, overrides={"max_steps": 15}, envs=4))
    role = ppo.roles["left"]
    assert role.rollout.starts[::16].all() and not role.rollout.starts[1:16].any()
    role.rollout.advantage.normal_()
    full, chunked, cut = (gradients(ppo, role, bptt) for bptt in (48, 16, 8))
    for name in full:
        assert torch.allclose(full[name], chunked[name], atol=1e-6), name
    assert any(not torch.allclose(full[n], cut[n], atol=1e-5) for n in full)


def test_invalid_rows_change_nothing():
    """Garbage in rows that are not valid leaves the loss and every gradient as they were."""
    ppo = collect(make(memory="none", bptt=1))
    role = ppo.roles["runner"]
    r = role.rollout
    assert 0 < r.valid.float().mean() < 1
    before = gradients(ppo, role, 1)
    bad = ~r.valid
    r.advantage[bad], r.log_prob[bad], r.raw[bad] = 1e6, -50.0, 3.0
    r.observation[:-1][bad] = 7.0
    after = gradients(ppo, role, 1)
    for name in before:
        assert torch.allclose(before[name], after[name], atol=1e-6), name


def test_rows_of_bots_are_not_learned_from():
    ppo = make(memory="none", bptt=1)
    ppo.batch.set_controller("runner", "flee")
    ppo.batch.reset()
    collect(ppo)
    assert not ppo.roles["runner"].rollout.valid.any() and ppo.roles["chaser"].rollout.valid.any()
    before = {n: p.clone() for n, p in ppo.roles["runner"].policy.named_parameters()}
    metrics = ppo.learn(0.0)
    assert (
        metrics["learner/runner/epochs_run"] == 0 and metrics["learner/runner/invalid_share"] == 1.0
    )
    for name in (
        "explained_variance",
        "advantage_std",
        "value_mean",
        "return_mean",
        "value_loss",
        "entropy",
    ):
        # absent, rather than a mean of nothing
        assert f"learner/runner/{name}" not in metrics and f"learner/chaser/{name}" in metrics
    assert {name.split("/")[1] for name in ppo.action_metrics()} == {"chaser"}
    assert all(torch.equal(p, before[n]) for n, p in ppo.roles["runner"].policy.named_parameters())


def test_every_parameter_learns():
    for memory in ("none", "lstm"):
        ppo = collect(make(memory=memory, bptt=16 if memory == "lstm" else 1))
        before = {
            r: {n: p.clone() for n, p in role.policy.named_parameters()}
            for r, role in ppo.roles.items()
        }
        ppo.learn(0.0)
        for r, role in ppo.roles.items():
            for n, p in role.policy.named_parameters():
                assert not torch.equal(p, before[r][n]), f"{r}/{n} did not move"


def test_kl_stop():
    ppo = collect(make(memory="none", bptt=1, epochs=10, learning_rate=0.05, target_kl=1e-4))
    assert ppo.learn(0.0)["learner/chaser/epochs_run"] < 10
    ppo = collect(make(memory="none", bptt=1, epochs=10, learning_rate=0.05))
    assert ppo.learn(0.0)["learner/chaser/epochs_run"] == 10


def test_roles_have_their_own_hyperparameters_and_schedules():
    ppo = make(
        memory="none",
        bptt=1,
        learning_rate="1e-3 -> 0",
        roles={"runner": {"learning_rate": 5e-4, "epochs": 1}},
    )
    collect(ppo)
    metrics = ppo.learn(0.5)
    assert (
        metrics["learner/chaser/lr"] == pytest.approx(5e-4) and metrics["learner/runner/lr"] == 5e-4
    )
    assert metrics["learner/chaser/epochs_run"] == 4 and metrics["learner/runner/epochs_run"] == 1


@pytest.mark.parametrize(
    "switch",
    [
        dict(value_clip=1e-5),
        dict(recompute_advantages=True),
        dict(auxiliary=0.5),
        dict(burn_in=4),
        dict(accumulate=2),
        dict(normalise_values=False),
        dict(value_learning_rate=1e-3),
    ],
    ids=str,
)
def test_switches_run_and_change_the_update(switch):
    def weights(**learn):
        ppo = collect(make(**learn))
        torch.manual_seed(5)
        ppo.learn(0.0)
        return torch.cat([p.flatten() for p in ppo.roles["chaser"].policy.parameters()])

    plain, changed = weights(), weights(**switch)
    if "accumulate" in switch:  # the same update, computed in parts
        assert torch.allclose(plain, changed, atol=1e-4)
    else:
        assert torch.isfinite(changed).all() and not torch.equal(plain, changed)


def test_recomputed_advantages_equal_the_first_ones_before_any_update():
    ppo = collect(make())
    role = ppo.roles["chaser"]
    from ludus.algorithms.advantage import generalised_advantages

    r = role.rollout
    role.set_schedules(0.0)
    generalised_advantages(
        r.reward, r.value, r.terminated, r.truncated, r.idle, 0.99, 0.95, r.advantage
    )
    before = r.advantage.clone()
    ppo.recompute(role)
    assert torch.allclose(before, r.advantage, atol=1e-4)


def test_frozen_opponents_act_for_their_envs_only_and_change_in_reset_rows():
    """A frozen policy plays the runners of half of the envs: its weights decide there, its rows are
    not learned from."""
    ppo = make(memory="none", bptt=1, envs=8, overrides={"max_steps": 12})
    batch, runner = ppo.batch, ppo.roles["runner"]
    frozen = Policy(batch.layout.observation, runner.space, ppo.config.policy)
    with torch.no_grad():
        frozen.action_head.weight.zero_()
        frozen.action_head.bias[0], frozen.log_std[0] = 5.0, -10.0  # always turns fully left
    hash_before = {n: t.clone() for n, t in frozen.state_dict().items()}
    ppo.opponents = [Player(frozen, batch, runner.agents, frozen=True)]
    batch["controller_next"][:4, runner.agents] = FROZEN
    seen = []
    for _ in range(3):
        ppo.collect(lambda phase: NOTHING())
        ppo.learn(0.0)
        theirs = batch.numpy("controller")[:, runner.agents] == FROZEN
        seen.append(theirs.mean())
        turned = batch["action_turn"][:, runner.agents]
        assert (turned[theirs] > 0.999).all() and not (turned[~theirs] > 0.999).all()
        last = runner.rollout.valid[-1].view(8, -1).numpy()
        assert not last[theirs].any()
    assert seen[-1] == 0.5
    assert all(torch.equal(t, hash_before[n]) for n, t in frozen.state_dict().items())


def test_a_role_with_learning_rate_zero_is_left_as_it_is():
    ppo = collect(make(memory="none", epochs=2, roles={"runner": {"learning_rate": 0.0}}))
    before = {
        name: [p.detach().clone() for p in role.parameters] for name, role in ppo.roles.items()
    }
    metrics = ppo.learn(0.0)
    assert metrics["learner/runner/epochs_run"] == 0 and metrics["learner/chaser/epochs_run"] == 2
    assert not all(
        torch.equal(a, b)
        for a, b in zip(before["chaser"], ppo.roles["chaser"].parameters, strict=True)
    )
    # the value head is rescaled with the statistics of its targets, so only the rest can be
    # compared
    value_head = {id(p) for p in ppo.roles["runner"].policy.value_head.parameters()}
    for a, b in zip(before["runner"], ppo.roles["runner"].parameters, strict=True):
        assert id(b) in value_head or torch.equal(a, b)


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_recomputed_activations_give_the_same_gradients(memory):
    gradients = []
    for again in (False, True):
        ppo = collect(make(memory=memory, recompute_activations=again))
        role = ppo.roles["chaser"]
        role.set_schedules(0.0)
        ppo.prepare(role)
        data = ppo.chunks(role)
        loss_of_everything(ppo, role, data).backward()
        gradients.append([p.grad.clone() for p in role.parameters])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_nothing_is_said_of_gradients_where_only_values_were_learned():
    """The runners are idle throughout: their policy gets no gradient, which is no fault of any
    module."""
    ppo = collect(make(memory="none", bptt=1))
    rollout = ppo.roles["runner"].rollout
    rollout.idle |= rollout.valid
    rollout.valid.zero_()
    diagnostics = Diagnostics(ppo, ppo.batch.layout)
    diagnostics.before()
    metrics = ppo.learn(0.0)
    assert metrics["learner/runner/epochs_run"] > 0 and metrics["learner/runner/value_loss"] > 0
    modules = {name.split("/")[1] for name in diagnostics.after() if name.startswith("module/")}
    assert modules == {"chaser"}
