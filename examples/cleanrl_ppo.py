"""PPO in one file, in the manner of CleanRL, on any Ludus game with discrete actions as a
`gymnasium.vector.VectorEnv`.

    python examples/cleanrl_ppo.py --env ludus/racing_lidar-v0 --steps 300000

With same-step autoreset the value after a cut episode is that of its true last observation, in
info["final_obs"].
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import ludus.envs  # noqa: F401 (makes the games known to Gymnasium)

GAMMA, LAMBDA, CLIP, ENTROPY, LEARNING_RATE = 0.99, 0.95, 0.2, 0.01, 5e-4
STEPS, EPOCHS, MINIBATCHES = 64, 4, 4


def network(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
    )


def main(env_id: str, total: int, num_envs: int = 32, seed: int = 0) -> list[float]:
    """Trains; returns the mean return of the episodes finished in each iteration that finished
    any."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    envs = gymnasium.make_vec(env_id, num_envs=num_envs)
    entries, options = envs.single_observation_space.shape[0], envs.single_action_space.n
    actor, critic = network(entries, options), network(entries, 1)
    optimizer = torch.optim.Adam(
        [*actor.parameters(), *critic.parameters()], lr=LEARNING_RATE, eps=1e-5
    )

    shape = (STEPS, num_envs)
    observations = torch.zeros(*shape, entries)
    actions = torch.zeros(shape, dtype=torch.long)
    log_probs, rewards, values, following = (torch.zeros(shape) for _ in range(4))
    cut = torch.zeros(shape, dtype=torch.bool)
    observation = torch.from_numpy(envs.reset(seed=seed)[0])
    running, curve, begin = np.zeros(num_envs), [], time.perf_counter()

    for iteration in range(total // (STEPS * num_envs)):
        finished = []
        for t in range(STEPS):
            with torch.no_grad():
                policy = Categorical(logits=actor(observation))
                actions[t], observations[t] = policy.sample(), observation
                log_probs[t], values[t] = (
                    policy.log_prob(actions[t]),
                    critic(observation).squeeze(-1),
                )
            shown, reward, terminated, truncated, info = envs.step(actions[t].numpy())
            observation, rewards[t] = torch.from_numpy(shown), torch.from_numpy(reward).float()
            cut[t] = torch.from_numpy(terminated | truncated)
            after = shown.copy()
            for i in np.flatnonzero(truncated):
                after[i] = info["final_obs"][i]
            with torch.no_grad():
                following[t] = critic(torch.from_numpy(after)).squeeze(-1) * ~torch.from_numpy(
                    terminated
                )
            running += reward
            finished += running[terminated | truncated].tolist()
            running[terminated | truncated] = 0

        advantages, last = torch.zeros(shape), torch.zeros(num_envs)
        for t in reversed(range(STEPS)):
            last = rewards[t] + GAMMA * following[t] - values[t] + GAMMA * LAMBDA * last * ~cut[t]
            advantages[t] = last
        returns = (advantages + values).flatten()
        flat = (advantages.flatten() - advantages.mean()) / (advantages.std() + 1e-8)
        for _ in range(EPOCHS):
            for part in torch.randperm(STEPS * num_envs).chunk(MINIBATCHES):
                seen = observations.flatten(0, 1)[part]
                policy = Categorical(logits=actor(seen))
                ratio = (policy.log_prob(actions.flatten()[part]) - log_probs.flatten()[part]).exp()
                gain = torch.min(
                    ratio * flat[part], ratio.clamp(1 - CLIP, 1 + CLIP) * flat[part]
                ).mean()
                error = (critic(seen).squeeze(-1) - returns[part]).square().mean()
                optimizer.zero_grad()
                (-gain + 0.5 * error - ENTROPY * policy.entropy().mean()).backward()
                nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 0.5)
                optimizer.step()
        if finished:
            curve.append(float(np.mean(finished)))
            speed = (iteration + 1) * STEPS * num_envs / (time.perf_counter() - begin)
            print(
                f"{(iteration + 1) * STEPS * num_envs:>9,} steps   return {curve[-1]:>8.2f}   "
                f"{speed:,.0f} steps/s",
                flush=True,
            )
    envs.close()
    return curve


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", default="ludus/racing_lidar-v0")
    parser.add_argument("--steps", type=int, default=300_000)
    options = parser.parse_args()
    main(options.env, options.steps)
