"""The settings of Rainbow, and which of them cannot work. Every component is a switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Self

from ludus.config.algorithm import AlgorithmConfig
from ludus.config.limits import Above, AtLeast, Below, Between, OneOf
from ludus.config.schedules import Scalar
from ludus.errors import LudusError
from ludus.protocols import Layout

if TYPE_CHECKING:
    from ludus.config.experiment import Config


@dataclass(kw_only=True)
class RainbowConfig(AlgorithmConfig):
    """Rainbow with implicit quantiles. The defaults suit many envs that are cheap to step."""

    learning_rate: Annotated[Scalar, Between(0, 1)] = 1e-3
    """Step size of AdamW."""
    weight_decay: Annotated[float, AtLeast(0)] = 0.01
    """Weight decay of AdamW."""
    max_grad_norm: Annotated[float, AtLeast(0)] = 10.0
    """Gradients are scaled down to this norm; 0: never."""
    reward_scale: Annotated[float, Above(0)] = 0.1
    """Rewards are multiplied by this before learning; never clipped. Logged values are in units of
    reward again."""
    batch: Annotated[int, AtLeast(1)] = 128
    """Transitions of an update."""
    replay_ratio: Annotated[float, Above(0)] = 1.0
    """Replayed transitions per agent-step: 1 with a batch of 128 is an update every 128
    agent-steps."""
    replay: Annotated[int, AtLeast(1)] = 200_000
    """Transitions that are kept, of all envs together."""
    warm_up: Annotated[int, AtLeast(0)] = 5_000
    """Transitions that must be there before the first update."""
    n_step: Annotated[int, AtLeast(1)] = 5
    """Steps of reward before the value of what follows is asked; 1: plain one-step targets."""
    double: bool = True
    """The learning network chooses the action whose value the target network tells; off: the target
    network does both."""
    dueling: bool = True
    """The value of the state and the advantages of actions have streams of their own."""
    prioritised: bool = False
    """Transitions with large errors are replayed more often; off: all equally often."""
    alpha: Annotated[float, Between(0, 1)] = 0.6
    """How much more often (0: equally often; 1: in proportion to the error)."""
    beta: Annotated[Scalar, Between(0, 1)] = "0.4 -> 1"
    """How far the loss makes up for it (1: fully)."""
    iqn: bool = True
    """Learn the distribution of returns by implicit quantiles; off: their expectation, as DQN
    does."""
    quantiles: Annotated[int, AtLeast(1)] = 8
    """Quantiles per transition of the learning network; acting uses as many, evenly spaced."""
    target_quantiles: Annotated[int, AtLeast(1)] = 8
    """Quantiles per transition of the target network."""
    cosines: Annotated[int, AtLeast(1)] = 32
    """Cosines that describe a quantile to the network."""
    kappa: Annotated[float, Above(0)] = 1.0
    """Error up to which the Huber loss is a square."""
    stream: Annotated[int, AtLeast(1)] = 64
    """Units of the hidden layer of each stream."""
    noisy: bool = False
    """Noise on the weights of the streams, learned with them, explores; with it, epsilon may be
    0."""
    noise: Annotated[float, AtLeast(0)] = 0.5
    """The noise at the start, relative to the weights."""
    batch_norm: bool = False
    """Batch normalisation of the encoded observation; acting uses its running statistics."""
    target_every: Annotated[int, AtLeast(1)] = 100
    """Updates between two moves of the target network."""
    target_tau: Annotated[float, Between(1e-9, 1)] = 1.0
    """How far it then moves towards the learning network: 1 copies it, 0.002 (with target_every 1)
    follows slowly."""
    epsilon_from: Annotated[float, Between(0, 1)] = 1.0
    """Share of random actions at the start."""
    epsilon_to: Annotated[float, Between(0, 1)] = 0.02
    """Share of random actions in the end."""
    epsilon_over: Annotated[int | None, AtLeast(1)] = None
    """When the end is reached, in epsilon_unit (default: three tenths of the budget in agent-steps,
    else 300,000)."""
    epsilon_unit: Annotated[str, OneOf(("steps", "episodes"))] = "steps"
    """steps (agent-steps) or episodes, of all roles together."""
    epsilon_off: Annotated[int | None, AtLeast(1)] = None
    """When random actions end altogether, in epsilon_unit (default: never)."""
    play_epsilon: Annotated[float, Between(0, 0.5)] = 0.001
    """Share of random actions of sampled play: in evaluation, as an opponent, and when loaded."""
    average: Annotated[float, Below(1)] = 0.999
    """What plays outside training is a running average of the weights: this share of it stays at
    every update. 0: none."""

    def resolve(self, config: Config) -> None:
        if self.epsilon_over is None:
            budget = config.train.total_agent_steps
            self.epsilon_over = max(1, budget * 3 // 10) if budget is not None else 300_000

    def check(self, config: Config, rows: Mapping[str, int]) -> None:
        """Refuses settings that cannot work together. `rows`: agents of each role, in all envs."""
        if config.policy.memory != "none":
            raise LudusError(
                f"rainbow replays single transitions, but policy.memory is {config.policy.memory}: "
                "use policy.memory none, or algorithm ppo"
            )
        if self.batch_norm and self.batch < 2:
            raise LudusError(
                f"rainbow.batch_norm needs several transitions but rainbow.batch={self.batch}: use "
                "2 or more"
            )
        if self.replay < self.batch:
            raise LudusError(
                f"a replay of {self.replay:,} is smaller than a batch of {self.batch:,}: raise "
                "rainbow.replay or lower rainbow.batch"
            )
        if self.warm_up > self.replay:
            raise LudusError(
                f"rainbow.warm_up={self.warm_up:,} never comes with a replay of {self.replay:,}: "
                "lower it or raise rainbow.replay"
            )
        budget = config.train.total_agent_steps
        if budget is not None and self.warm_up >= budget:
            raise LudusError(
                f"rainbow.warm_up={self.warm_up:,} is not over when the budget of {budget:,} "
                "agent-steps is spent: there would be no update; lower it or raise "
                "train.total_agent_steps"
            )

    def check_game(self, config: Config, layout: Layout, longest: float | None) -> None:
        """Refuses a game that it cannot play: it chooses one of several actions, and looks n_step
        ahead within an episode. `longest`: steps of an episode."""
        for actions in (layout.actions_of(seats.role) for seats in layout.seats):
            others = [*actions.continuous, *actions.binary]
            if others:
                kind = "continuous" if actions.continuous else "binary"
                raise LudusError(
                    f"rainbow chooses one of several actions, but {config.game} has the {kind} "
                    f"action '{others[0]}' ({len(others)} such): use algorithm ppo"
                )
            if len(actions.choices) != 1:
                raise LudusError(
                    f"rainbow makes one choice a step, but {config.game} asks for "
                    f"{len(actions.choices)} ({', '.join(actions.choices)}): use algorithm ppo"
                )
        if longest is not None and self.n_step > longest:
            raise LudusError(
                f"rainbow.n_step={self.n_step} is longer than an episode of {longest:g} steps: use "
                f"{longest:g} or less"
            )
        frames = max((part.frames for part in layout.seen.values()), default=1)
        for seats in layout.seats:
            rows = seats.count * seats.teams * config.envs
            need = (self.rollout + self.n_step + frames) * rows
            if self.replay < need:
                raise LudusError(
                    f"role {seats.role}: a replay of {self.replay:,} is {self.replay // rows} "
                    f"steps of {rows} rows, too few for a rollout of {self.rollout}, {self.n_step} "
                    f"steps of reward and {frames} frames: raise rainbow.replay to {need:,}, or "
                    "use fewer envs"
                )

    def updates(self, agent_steps: int, rows: int) -> float:
        return agent_steps * self.replay_ratio / self.batch

    def kept_rows(self, rows: int) -> int:
        return self.replay

    def random_actions(self, agent_steps: float, episodes: float) -> float:
        at = agent_steps if self.epsilon_unit == "steps" else episodes
        if self.epsilon_off is not None and at >= self.epsilon_off:
            return 0.0
        assert self.epsilon_over is not None
        way = min(1.0, at / self.epsilon_over)
        return self.epsilon_from + (self.epsilon_to - self.epsilon_from) * way

    @property
    def explores_by_noise(self) -> bool:
        return self.noisy

    @property
    def before_first_update(self) -> int:
        return self.warm_up

    def small(self, steps: int) -> Self:
        steps = max(steps, self.n_step + 2)
        return replace(self, warm_up=0, rollout=steps, replay=min(self.replay, 50_000))

    def timed(self, envs: int) -> Self:
        return replace(self, warm_up=0, rollout=self.n_step + 2)

    def quick(self) -> Self:
        return replace(
            self, warm_up=min(self.warm_up, 2_000), epsilon_over=20_000, epsilon_unit="steps"
        )
