"""Several policies in one PettingZoo env, in the manner of RLlib: a mapping from agents to
policies, and `train()` that samples whole episodes, updates each policy from its own agents' steps
and returns a dict of results.

    python examples/rllib_style.py --iterations 60

Chasers and runners of `pursuit` each have a policy. The update is REINFORCE with a learned
baseline: enough to see that observations, dict actions, rewards and the deaths of agents arrive
where they belong.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.distributions import Bernoulli, Normal

from ludus.envs.pettingzoo import make

GAMMA, LEARNING_RATE, SPREAD = 0.98, 3e-3, 0.5


class SharedPolicy:
    """One network for all agents that are mapped to it: a number in [-1, 1] for each continuous
    entry, a chance for each key."""

    def __init__(self, entries: int, continuous: int, keys: int) -> None:
        self.continuous = continuous
        self.actor = nn.Sequential(
            nn.Linear(entries, 32), nn.Tanh(), nn.Linear(32, continuous + keys)
        )
        self.critic = nn.Sequential(nn.Linear(entries, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimizer = torch.optim.Adam(
            [*self.actor.parameters(), *self.critic.parameters()], lr=LEARNING_RATE
        )

    def distributions(self, observation: torch.Tensor) -> tuple[Normal, Bernoulli]:
        out = self.actor(observation)
        return Normal(torch.tanh(out[..., : self.continuous]), SPREAD), Bernoulli(
            logits=out[..., self.continuous :]
        )

    @torch.no_grad()
    def act(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        move, keys = (d.sample().numpy() for d in self.distributions(torch.from_numpy(observation)))
        return {"continuous": move.clip(-1, 1).astype(np.float32), "binary": keys.astype(np.int8)}

    def learn(
        self, observations: np.ndarray, actions: list[dict[str, np.ndarray]], returns: np.ndarray
    ) -> None:
        seen, target = torch.from_numpy(observations), torch.from_numpy(returns)
        move, keys = self.distributions(seen)
        log_prob = move.log_prob(torch.tensor(np.array([a["continuous"] for a in actions]))).sum(-1)
        log_prob = log_prob + keys.log_prob(
            torch.tensor(np.array([a["binary"] for a in actions]), dtype=torch.float32)
        ).sum(-1)
        value = self.critic(seen).squeeze(-1)
        advantage = target - value.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        self.optimizer.zero_grad()
        (-(log_prob * advantage).mean() + 0.5 * (target - value).square().mean()).backward()
        self.optimizer.step()


class Algorithm:
    def __init__(
        self,
        game: str,
        policy_of: Callable[[str], str],
        episodes: int = 8,
        seed: int = 0,
        **values: float,
    ) -> None:
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.env, self.policy_of, self.episodes = make(game, **values), policy_of, episodes
        self.policies: dict[str, SharedPolicy] = {}
        for agent in self.env.possible_agents:
            action = self.env.action_space(agent)
            sizes = (
                self.env.observation_space(agent).shape[0],
                action["continuous"].shape[0],
                action["binary"].n,
            )
            self.policies.setdefault(policy_of(agent), SharedPolicy(*sizes))
        self.env.reset(seed=seed)

    def train(self) -> dict[str, float]:
        """One iteration: mean return by policy."""
        steps: dict[str, list] = defaultdict(list)
        totals: dict[str, list[float]] = defaultdict(list)
        for _ in range(self.episodes):
            for agent, (seen, acted, rewards) in self.episode().items():
                returns = np.zeros(len(rewards), np.float32)
                later = 0.0
                for t in reversed(range(len(rewards))):
                    returns[t] = later = rewards[t] + GAMMA * later
                steps[self.policy_of(agent)].append((np.array(seen), acted, returns))
                totals[self.policy_of(agent)].append(sum(rewards))
        for name, parts in steps.items():
            seen, acted, returns = zip(*parts, strict=True)
            self.policies[name].learn(
                np.concatenate(seen), [a for part in acted for a in part], np.concatenate(returns)
            )
        return {
            f"{name}/episode_return_mean": float(np.mean(values)) for name, values in totals.items()
        }

    def episode(self) -> dict[str, tuple[list, list, list]]:
        """Observations, actions and rewards of every agent, for as long as it lived."""
        observations, _ = self.env.reset()
        trail: dict[str, tuple[list, list, list]] = {
            agent: ([], [], []) for agent in self.env.agents
        }
        while self.env.agents:
            actions = {
                agent: self.policies[self.policy_of(agent)].act(observations[agent])
                for agent in self.env.agents
            }
            shown, rewards, _, _, _ = self.env.step(actions)
            for agent, action in actions.items():
                for kept, new in zip(
                    trail[agent], (observations[agent], action, rewards[agent]), strict=True
                ):
                    kept.append(new)
            observations = shown
        return trail


def main(iterations: int, **settings: float) -> list[dict[str, float]]:
    algorithm = Algorithm("pursuit", policy_of=lambda agent: agent.split("_")[0], **settings)
    results = []
    for i in range(iterations):
        results.append(algorithm.train())
        if i % 5 == 0:
            print(
                i,
                "  ".join(f"{name} {value:.2f}" for name, value in results[-1].items()),
                flush=True,
            )
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--iterations", type=int, default=60)
    main(parser.parse_args().iterations)
