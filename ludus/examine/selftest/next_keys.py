"""Foretelling the opponent's keys from the strategy vector and a later observation
(policy.strategy.next_keys), beside answers worked out from the rows.

Axes: T steps, R rows (env × side), K keys, F tokens of a history.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.ppo.ppo import PPO as Learner
from ludus.config import Config, PolicyConfig, resolve
from ludus.examine.selftest.core import close, holds, part, same
from ludus.examine.selftest.games import DUEL
from ludus.examine.selftest.scene import ENVS, ROLLOUT, SHARE, Session, disturb, nothing
from ludus.networks.strategy import strategy_encoder
from ludus.networks.strategy_config import StrategyConfig
from ludus.sim import Batch

KEYS_LOSS = "ludus/networks/next_keys.py"
TOKENS, WEIGHT = 3, 0.5
ENCODER = "actor.network.seen.history."
KEYS = [0, 1]  # where the observation shows what the other side pressed
# a history holds its entries in the order of their names: opponent_down, opponent_up
BY_NAME = [1, 0]


@dataclass
class KeyLesson:
    """A first rollout, from the start of all episodes, and an update with one pass over it."""

    keys: Tensor  # [T, R, K]
    observation: Tensor  # [T + 1, R, entries]
    valid: Tensor  # [T, R]
    starts: Tensor  # [T, R]
    later: Tensor | None  # [T, R]: the step whose keys are foretold
    encoder: Any  # as it was before the update
    predictor: Any
    metrics: dict[str, float]
    gradients: dict[str, Tensor]


def lesson(s: Session, weight: float = WEIGHT) -> KeyLesson:
    return s.once(("next keys", weight), lambda: _teach(s, weight))


def _teach(s: Session, weight: float) -> KeyLesson:
    config = Config(
        game="ludus.examine.selftest.games:DUEL",
        envs=ENVS,
        device=s.device,
        policy=PolicyConfig(
            hidden=(8,),
            normalise_observation=False,
            network="strategy",
            network_settings=StrategyConfig(
                size="small",
                history=TOKENS,
                stride=1,
                layers=1,
                heads=1,
                width=8,
                vector=6,
                next_keys=weight,
            ),
        ),
        learner=PPOConfig(
            rollout=ROLLOUT,
            minibatches=1,
            epochs=1,
            learning_rate=0.01,
            max_grad_norm=1e6,
        ),
    )
    config.train.dtype = "float32"
    config.train.total_agent_steps = 10_000
    torch.manual_seed(2)
    algorithm = Learner(Batch(DUEL, ENVS, seed=3, device=s.device), resolve(config))
    role = algorithm.roles["player"]
    brought = next(iter(role.auxiliaries), None)
    predictor: Any = brought.predictor if brought is not None else None
    # with and without a predictor the policy is the same
    for seed, module in ((3, role.policy), (4, predictor)):
        torch.manual_seed(seed)
        if module is not None:
            disturb(module)
    torch.manual_seed(5)
    algorithm.collect(nothing)
    r = role.rollout
    kept = {"observation": r.observation, "valid": r.valid, "starts": r.starts, **r.recorded}
    rows = {n: x.detach().cpu().clone() for n, x in kept.items()}
    before = copy.deepcopy((strategy_encoder(role.policy), predictor))
    assert before[0] is not None
    metrics = algorithm.learn(SHARE)
    named = dict(role.policy.named_parameters())
    if predictor is not None:
        named |= {f"key_predictor.{n}": p for n, p in predictor.named_parameters()}
    gradients = {n: p.grad.detach().cpu().clone() for n, p in named.items() if p.grad is not None}
    later = (r.prepared["later"] // role.rows).cpu().clone() if predictor is not None else None
    return KeyLesson(
        rows.get("opponent_keys", torch.empty(0)),
        rows["observation"][..., :3].float(),
        rows["valid"],
        rows["starts"][:ROLLOUT],
        later,
        before[0].cpu(),
        before[1].cpu() if before[1] is not None else None,
        metrics,
        gradients,
    )


def windows(mine: KeyLesson) -> Tensor:
    """The histories [T, R, F, 1, entries + 1] as they must be: the newest steps of the same
    episode, zeros before it."""
    steps, rows = mine.valid.shape
    out = torch.zeros(steps, rows, TOKENS, 1, 3)
    for t in range(steps):
        for row in range(rows):
            for back in range(TOKENS):
                if t - back < 0:
                    break
                out[t, row, TOKENS - 1 - back, 0, :2] = mine.observation[t - back, row, BY_NAME]
                out[t, row, TOKENS - 1 - back, 0, 2] = 1.0
                if mine.starts[t - back, row]:
                    break
    return out


def costs(mine: KeyLesson, vector: Tensor) -> Tensor:
    """Cross-entropy of a guess, −y log p − (1 − y) log(1 − p), mean over keys; the mean over rows
    that count, where a later step that does not count costs nothing."""
    assert mine.later is not None
    rows = torch.arange(mine.valid.shape[1]).expand_as(mine.later)
    guess = mine.predictor(vector, mine.observation[mine.later, rows])
    pressed = mine.observation[mine.later + 1, rows][..., KEYS]
    cost = -(
        pressed * torch.sigmoid(guess).log() + (1 - pressed) * torch.sigmoid(-guess).log()
    ).mean(-1)
    return (cost * mine.valid[mine.later, rows])[mine.valid].mean()


@part("opponent's keys", KEYS_LOSS)
def stores_the_keys_that_the_opponent_pressed(s: Session) -> None:
    """Beside each row stand the keys that the other side pressed in the same step, which the next
    observation shows."""
    mine = lesson(s)
    holds("no row counts", int(mine.valid.sum()) > 2 * ENVS)
    same(
        "keys of the opponent",
        mine.keys[mine.valid].float(),
        mine.observation[1:, :, KEYS][mine.valid],
    )


@part("opponent's keys", KEYS_LOSS)
def asks_for_later_steps_of_the_same_episode(s: Session) -> None:
    """For every row that counts a step is drawn from those that follow in its episode, near ones
    and far ones."""
    mine = lesson(s)
    assert mine.later is not None
    ahead = set()
    for t, row in mine.valid.nonzero().tolist():
        later = int(mine.later[t, row])
        holds(f"step {later} is asked for in step {t}", later >= t)
        holds(
            "a step of another episode is asked for", not mine.starts[t + 1 : later + 1, row].any()
        )
        ahead.add(later - t)
    holds(f"only steps {sorted(ahead)} ahead are asked for", len(ahead) > 2)


@part("opponent's keys", KEYS_LOSS)
def a_wrong_guess_costs_its_cross_entropy(s: Session) -> None:
    """The loss of the guesses is their cross-entropy, over rows that count, from the strategy
    vector of the newest steps and the observation of the step that is asked for."""
    mine = lesson(s)
    with torch.no_grad():
        expected = costs(mine, mine.encoder.recognise(windows(mine)).vector)
    close("next_keys_loss", mine.metrics["learner/player/next_keys_loss"], expected, 1e-3)


@part("opponent's keys", KEYS_LOSS)
def encoder_and_predictor_learn_from_the_keys(s: Session) -> None:
    """The predictor, and through the vector the encoder, get the gradient of that loss times
    policy.strategy.next_keys."""
    mine, without = lesson(s), lesson(s, 0.0)
    holds("without policy.strategy.next_keys something is foretold", without.predictor is None)
    named = dict(mine.encoder.named_parameters())
    names = ["embed.weight", "refine.0.weight"]
    loss = WEIGHT * costs(mine, mine.encoder.recognise(windows(mine)).vector)
    expected = torch.autograd.grad(
        loss, [mine.predictor.layers[0].weight, *(named[n] for n in names)]
    )
    close(
        "gradient of the key predictor",
        mine.gradients["key_predictor.layers.0.weight"],
        expected[0],
        1e-3,
    )
    for n, wanted in zip(names, expected[1:], strict=True):
        more = mine.gradients[ENCODER + n] - without.gradients[ENCODER + n]
        scale = wanted.abs().max().clamp(min=1e-9)
        close(
            f"gradient of {ENCODER}{n} from the keys, over the largest",
            more / scale,
            wanted / scale,
            1e-2,
        )


CHECKS = (
    stores_the_keys_that_the_opponent_pressed,
    asks_for_later_steps_of_the_same_episode,
    a_wrong_guess_costs_its_cross_entropy,
    encoder_and_predictor_learn_from_the_keys,
)
