"""Makes the logs in others/: plain PPO and DQN loops that write what CleanRL's and RLlib's files
look like.

python tests/doctor/logs/make_others.py [NAME …]. One thread, a minute or so each. RLlib itself is
not needed: its names and the shape of its files are (old and new API stack).
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.utils.tensorboard import SummaryWriter

HERE = Path(__file__).parent / "others"
Episode = tuple[float, int]


class CleanRL:
    """TensorBoard events; episodes one by one."""

    def __init__(self, name: str) -> None:
        self.name, self.folder = name, Path(tempfile.mkdtemp())
        self.writer = SummaryWriter(str(self.folder))

    def episode(self, episode: Episode, step: int) -> None:
        self.writer.add_scalar("charts/episodic_return", episode[0], step)
        self.writer.add_scalar("charts/episodic_length", episode[1], step)

    def update(self, values: dict[str, float], step: int, episodes: list[Episode]) -> None:
        for name, value in values.items():
            if name in ("learning_rate", "SPS"):
                self.writer.add_scalar(f"charts/{name}", value, step)
            elif name not in ("total_loss", "grad_norm"):
                self.writer.add_scalar(f"losses/{name}", value, step)

    def close(self) -> None:
        self.writer.close()
        (events,) = self.folder.glob("*tfevents*")
        shutil.copy(events, HERE / f"{self.name}.tfevents")


class RLlib:
    """result.json: one nested object per iteration, means over the episodes that ended in it."""

    def __init__(self, name: str, new: bool) -> None:
        self.name, self.new, self.lines = name, new, list[str]()

    def episode(self, episode: Episode, step: int) -> None:
        pass

    def update(self, values: dict[str, float], step: int, episodes: list[Episode]) -> None:
        mean, length = (
            float(np.mean([e[i] for e in episodes])) if episodes else float("nan") for i in (0, 1)
        )
        learner = {
            "policy_loss": values["policy_loss"],
            "vf_loss": values["value_loss"],
            "entropy": values["entropy"],
            "vf_explained_var": values["explained_variance"],
            "total_loss": values["total_loss"],
        }
        if self.new:
            learner |= {
                "mean_kl_loss": values["approx_kl"],
                "gradients_default_optimizer_global_norm": values["grad_norm"],
            }
            row: dict[str, Any] = {
                "env_runners": {
                    "episode_return_mean": mean,
                    "episode_len_mean": length,
                    "num_env_steps_sampled_lifetime": step,
                },
                "learners": {
                    "default_policy": learner,
                    "__all_modules__": {"num_trainable_parameters": 9155},
                },
                "num_env_steps_sampled_lifetime": step,
            }
        else:
            learner |= {
                "kl": values["approx_kl"],
                "grad_gnorm": values["grad_norm"],
                "cur_lr": values["learning_rate"],
            }
            row = {
                "episode_reward_mean": mean,
                "episode_len_mean": length,
                "timesteps_total": step,
                "info": {"learner": {"default_policy": {"learner_stats": learner}}},
                "sampler_results": {
                    "episode_reward_mean": mean,
                    "hist_stats": {"episode_reward": [e[0] for e in episodes]},
                },
            }
        self.lines.append(
            json.dumps(
                {
                    **row,
                    "training_iteration": len(self.lines) + 1,
                    "time_total_s": values["seconds"],
                }
            )
        )

    def close(self) -> None:
        (HERE / f"{self.name}.json").write_text("\n".join(self.lines) + "\n")


def network(*sizes: int, last: float) -> nn.Sequential:
    linear = [nn.Linear(i, o) for i, o in pairwise(sizes)]
    for layer in linear:
        nn.init.orthogonal_(layer.weight, last if layer is linear[-1] else 2**0.5)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(
        *(part for layer in linear[:-1] for part in (layer, nn.Tanh())), linear[-1]
    )


def ppo(
    log: Any,
    env: str = "CartPole-v1",
    total: int = 20_000,
    seed: int = 1,
    rate: float = 1e-3,
    gamma: float = 0.99,
    lam: float = 0.95,
    steps: int = 256,
    minibatches: int = 8,
    epochs: int = 4,
    clip: float = 0.2,
    entropy: float = 0.0,
    scale: float = 1.0,
) -> None:
    """Four envs; rewards times `scale` for the learner, not for the log."""
    torch.manual_seed(seed)
    same_step = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}
    envs: Any = gymnasium.make_vec(env, 4, vectorization_mode="sync", vector_kwargs=same_step)
    inputs, actions = envs.single_observation_space.shape[0], envs.single_action_space.n
    actor, critic = (
        network(inputs, 64, 64, actions, last=0.01),
        network(inputs, 64, 64, 1, last=1.0),
    )
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=rate, eps=1e-5)
    seen, ended = torch.tensor(envs.reset(seed=seed)[0]), torch.zeros(4)
    returns, lengths, begin = np.zeros(4), np.zeros(4, int), time.time()
    for iteration in range(total // (4 * steps)):
        rows: dict[str, list[Tensor]] = {
            n: [] for n in ("seen", "action", "log_prob", "value", "reward", "starts")
        }
        episodes: list[Episode] = []
        for t in range(steps):
            with torch.no_grad():
                choice = Categorical(logits=actor(seen))
                action, value = choice.sample(), critic(seen)[:, 0]
            after, reward, terminated, truncated, _ = envs.step(action.numpy())
            stored = (
                seen,
                action,
                choice.log_prob(action),
                value,
                torch.tensor(reward * scale).float(),
                ended,
            )
            for name, x in zip(rows, stored, strict=True):
                rows[name].append(x)
            seen, ended = torch.tensor(after), torch.tensor(terminated | truncated).float()
            returns, lengths = returns + reward, lengths + 1
            for i in ended.nonzero()[:, 0].tolist():
                episodes.append((float(returns[i]), int(lengths[i])))
                log.episode(episodes[-1], 4 * (iteration * steps + t + 1))
                returns[i] = lengths[i] = 0
        data = {n: torch.stack(x) for n, x in rows.items()}
        advantage, running = torch.zeros(steps, 4), torch.zeros(4)
        with torch.no_grad():
            values = torch.cat([data["value"], critic(seen)[:, 0].unsqueeze(0)])
        goes_on = 1 - torch.cat([data["starts"][1:], ended.unsqueeze(0)])
        for t in reversed(range(steps)):
            running = (
                data["reward"][t]
                + gamma * goes_on[t] * values[t + 1]
                - values[t]
                + gamma * lam * goes_on[t] * running
            )
            advantage[t] = running
        data |= {"advantage": advantage, "target": advantage + data["value"]}
        flat = {n: x.flatten(0, 1) for n, x in data.items()}
        told = {}
        for _ in range(epochs):
            for part in torch.randperm(4 * steps).chunk(minibatches):
                told = step(
                    actor, critic, optimizer, {n: x[part] for n, x in flat.items()}, clip, entropy
                )
        error = flat["target"] - flat["value"]
        explained = 1 - float(error.var() / flat["target"].var().clamp(min=1e-12))
        done = 4 * steps * (iteration + 1)
        spent = time.time() - begin
        told |= {
            "explained_variance": explained,
            "learning_rate": rate,
            "SPS": done / spent,
            "seconds": spent,
        }
        log.update(told, done, episodes)


def step(
    actor: nn.Module,
    critic: nn.Module,
    optimizer: Any,
    part: dict[str, Tensor],
    clip: float,
    entropy: float,
) -> dict[str, float]:
    choice = Categorical(logits=actor(part["seen"]))
    log_ratio = choice.log_prob(part["action"]) - part["log_prob"]
    ratio, advantage = log_ratio.exp(), part["advantage"]
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy_loss = -torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()
    value_loss = 0.5 * (critic(part["seen"])[:, 0] - part["target"]).square().mean()
    spread = choice.entropy().mean()
    loss = policy_loss + 0.5 * value_loss - entropy * spread
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(
        [p for group in optimizer.param_groups for p in group["params"]], 0.5
    )
    optimizer.step()
    told = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": spread,
        "total_loss": loss,
        "grad_norm": norm,
        "approx_kl": (ratio - 1 - log_ratio).mean(),
        "clipfrac": ((ratio - 1).abs() > clip).float().mean(),
    }
    return {n: float(x.detach()) for n, x in told.items()}


def dqn(log: Any, total: int = 12_000, seed: int = 1, target_every: int = 500) -> None:
    """CartPole; epsilon from 1 to 0.05 over the first fifth. `target_every` 0: the target network
    stays as it was made."""
    torch.manual_seed(seed)
    random, env = np.random.default_rng(seed), gymnasium.make("CartPole-v1")
    online, target = network(4, 120, 84, 2, last=1.0), network(4, 120, 84, 2, last=1.0)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=5e-4)
    seen_at, after_at = np.zeros((total, 4), np.float32), np.zeros((total, 4), np.float32)
    action_at, end_at = np.zeros(total, np.int64), np.zeros(total, np.float32)
    seen, earned, begin = env.reset(seed=seed)[0], 0, time.time()
    for t in range(total):
        explore = random.random() < max(0.05, 1 - 0.95 * t / (0.2 * total))
        action = int(random.integers(2)) if explore else int(online(torch.tensor(seen)).argmax())
        after, _, terminated, truncated, _ = env.step(action)
        seen_at[t], after_at[t], action_at[t], end_at[t] = seen, after, action, terminated
        seen, earned = after, earned + 1  # CartPole pays 1 a step
        if terminated or truncated:
            log.episode((float(earned), earned), t)
            seen, earned = env.reset()[0], 0
        if t <= 1000:
            continue
        if t % 2 == 0:
            part = random.integers(0, t, 64)
            with torch.no_grad():
                wanted = 1 + 0.99 * target(torch.tensor(after_at[part])).amax(1) * (
                    1 - torch.tensor(end_at[part])
                )
            q = online(torch.tensor(seen_at[part])).gather(
                1, torch.tensor(action_at[part])[:, None]
            )[:, 0]
            loss = (wanted - q).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if t % 100 == 0:
                log.update(
                    {
                        "td_loss": float(loss.detach()),
                        "q_values": float(q.detach().mean()),
                        "SPS": t / (time.time() - begin),
                    },
                    t,
                    [],
                )
        if target_every and t % target_every == 0:
            target.load_state_dict(online.state_dict())


RUNS: dict[str, Callable[[str], tuple[Any, Callable[..., None], dict[str, Any]]]] = {
    "healthy_cleanrl_ppo": lambda n: (
        CleanRL(n),
        ppo,
        {"total": 40_000, "rate": 2.5e-3, "steps": 128, "minibatches": 4, "seed": 4},
    ),
    "healthy_cleanrl_dqn": lambda n: (CleanRL(n), dqn, {"total": 25_000, "seed": 3}),
    "healthy_rllib_old": lambda n: (RLlib(n, new=False), ppo, {"total": 30_000, "seed": 5}),
    "healthy_rllib_new": lambda n: (RLlib(n, new=True), ppo, {"total": 30_000, "seed": 6}),
    "sick_cleanrl_dqn_target_never": lambda n: (
        CleanRL(n),
        dqn,
        {"total": 9_000, "target_every": 0},
    ),
    "sick_rllib_old_reward_scale": lambda n: (RLlib(n, new=False), ppo, {"scale": 1e5}),
    "sick_rllib_new_entropy": lambda n: (RLlib(n, new=True), ppo, {"entropy": 2.0}),
}


def main() -> None:
    torch.set_num_threads(1)
    HERE.mkdir(exist_ok=True)
    for name in sys.argv[1:] or RUNS:
        begin = time.time()
        log, learn, settings = RUNS[name](name)
        learn(log, **settings)
        log.close()
        print(f"{name}: {time.time() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
