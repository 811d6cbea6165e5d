"""The settings of Rainbow, and which of them cannot work. Every component is a switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ludus.config.schedules import Scalar, parse
from ludus.errors import LudusError
from ludus.protocols import Layout

UNITS = ("steps", "episodes")


@dataclass(kw_only=True)
class RainbowConfig:
    """Rainbow with implicit quantiles. The defaults suit many envs that are cheap to step."""

    gamma: Scalar = 0.99
    """Discount per step."""
    learning_rate: Scalar = 1e-3
    """Step size of AdamW."""
    weight_decay: float = 0.01
    """Weight decay of AdamW."""
    adam_epsilon: float = 1e-8
    """Epsilon of AdamW."""
    max_grad_norm: float = 10.0
    """Gradients are scaled down to this norm; 0: never."""
    reward_scale: float = 0.1
    """Rewards are multiplied by this before learning; never clipped. Logged values are in units of
    reward again."""
    rollout: int = 32
    """Steps of every env between two rounds of updates."""
    batch: int = 128
    """Transitions of an update."""
    replay_ratio: float = 1.0
    """Replayed transitions per agent-step: 1 with a batch of 128 is an update every 128
    agent-steps."""
    replay: int = 200_000
    """Transitions that are kept, of all envs together."""
    warm_up: int = 5_000
    """Transitions that must be there before the first update."""
    n_step: int = 5
    """Steps of reward before the value of what follows is asked; 1: plain one-step targets."""
    double: bool = True
    """The learning network chooses the action whose value the target network tells; off: the target
    network does both."""
    dueling: bool = True
    """The value of the state and the advantages of actions have streams of their own."""
    prioritised: bool = False
    """Transitions with large errors are replayed more often; off: all equally often."""
    alpha: float = 0.6
    """How much more often (0: equally often; 1: in proportion to the error)."""
    beta: Scalar = "0.4 -> 1"
    """How far the loss makes up for it (1: fully)."""
    iqn: bool = True
    """Learn the distribution of returns by implicit quantiles; off: their expectation, as DQN
    does."""
    quantiles: int = 8
    """Quantiles per transition of the learning network; acting uses as many, evenly spaced."""
    target_quantiles: int = 8
    """Quantiles per transition of the target network."""
    cosines: int = 32
    """Cosines that describe a quantile to the network."""
    kappa: float = 1.0
    """Error up to which the Huber loss is a square."""
    stream: int = 64
    """Units of the hidden layer of each stream."""
    noisy: bool = False
    """Noise on the weights of the streams, learned with them, explores; with it, epsilon may be
    0."""
    noise: float = 0.5
    """The noise at the start, relative to the weights."""
    batch_norm: bool = False
    """Batch normalisation of the encoded observation; acting uses its running statistics."""
    target_every: int = 100
    """Updates between two moves of the target network."""
    target_tau: float = 1.0
    """How far it then moves towards the learning network: 1 copies it, 0.002 (with target_every 1)
    follows slowly."""
    epsilon_from: float = 1.0
    """Share of random actions at the start."""
    epsilon_to: float = 0.02
    """Share of random actions in the end."""
    epsilon_over: int | None = None
    """When the end is reached, in epsilon_unit (default: three tenths of the budget in agent-steps,
    else 300,000)."""
    epsilon_unit: str = "steps"
    """steps (agent-steps) or episodes, of all roles together."""
    epsilon_off: int | None = None
    """When random actions end altogether, in epsilon_unit (default: never)."""
    play_epsilon: float = 0.001
    """Share of random actions of sampled play: in evaluation, as an opponent, and when loaded."""
    average: float = 0.999
    """What plays outside training is a running average of the weights: this share of it stays at
    every update. 0: none."""


LEAST: dict[str, float] = {
    "weight_decay": 0,
    "adam_epsilon": 0,
    "max_grad_norm": 0,
    "rollout": 1,
    "batch": 1,
    "replay": 1,
    "warm_up": 0,
    "n_step": 1,
    "quantiles": 1,
    "target_quantiles": 1,
    "cosines": 1,
    "stream": 1,
    "noise": 0,
    "target_every": 1,
    "epsilon_over": 1,
    "epsilon_off": 1,
}
ABOVE_ZERO = ("reward_scale", "replay_ratio", "kappa")
SHARES: dict[str, tuple[float, float]] = {
    "gamma": (0, 1),
    "learning_rate": (0, 1),
    "alpha": (0, 1),
    "beta": (0, 1),
    "target_tau": (1e-9, 1),
    "epsilon_from": (0, 1),
    "epsilon_to": (0, 1),
    "play_epsilon": (0, 0.5),
    "average": (0, 0.999999),
}


def check_rainbow(r: RainbowConfig, total_agent_steps: int | None, memory: str) -> None:
    """Refuses numbers that cannot work together."""
    _check_each(r)
    if memory != "none":
        raise LudusError(
            f"rainbow replays single transitions, but policy.memory is {memory}: use policy.memory "
            "none, or algorithm ppo"
        )
    if r.replay < r.batch:
        raise LudusError(
            f"a replay of {r.replay:,} is smaller than a batch of {r.batch:,}: raise "
            "rainbow.replay or lower rainbow.batch"
        )
    if r.warm_up > r.replay:
        raise LudusError(
            f"rainbow.warm_up={r.warm_up:,} never comes with a replay of {r.replay:,}: lower it or "
            "raise rainbow.replay"
        )
    if total_agent_steps is not None and r.warm_up >= total_agent_steps:
        raise LudusError(
            f"rainbow.warm_up={r.warm_up:,} is not over when the budget of {total_agent_steps:,} "
            "agent-steps is spent: "
            f"there would be no update; lower it or raise train.total_agent_steps"
        )


def _check_each(r: RainbowConfig) -> None:
    values: dict[str, Any] = vars(r)
    for name, low in LEAST.items():
        if values[name] is not None and values[name] < low:
            raise LudusError(f"rainbow.{name}={values[name]} cannot work: use {low:g} or more")
    for name in ABOVE_ZERO:
        if values[name] <= 0:
            raise LudusError(f"rainbow.{name}={values[name]} cannot work: use more than 0")
    for name, (low, high) in SHARES.items():
        for value in parse(values[name], f"rainbow.{name}").values:
            if not low <= value <= high:
                raise LudusError(f"rainbow.{name}={values[name]} is outside {low:g} to {high:g}")
    if r.epsilon_unit not in UNITS:
        raise LudusError(
            f"rainbow.epsilon_unit={r.epsilon_unit} is unknown: use {' or '.join(UNITS)}"
        )
    if r.batch_norm and r.batch < 2:
        raise LudusError(
            f"rainbow.batch_norm needs several transitions but rainbow.batch={r.batch}: use 2 or "
            "more"
        )


def check_game(
    r: RainbowConfig, game: str, layout: Layout, max_steps: float | None, envs: int
) -> None:
    """Refuses a game that it cannot play: it chooses one of several actions, and looks n_step ahead
    within an episode."""
    for actions in (layout.actions_of(seats.role) for seats in layout.seats):
        others = [*actions.continuous, *actions.binary]
        if others:
            kind = "continuous" if actions.continuous else "binary"
            raise LudusError(
                f"rainbow chooses one of several actions, but {game} has the {kind} action "
                f"'{others[0]}' ({len(others)} such): use algorithm ppo"
            )
        if len(actions.choices) != 1:
            raise LudusError(
                f"rainbow makes one choice a step, but {game} asks for {len(actions.choices)} "
                f"({', '.join(actions.choices)}): use algorithm ppo"
            )
    if max_steps is not None and r.n_step > max_steps:
        raise LudusError(
            f"rainbow.n_step={r.n_step} is longer than an episode of {max_steps:g} steps: use "
            f"{max_steps:g} or less"
        )
    frames = max((part.frames for part in layout.seen.values()), default=1)
    for seats in layout.seats:
        rows = seats.count * seats.teams * envs
        need = (r.rollout + r.n_step + frames) * rows
        if r.replay < need:
            raise LudusError(
                f"role {seats.role}: a replay of {r.replay:,} is {r.replay // rows} steps of "
                f"{rows} rows, too few for a rollout of "
                f"{r.rollout}, {r.n_step} steps of reward and {frames} frames: raise "
                f"rainbow.replay to {need:,}, or use fewer envs"
            )
