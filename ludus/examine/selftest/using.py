"""A policy in use: pictures and histories, evaluation, opponents, checkpoints, loaded agents. It
must play as it was trained."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ludus import api
from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO
from ludus.api import load, train
from ludus.config import CheckpointConfig, Config, EvalConfig, LogConfig, PolicyConfig, resolve
from ludus.examine.selftest import reference
from ludus.examine.selftest.core import close, holds, part, same
from ludus.examine.selftest.games import DIARY, RECORD
from ludus.examine.selftest.scene import ENVS, Session, disturb, nothing
from ludus.examine.selftest.truth import happened, length
from ludus.networks.heads import action_space
from ludus.networks.policy import Policy
from ludus.networks.strategy_config import StrategyConfig
from ludus.play.evaluate import measure
from ludus.play.player import Player
from ludus.runs import checkpoint
from ludus.sim import Batch
from ludus.sim.episode import FROZEN
from ludus.sim.game import Game
from ludus.sim.layout import Layout

PLAYER, EVALUATE = "ludus/play/player.py", "ludus/play/evaluate.py"
ROUNDS = 5  # episodes in every env: by then short ones have gone round once more than long ones
MEMORY: dict[str, Any] = dict(hidden=(8,), memory="lstm", memory_size=4)


def fresh_batch(s: Session, game: Game, envs: int = ENVS) -> Batch:
    return Batch(game, envs, seed=3, device=s.device)


def diary_policy(s: Session, layout: Layout, **settings: Any) -> Any:
    policy = Policy(
        layout.observation, action_space(layout, False), PolicyConfig(**settings), layout.seen
    ).to(s.device)
    disturb(policy)
    return policy


def greedy(
    space: Any, head: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The likeliest allowed action: push, press, pick."""
    press = (head[..., 1] > 0) & mask[..., 0]
    return (
        torch.tanh(head[..., 0]),
        press,
        torch.where(mask[..., 1:4], head[..., 2:5], -torch.inf).argmax(-1),
    )


@part("pictures", "ludus/algorithms/rollout.py")
def pictures_are_stacked_within_episodes(s: Session) -> None:
    """PPO acts on, and learns from, the last frames of the same episode, black before its start,
    also across rollouts; and the log-probability is that of a policy that sees them."""
    config = Config(
        game="record",
        envs=ENVS,
        device=s.device,
        policy=PolicyConfig(hidden=(8,)),
        learner=PPOConfig(rollout=12, minibatches=1),
    )
    config.train.dtype = "float32"
    ppo = PPO(fresh_batch(s, RECORD), resolve(config))
    role = ppo.roles["agent"]
    disturb(role.policy)
    p = reference.doubles(role.policy)
    for k in range(2):
        ppo.collect(nothing)
        r = role.rollout
        stack = r.stacks(*r.everything())["picture"].cpu()
        truth = happened(
            12 * (k + 1), ENVS, 2, {"pick": np.zeros((12 * (k + 1), ENVS, 2))}, mortal=1, sleeper=0
        )
        step = torch.from_numpy(truth.step[12 * k :]).flatten(1)
        for frame in range(3):
            back = 2 - frame
            same(
                f"frame {frame} of rollout {k + 1}",
                stack[:, :, frame, 0, 0],
                torch.where(step >= back, 20 * (step - back + 1), 0),
            )
        x = reference.normal(
            p, reference.padded(r.observation[:12, :, :5].cpu().double(), role.policy.inputs)
        )
        extra = (stack[:12].double().flatten(2) / 255) @ p[
            "actor.network.seen.picture.into.weight"
        ].T
        none = torch.zeros(role.rows, 0, dtype=torch.float64)
        features, _ = reference.trunk(
            p, "actor.", x, extra, config.policy, none, torch.zeros(12, role.rows, dtype=torch.bool)
        )
        head = (features @ p["action_head.weight"].T + p["action_head.bias"])[..., :3]
        told = reference.distribution(
            role.space,
            head,
            p["log_std"],
            r.mask[:12].cpu(),
            *(getattr(r, n).cpu() for n in ("raw", "binary", "choices")),
        )
        close(f"log-probabilities of rollout {k + 1}", r.log_prob, told.log_prob, 1e-3)
    ppo.learn(0.0)
    network: Any = role.policy.actor.network
    encoder = network.seen["picture"]
    gradient = encoder.into.weight.grad
    holds("what is seen gets no gradient", gradient is not None and bool(gradient.any()))


@part("pictures", "ludus/networks/encoders.py")
def a_player_sees_the_frames_of_its_episode(s: Session) -> None:
    """Outside training too, a policy sees the last frames of its own episode, and black before its
    start."""
    batch = fresh_batch(s, RECORD)
    player: Any = Player(diary_policy(s, batch.layout, hidden=(8,)), batch, slice(0, 2))
    shown: list[torch.Tensor] = []
    push = player.frames.push

    def watch(newest: Any, starts: Any) -> Any:
        out = push(newest, starts)
        shown.append(out["picture"].clone())
        return out

    player.frames.push = watch
    truth = happened(16, ENVS, 2, {"pick": np.zeros((16, ENVS, 2))}, mortal=1, sleeper=0)
    for t in range(16):
        player.act()
        step = torch.from_numpy(truth.step[t]).flatten()
        for frame in range(3):
            back = 2 - frame
            expected = torch.where(step >= back, 20 * (step - back + 1), 0)
            same(f"frame {frame} of step {t}", shown[-1][0, :, frame, 0, 0], expected)
        batch.step()


@part("history", "ludus/networks/strategy.py")
def histories_hold_the_same_episode_only(s: Session) -> None:
    """The strategy encoder sees the last steps of the same episode, normalised as observations are,
    the same while acting and while learning, and all of it learns."""
    strategy = StrategyConfig(
        size="small", entries="p", history=5, stride=2, layers=1, heads=2, width=8, vector=8
    )
    config = s.ppo_config(
        dict(hidden=(8,), network="strategy", network_settings=strategy), dict(epochs=1)
    )
    ppo = s.make_ppo(config)
    for _ in range(2):
        ppo.collect(nothing)
    role = ppo.roles["right"]
    r = role.rollout
    shown = r.stacks(*r.everything())["history"].squeeze(-2).cpu()
    kept = [DIARY.observation.index(n) for n in ("picked", "pressed", "pushed")]
    since = torch.full((role.rows,), 99)
    for t in range(r.starts.shape[0]):
        since = torch.where(r.starts[t].cpu(), 0, since + 1)
        for token, back in enumerate((4, 2, 0)):
            if t < back:
                continue
            there = since >= back
            expected = torch.where(there.unsqueeze(-1), r.observation[t - back, :, kept].cpu(), 0.0)
            close(
                f"what the history tells of {back} steps ago, row {t}",
                shown[t, :, token, :-1],
                expected,
                2e-3,
            )
            same("which steps there are", shown[t, :, token, -1] > 0, there)
    network: Any = role.policy.actor.network
    encoder = network.seen["history"]
    history = r.stacks(*r.everything())["history"]
    norm, told = (
        role.policy.observation_norm,
        role.policy.normalised({"history": history})["history"],
    )
    normal = ((history[..., :-1] - norm.mean[kept]) / (norm.var[kept] + 1e-8).sqrt()).clamp(-10, 10)
    close(
        "a history as the encoder gets it", told, torch.cat([normal, history[..., -1:]], -1), 1e-3
    )
    whole = (history[..., -1] > 0).all(2).squeeze(-1)
    apart = (encoder(history.flip(2)) - encoder(history)).detach()[whole].abs().max()
    holds("the order of the steps in a history does not matter", float(apart) > 1e-3)
    before = r.value.clone()
    ppo.recompute(role)
    close("values recomputed by learning", r.value, before, 1e-3)
    ppo.learn(0.0)
    for n, parameter in encoder.named_parameters():
        holds(
            f"{n} of the strategy encoder gets no gradient",
            parameter.grad is not None and bool(parameter.grad.any()),
        )


@part("evaluation", PLAYER)
def a_player_acts_as_the_policy_was_trained(s: Session) -> None:
    """In evaluation the observation is normalised, the memory carried and reset, masks kept: the
    likeliest action is the reference's."""
    for settings in (MEMORY, dict(hidden=(8, 8))):
        batch = fresh_batch(s, DIARY)
        policy = diary_policy(s, batch.layout, **settings).eval()
        config, p = PolicyConfig(**settings), reference.doubles(policy)
        player = Player(policy, batch, slice(1, 3), greedy=True)
        state = torch.zeros(2 * ENVS, policy.state_size, dtype=torch.float64)
        for t in range(20):
            seen = batch.tensor("observation")[:, 1:3].flatten(0, 1).cpu().double().unsqueeze(0)
            mask = batch.tensor("action_mask")[:, 1:3].flatten(0, 1).cpu()
            first = torch.from_numpy(batch.numpy("resetting")).repeat_interleave(2).unsqueeze(0)
            out = reference.policy(p, config, seen, state, first, 5)
            state = out.state
            player.act()
            push, press, pick = greedy(policy.space, out.head[0], mask)
            close(
                f"continuous actions of step {t}",
                batch.tensor("continuous")[:, 1:3].flatten(),
                push,
                1e-3,
            )
            same(f"keys of step {t}", batch.tensor("binary")[:, 1:3].flatten(), press)
            same(f"choices of step {t}", batch.tensor("choices")[:, 1:3].flatten(), pick)
            batch.step()


@part("evaluation", EVALUATE)
def evaluation_counts_whole_episodes(s: Session) -> None:
    """Evaluation plays whole episodes, the same number in every env, and tells their returns,
    lengths and goals as they were."""
    settings = MEMORY
    layout = fresh_batch(s, DIARY, 1).layout
    policies = {name: diary_policy(s, layout, **settings) for name in ("left", "right")}
    found = measure(
        lambda _: fresh_batch(s, DIARY), policies, "self", ROUNDS * ENVS, 5, greedy=True
    )
    lengths = np.array([length(e) for e in range(ENVS)] * ROUNDS)
    same("lengths of the left role", found["left/length"], lengths)
    same("goals of the left role", found["left/work"], lengths)
    for name, policy in policies.items():
        expected = _plain_returns(s, policy, PolicyConfig(**settings), name)
        close(f"returns of {name}", found[f"{name}/return"], expected, 1e-3)


def _plain_returns(s: Session, policy: Policy, config: PolicyConfig, role: str) -> np.ndarray:
    """The mean return over a role's agents of every episode, played by the reference."""
    agents = [0] if role == "left" else [1, 2]
    p, totals = reference.doubles(policy), np.zeros((ROUNDS, ENVS, len(agents)))
    for env in range(ENVS):
        for i, agent in enumerate(agents):
            for episode in range(ROUNDS):
                state = torch.zeros(1, policy.state_size, dtype=torch.float64)
                totals[episode, env, i] = _plain_episode(p, config, state, env, agent, episode)
    return totals.mean(-1).reshape(-1)


def _plain_episode(
    p: Any, config: PolicyConfig, state: torch.Tensor, env: int, agent: int, episode: int
) -> float:
    """Episode numbers count from the evaluation's own reset: the batch's first reset was number
    0."""
    total, last = 0.0, {"push": 0.0, "press": 0.0, "pick": 0.0}
    for step in range(length(env)):
        dead = agent == 2 and step >= 3
        if dead:
            break
        seen = [
            0.25 * env,
            0.5 * agent,
            0.125 * step,
            0.25 * ((episode + 1) % 8),
            last["push"],
            last["press"],
            0.5 * last["pick"],
        ]
        out = reference.policy(
            p,
            config,
            torch.tensor([[seen]], dtype=torch.float64),
            state,
            torch.zeros(1, 1, dtype=torch.bool),
            5,
        )
        state = out.state
        mask = torch.tensor([[step % 2 == 0, *(k != (step + agent) % 3 for k in range(3))]])
        push, press, pick = greedy(None, out.head[0], mask)
        last = {"push": float(push), "press": float(press), "pick": float(pick)}
        total += 2.0 * (
            1 + 0.25 * (step + 1) + last["press"] + 0.5 * last["pick"] - last["push"] ** 2
        )
    return total


@part("evaluation", "ludus/algorithms/rainbow/q_policy.py")
def a_value_policy_plays_by_its_averaged_weights(s: Session) -> None:
    """Outside training Rainbow plays the best allowed action by the averaged weights on the
    normalised observation, but for a share play_epsilon of random ones; its value is told in units
    of reward."""
    algorithm = s.make_rainbow(average=0.9)
    policy, c = algorithm.roles["agent"].policy.eval(), algorithm.config.learner
    policy.play_epsilon = 0.3
    p, rows = reference.doubles(policy), 4000
    seen, mask = (
        torch.randn(1, rows, 5, device=s.device),
        (torch.rand(1, rows, 3) < 0.7).to(s.device),
    )
    mask[..., 0] = True
    pictures = torch.randint(0, 255, (1, rows, 3, 2, 2), dtype=torch.uint8, device=s.device)
    output = policy(
        seen,
        policy.initial_state(rows),
        torch.zeros(1, rows, dtype=torch.bool, device=s.device),
        mask,
        {"picture": pictures},
    )
    middles = ((torch.arange(c.quantiles) + 0.5) / c.quantiles).expand(rows, -1)
    x = reference.normal(p, reference.padded(seen[0].cpu().double(), policy.inputs))
    q = reference.network(
        p, "averaged.", algorithm.config.policy, c, x, pictures[0].cpu(), middles
    ).mean(1)
    q = torch.where(mask[0].cpu(), q, -torch.inf)
    close("values", output.value[0], q.amax(-1) / c.reward_scale, 1e-3)
    clear = (q.topk(2).values.diff().abs() > 1e-4).squeeze(-1)
    best = q.argmax(-1)
    same("greedy choices", output.distribution.greedy().choices[0, :, 0].cpu()[clear], best[clear])
    sampled = output.distribution.sample().choices[0, :, 0].long().cpu()
    holds(
        "a sampled choice is forbidden", bool(mask[0].cpu().gather(1, sampled.unsqueeze(1)).all())
    )
    share = 1 - 1 / mask[0].sum(-1).double().cpu()
    close("share of random actions", (sampled != best).double().mean(), 0.3 * share.mean(), 0.03)


@part("opponents", PLAYER)
def frozen_opponents_act_for_their_agents_only(s: Session) -> None:
    """A frozen policy acts where the game hands agents to it, from an episode's start on; those
    rows teach nothing."""
    ppo = s.make_ppo(s.ppo_config(dict(hidden=(8,)), {}))
    batch, role = ppo.batch, ppo.roles["right"]
    frozen = diary_policy(s, batch.layout, hidden=(8,))
    with torch.no_grad():
        frozen.action_head.weight.zero_()
        frozen.action_head.bias[0], frozen.log_std[0] = 5.0, -5.0  # always pushes fully
    kept = {n: t.clone() for n, t in frozen.state_dict().items()}
    ppo.opponents = [Player(frozen, batch, role.agents, frozen=True)]
    batch.arrays["controller_next"][:2, role.agents] = FROZEN
    for _ in range(3):
        ppo.collect(nothing)
        ppo.learn(0.0)
        theirs = batch.numpy("controller")[:, role.agents] == FROZEN
        pushed = batch.numpy("action_push")[:, role.agents]
        holds("a frozen opponent does not act for its agents", bool((pushed[theirs] > 0.99).all()))
        holds(
            "a frozen opponent acts for agents that are not its own",
            not bool((pushed[~theirs] > 0.99).all()),
        )
        holds(
            "rows of a frozen opponent are learned from",
            not bool(role.rollout.valid[-1].view(ENVS, 2).cpu().numpy()[theirs].any()),
        )
    holds(
        "a frozen opponent plays in other than its envs",
        bool(theirs[:2].all()) and not bool(theirs[2:].any()),
    )
    for n, t in frozen.state_dict().items():
        same(f"{n} of a frozen opponent", t, kept[n])


class Trained(NamedTuple):
    """A short run: what makes its config, its budget, and what is evaluated."""

    config: Callable[[Session], Config]
    agent_steps: int
    watched: str


def _recurrent(s: Session) -> Config:
    return s.ppo_config(
        dict(MEMORY), dict(bptt=4, epochs=2, minibatches=2, learning_rate="0.02 -> 0")
    )


RUNS = {
    "ppo": Trained(_recurrent, 260, "eval/self/left/return"),
    "rainbow": Trained(lambda s: s.rainbow_config(prioritised=True), 300, "eval/self/return"),
}


def _run_config(s: Session, algorithm: str) -> Config:
    run = RUNS[algorithm]
    config = run.config(s)
    config.train.total_agent_steps, config.train.threads = run.agent_steps, 1
    config.eval = EvalConfig(episodes=4, against=("self",), every_agent_steps=100)
    config.checkpoint = CheckpointConfig(
        every_agent_steps=60, every_seconds=None, keep=20, best_metric=run.watched
    )
    config.log = LogConfig(tensorboard=False, diagnostics_every=0, replay_every=0)
    return config


@part("training loop", "ludus/training/loop.py")
def the_loop_counts_schedules_and_evaluates(s: Session) -> None:
    """A run counts valid agent-steps, hands the spent share of its budget to schedules, and
    evaluates when it is due."""
    if s.device != "cpu":
        return
    run = s.once(("run", "ppo"), partial(train_for, s, "ppo"))
    lines, before, evaluated = run.metrics(), 0, 0
    for i, line in enumerate(lines):
        steps = int(line["progress/agent_steps"])
        close(
            f"the learning rate of iteration {i + 1}",
            line["learner/left/lr"],
            0.02 * (1 - before / 260),
            1e-6,
        )
        same(
            f"steps of all envs until iteration {i + 1}",
            line["progress/env_steps"],
            12 * ENVS * (i + 1),
        )
        holds(
            f"{steps - before} agent-steps in iteration {i + 1}",
            0 < steps - before <= 12 * ENVS * 3 * 6 / 7,
        )
        due = steps // 100 > evaluated or i == len(lines) - 1
        holds(
            f"iteration {i + 1} at {steps} agent-steps {'has no' if due else 'has an'} evaluation",
            due == ("eval/self/left/return" in line),
        )
        evaluated, before = (steps // 100 if due else evaluated), steps
    holds(f"the run ended at {before} of 260 agent-steps", 260 <= before < 260 + 12 * ENVS * 3)


@part("checkpoints", "ludus/runs/checkpoint.py")
def a_resumed_run_goes_on_exactly(s: Session) -> None:
    """A run that is resumed from a checkpoint in its middle ends with the very same weights,
    statistics, memory and replay."""
    if s.device != "cpu":
        return  # bit for bit is promised on equal hardware only, and compiling twice is dear

    for algorithm in RUNS:
        run = s.once(("run", algorithm), partial(train_for, s, algorithm))
        before = _saved(run)
        middle = checkpoint.steps(run)[len(checkpoint.steps(run)) // 2]
        api.resume(f"{run.path}@{middle}", quiet=True)
        after = _saved(run)
        holds(
            f"the checkpoints of {algorithm} hold different things", before.keys() == after.keys()
        )
        for n, t in before.items():
            same(f"{n} of {algorithm} after resuming", after[n], t)


@part("checkpoints", "ludus/runs/load.py")
def a_loaded_agent_is_the_one_that_was_trained(s: Session) -> None:
    """A loaded agent has the weights and the normaliser of its run, and acts by them and by the
    memory it is handed."""
    if s.device != "cpu":
        return

    run = s.once(("run", "ppo"), partial(train_for, s, "ppo"))
    agent = load(run.path, role="right")
    saved = {n.removeprefix("right/"): t for n, t in _saved(run).items() if n.startswith("right/")}
    p = {n: t.double() if t.is_floating_point() else t for n, t in saved.items()}
    holds("the saved normaliser has seen nothing", float(p["observation_norm.count"]) > 10)
    config, memory = PolicyConfig(**MEMORY), None
    state = torch.zeros(3, 16, dtype=torch.float64)
    for t in range(3):
        seen, mask = np.random.default_rng(t).random((3, 7), np.float32), np.ones((3, 4), bool)
        action, memory = agent.act(seen, memory, mask=mask, greedy=True)
        out = reference.policy(
            p,
            config,
            torch.from_numpy(seen).double().unsqueeze(0),
            state,
            torch.zeros(1, 3, dtype=torch.bool),
            5,
        )
        state = out.state
        push, press, pick = greedy(None, out.head[0], torch.ones(3, 4, dtype=torch.bool))
        close(f"continuous actions of step {t}", action["continuous"][:, 0], push, 1e-3)
        same(f"choices of step {t}", action["choices"][:, 0], pick)
        same(f"keys of step {t}", action["binary"][:, 0], press)
        close(f"memory after step {t}", memory, state, 1e-3)


def train_for(s: Session, algorithm: str) -> Any:
    return train(_run_config(s, algorithm), run=Path(s.folder()) / algorithm, quiet=True)


def _saved(run: Any) -> dict[str, torch.Tensor]:
    saved = checkpoint.Checkpoint(run, checkpoint.steps(run)[-1])
    return {n: t for part in checkpoint.PARTS for n, t in saved.tensors(part).items()}


CHECKS = (
    pictures_are_stacked_within_episodes,
    a_player_sees_the_frames_of_its_episode,
    histories_hold_the_same_episode_only,
    a_player_acts_as_the_policy_was_trained,
    evaluation_counts_whole_episodes,
    a_value_policy_plays_by_its_averaged_weights,
    frozen_opponents_act_for_their_agents_only,
    the_loop_counts_schedules_and_evaluates,
    a_resumed_run_goes_on_exactly,
    a_loaded_agent_is_the_one_that_was_trained,
)
