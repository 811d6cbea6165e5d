"""Snapshots that act in one go must do what each would do alone, on any device."""

import torch

from ludus.algorithms.algorithm import make_algorithm
from ludus.batches import make_batch
from ludus.config import resolve
from ludus.networks.heads import Actions, Distribution
from ludus.play.player import Player
from ludus.play.together import Together
from ludus.recipes import load_recipe

BLOCKS, ENVS = 3, 4


def players_of(recipe: str, device: str, algorithm: str) -> list[list[Player]]:
    """For each role three players with weights of their own, in blocks of four envs."""
    config = load_recipe(recipe)
    config.device, config.envs, config.learner.minibatches, config.algorithm = (
        device,
        BLOCKS * ENVS,
        2,
        algorithm,
    )
    config = resolve(config)
    batch = make_batch(config, config.envs, 0)
    batch.reset()
    out = []
    for seats in batch.layout.seats:
        players = []
        for k in range(BLOCKS):
            torch.manual_seed(100 + k)
            policy = make_algorithm(batch, config).policies[seats.role].requires_grad_(False).eval()
            for parameter in policy.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))  # heads start near zero
            players.append(
                Player(
                    policy, batch, seats.agents, frozen=True, envs=slice(k * ENVS, (k + 1) * ENVS)
                )
            )
        out.append(players)
    return out


def decision(player: Player, starts: torch.Tensor) -> tuple[torch.Tensor, Actions]:
    """What it does on the first observation of every env. `starts` [1, rows]: where its memory
    begins anew."""
    rows = starts.shape[1]
    observation = player.mine("observation").reshape(1, rows, -1)
    mask = player.mine("action_mask").reshape(1, rows, -1) if player.policy.space.masked else None
    seen = player.frames.push(
        {n: player._newest(n, observation[0]) for n in player.policy.seen}, starts[0]
    )
    return player.decide(observation, starts, mask, seen)


@torch.no_grad()
def assert_alike(recipe: str, device: str, monkeypatch, algorithm: str = "ppo") -> None:
    monkeypatch.setattr(Distribution, "sample", Distribution.greedy)
    for players in players_of(recipe, device, algorithm):
        for player in players:
            player.state.normal_()
        remembered = [player.state.clone() for player in players]
        starts = [torch.rand(1, len(player.state), device=device) < 0.3 for player in players]
        alone = [decision(player, begins) for player, begins in zip(players, starts, strict=True)]
        together = Together(players)
        together.state.copy_(torch.cat(remembered))
        state, actions = decision(together, torch.cat(starts, 1))
        torch.testing.assert_close(state, torch.cat([s for s, _ in alone]), rtol=1e-3, atol=1e-4)
        for name, found in actions._asdict().items():
            torch.testing.assert_close(
                found, torch.cat([getattr(a, name) for _, a in alone], 1), rtol=1e-3, atol=1e-4
            )
        # what is copied into a player reaches its part of the stack, and no other
        before = {name: stack.clone() for name, stack in together.weights.items()}
        for tensor in players[1].policy.state_dict().values():
            tensor.fill_(7)
        for name, stack in together.weights.items():
            assert (stack[1] == 7).all() and torch.equal(stack[::2], before[name][::2])
        assert players[2].state.data_ptr() == together.state[2 * len(players[2].state) :].data_ptr()
