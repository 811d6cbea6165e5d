"""Does a policy that was trained to predict its opponent's keys (policy.strategy.next_keys) do so
in matches it has not seen?

Beside the loss of its predictions stand two yardsticks: what it would cost to say how often each
key is pressed on the whole, and the loss with the strategy vector of a match against another
opponent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ludus.examine.strategy import SWITCHER, act, another_opponent, seat
from ludus.networks.next_keys import KeyPredictor
from ludus.networks.policy import Policy
from ludus.runs import checkpoint
from ludus.sim import Batch

NAME, PREDICTOR = "next_keys", "predictor."
MATCHES = 8  # at once against each opponent, four on either side
STEPS = 300


def predictors(reference: str, observation: Sequence[str]) -> dict[str, KeyPredictor]:
    """Role → what tells keys from the strategy vector and an observation; empty where the run
    learned without, with other observations than these, or before they were read."""
    saved = checkpoint.find_checkpoint(reference)
    if list(saved.manifest["layout"]["observation"]) != list(observation):
        return {}
    tensors = saved.tensors("policy")
    found: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        role, _, inside = name.partition(f"/{NAME}/")
        if inside.startswith(PREDICTOR):
            found.setdefault(role, {})[inside.removeprefix(PREDICTOR)] = tensor
    return {role: _predictor(weights) for role, weights in found.items()}


def _predictor(weights: dict[str, Tensor]) -> KeyPredictor:
    first, *_, last = (
        tensor for name, tensor in sorted(weights.items()) if name.endswith("weight")
    )
    out = KeyPredictor(first.shape[1], last.shape[0])
    out.load_state_dict(weights)
    return out


@torch.no_grad()
def foretold(
    make: Any,
    policy: Policy,
    predictor: KeyPredictor,
    opponents: Sequence[str],
    seed: int,
    steps: int = STEPS,
) -> Mapping[str, float]:
    """Nats per key, mean over all steps in which both sides acted. `make(num_envs)` gives a batch
    on held-out seeds."""
    batch = make(MATCHES * len(opponents))
    opponent = np.tile(np.repeat(np.arange(len(opponents)), MATCHES // 2), 2)
    players, halves = seat(batch, policy, opponents, opponent)
    first = batch.layout.seats[0].start
    others = (
        [another_opponent(opponent[half], seed) for half in halves] if len(opponents) > 1 else None
    )
    guesses: list[Tensor] = []
    strange: list[Tensor] = []
    pressed: list[Tensor] = []
    torch.manual_seed(seed)
    for _ in range(steps):
        vectors = [act(player, None).vector[0].float() for player in players]
        observed = batch.tensor("observation").clone()
        batch.step()
        for team, (half, vector) in enumerate(zip(halves, vectors, strict=True)):
            then = policy.prepared(observed[half, first + team])[:, : policy.entries]
            counts = (
                batch.tensor("valid")[half, first + team]
                & batch.tensor("was_alive")[half, first + 1 - team]
            )
            guesses.append(predictor(vector, then)[counts])
            pressed.append(batch.tensor("binary")[half, first + 1 - team][counts].float())
            if others is not None:
                strange.append(predictor(vector[others[team]], then)[counts])
    keys = torch.cat(pressed)
    out = {"keys_loss": loss(torch.cat(guesses), keys), "keys_guess": guess_loss(keys)}
    return out | ({"keys_loss_shuffled": loss(torch.cat(strange), keys)} if strange else {})


def loss(guess: Tensor, pressed: Tensor) -> float:
    """Cross-entropy in nats, mean over keys and rows."""
    return float(nn.functional.binary_cross_entropy_with_logits(guess, pressed))


def guess_loss(pressed: Tensor) -> float:
    """What it costs to know only how often each key is pressed."""
    share = pressed.mean(0).clamp(1e-6, 1 - 1e-6)
    return float(-(share * share.log() + (1 - share) * (1 - share).log()).mean())


def bots_of(batch: Batch) -> list[str]:
    """Opponents worth foretelling: a bot that stands still or rolls dice has nothing to
    foretell."""
    names = dict.fromkeys(n for table in batch.controllers.values() for n in table)
    dull = ("random", "still", "constant", SWITCHER)
    return [n for n in names if n not in dull] or [n for n in names if n != "still"]
