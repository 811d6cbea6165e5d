"""What one role plays and learns with: its policy, optimizer, memory and rollout.
`ludus.algorithms.ppo` has the algorithm."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ludus.algorithms.graphs import compiled
from ludus.algorithms.next_keys import KeyPredictor
from ludus.algorithms.rollout import RoleRollout
from ludus.algorithms.strategy_metrics import StrategyMetrics
from ludus.config import Config, PPOConfig
from ludus.config.schedules import parse
from ludus.networks.heads import Actions, action_space, quadrature
from ludus.networks.policy import Policy
from ludus.networks.strategy import HISTORY
from ludus.protocols import Batch

SAMPLE = 512  # rows for diagnostics: enough for shares and ranks
OF_VALID_ROWS = ("explained_variance", "advantage_std", "value_mean", "return_mean")
OVERVIEW = (*OF_VALID_ROWS, "invalid_share", "valid_rows")
LOSS_SUMS = (
    "policy_loss",
    "value_loss",
    "entropy",
    "approx_kl",
    "clip_fraction",
    "auxiliary_loss",
    "next_keys_loss",
)
SUMS = (*LOSS_SUMS, "grad_norm", "clipped_updates", "updates")


def decide(
    policy: Policy,
    observation: Tensor,
    state: Tensor,
    starts: Tensor,
    mask: Tensor | None,
    seen: dict[str, Tensor],
) -> tuple[Actions, Tensor, Tensor, Tensor]:
    """Actions of one step [1, rows], their log-probabilities, the values in units of reward, and
    the memory after it."""
    output = policy(observation, state, starts, mask, seen)
    actions = output.distribution.sample()
    return (
        actions,
        output.distribution.log_prob(actions),
        policy.real_value(output.value),
        output.state,
    )


class Role:
    """A role's policy, optimizer, memory and rollout."""

    def __init__(self, name: str, agents: slice, batch: Batch, config: Config) -> None:
        self.name, self.agents, self.batch = name, agents, batch
        self.config: PPOConfig = config.learn.for_role(name)
        layout = batch.layout
        self.space = action_space(layout.actions_of(name), config.policy.state_dependent_std)
        self.num_agents = agents.stop - agents.start
        self.rows = batch.num_envs * self.num_agents
        scale = self.config.reward_scale
        self.policy = Policy(layout.observation, self.space, config.policy, layout.seen, scale).to(
            config.device
        )
        self.predictor: nn.Linear | None = None
        if self.config.auxiliary:
            self.predictor = nn.Linear(self.policy.actor.outputs, len(layout.observation)).to(
                config.device
            )
        self.key_predictor: KeyPredictor | None = None
        if self.config.next_keys and self.policy.strategy is not None:
            vector = self.policy.strategy.into.in_features
            self.key_predictor = KeyPredictor(vector + self.policy.entries, self.space.binary).to(
                config.device
            )
        of_critic = ("critic.", "value_head.") if self.policy.critic is not None else ()
        actor = [p for n, p in self.policy.named_parameters() if not n.startswith(of_critic)]
        for predictor in filter(None, (self.predictor, self.key_predictor)):
            actor += predictor.parameters()
        critic = [p for n, p in self.policy.named_parameters() if n.startswith(of_critic)]
        groups: list[dict[str, Any]] = [{"params": actor, "name": "actor"}] + (
            [{"params": critic, "name": "critic"}] if critic else []
        )
        on_gpu = config.device == "cuda"
        for group in groups:  # in a graph the learning rate must live on the device
            group["lr"] = torch.tensor(1e-3, device="cuda") if on_gpu else 1e-3
        self.optimizer = torch.optim.Adam(
            groups, eps=self.config.adam_epsilon, fused=True, capturable=on_gpu
        )
        self.parameters = actor + critic
        self.state = self.policy.initial_state(self.rows)
        self.start = torch.ones(self.rows, dtype=torch.bool, device=config.device)
        masked = batch.layout.sizes["num_masked"] if self.space.masked else 0
        self.bptt = config.learn.bptt or 1
        self.rollout = RoleRollout(
            config.learn.rollout,
            self.bptt,
            self.rows,
            self.policy,
            masked,
            config.device,
            opponent_keys=self.space.binary if self.key_predictor is not None else 0,
        )
        self.epochs_run = self.valid_rows = 0
        self.sums = torch.zeros(len(SUMS), device=config.device)
        self.pass_kl = torch.zeros((), device=config.device)
        self.no_valid_row = torch.zeros((), device=config.device)
        self.gamma, self.clip, self.entropy = (
            torch.zeros((), device=config.device) for _ in range(3)
        )
        self.overview = torch.zeros(len(OVERVIEW), device=config.device)
        self.entropy_matters = any(parse(self.config.entropy).values)
        self.decide = compiled(decide, config)
        quadrature(self.start.device)  # made before anything is compiled or captured
        encoder = self.policy.strategy
        self.strategy = StrategyMetrics(encoder, config.device) if encoder is not None else None

    def set_schedules(self, share: float) -> tuple[float, float]:
        """Scheduled values for this point of the budget, as tensors that a graph can read. Returns
        actor's and critic's rate."""
        c = self.config
        self.gamma.fill_(parse(c.gamma)(share))
        self.clip.fill_(parse(c.clip)(share))
        self.entropy.fill_(parse(c.entropy)(share))
        actor = parse(c.learning_rate)(share)
        critic = parse(c.value_learning_rate)(share) if c.value_learning_rate is not None else actor
        for group in self.optimizer.param_groups:
            rate = actor if group["name"] == "actor" else critic
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        return actor, critic

    def carried(self) -> dict[str, Tensor]:
        """What the next rollout needs of this one, as parts of the tensors that hold it: a
        checkpoint's business."""
        r = self.rollout
        frames = {
            f"seen/{n}": r.seen[n][-part.frames : -1]
            for n, part in r.parts.items()
            if part.frames > 1
        }
        return {"state": self.state, "start": self.start} | (
            {"age": r.age[-1], **frames} if frames else {}
        )

    def tensors(self) -> list[Tensor]:
        """Everything that an iteration changes and the next one needs."""
        optimizer = [t for values in self.optimizer.state.values() for t in values.values()]
        predictors = [
            p
            for module in (self.predictor, self.key_predictor)
            if module is not None
            for p in module.parameters()
        ]
        kept = [*self.rollout.seen.values(), self.rollout.age]
        return [
            *self.policy.parameters(),
            *self.policy.buffers(),
            *predictors,
            *optimizer,
            self.state,
            self.start,
            self.sums,
            *kept,
        ]

    def flat(self, name: str) -> Tensor:
        """A batch array of this role's agents as [rows, …], env after env."""
        return self.batch.tensor(name)[:, self.agents].flatten(0, 1)

    def observe(self, t: int) -> dict[str, Tensor]:
        """The observation into the rollout; its padding stays zero. Returns what is seen as bytes,
        [1, rows, …]."""
        r = self.rollout
        padded = r.observation[t].view(self.batch.num_envs, self.num_agents, -1)
        padded[..., : self.policy.entries].copy_(self.batch.tensor("observation")[:, self.agents])
        r.starts[t].copy_(self.start)
        if not r.seen:
            return {}
        # the last row of a rollout is the first of the next
        before = r.age[t - 1] if t else r.age[-1] - 1
        r.age[t] = torch.where(self.start, 0, before + 1)
        for name, part in r.parts.items():
            newest = (
                self.policy.remembered(r.observation[t])
                if name == HISTORY
                else self.flat(f"seen_{name}")
            )
            r.seen[name][t + part.frames - 1].copy_(newest)
        every = torch.arange(self.rows, device=self.start.device).unsqueeze(0)
        return r.stacks(torch.full_like(every, t), every)

    def sample(self) -> dict[str, Tensor]:
        """What some rows saw where the last chunk starts."""
        rows = torch.arange(min(SAMPLE, self.rows), device=self.start.device).unsqueeze(0)
        seen = self.rollout.stacks(
            torch.full_like(rows, self.rollout.reward.shape[0] - self.bptt), rows
        )
        return self.policy.normalised(seen)

    def act(self, t: int) -> None:
        """Observes, remembers, chooses, and writes the action into the batch."""
        r, batch = self.rollout, self.batch
        shape = (batch.num_envs, self.num_agents, -1)
        seen = self.observe(t)
        mask = None
        if self.space.masked:
            r.mask[t].view(shape).copy_(batch.tensor("action_mask")[:, self.agents])
            mask = r.mask[t : t + 1]
        if t % self.bptt == 0:
            r.state[t // self.bptt].copy_(self.state)
        observed = (r.observation[t : t + 1], self.state, r.starts[t : t + 1], mask, seen)
        actions, log_prob, value, state = self.decide(self.policy, *observed)
        r.log_prob[t], r.value[t] = log_prob[0], value[0]
        r.raw[t], r.binary[t], r.choices[t] = actions.raw[0], actions.binary[0], actions.choices[0]
        self.state.copy_(state)
        if self.space.continuous:
            batch.tensor("continuous")[:, self.agents, : self.space.continuous] = torch.tanh(
                r.raw[t]
            ).view(shape)
        if self.space.binary:
            batch.tensor("binary")[:, self.agents, : self.space.binary] = r.binary[t].view(shape)
        if self.space.choices:
            batch.tensor("choices")[:, self.agents, : len(self.space.choices)] = r.choices[t].view(
                shape
            )

    def see(self, t: int) -> None:
        """What the step brought. Rows of bots and opponents are not this policy's: they are not
        valid here."""
        r = self.rollout
        torch.mul(self.flat("reward"), self.config.reward_scale, out=r.reward[t])
        learns = self.flat("controller") == 0
        torch.logical_and(self.flat("valid"), learns, out=r.valid[t])
        torch.logical_and(self.flat("was_alive"), learns, out=r.valued[t])
        torch.logical_and(self.flat("was_alive"), ~self.flat("valid"), out=r.idle[t])
        if self.key_predictor is not None:  # whoever pressed them: the policy, a snapshot or a bot
            r.opponent_keys[t] = self.batch.tensor("binary")[:, self.agents].flip(1).flatten(0, 1)
        r.terminated[t] = self.flat("agent_terminated")
        r.truncated[t] = self.flat("agent_truncated")
        self.start.view(self.batch.num_envs, self.num_agents).copy_(
            self.batch.tensor("resetting").unsqueeze(1)
        )

    def look_ahead(self) -> None:
        """The value of the state the rollout ended in; memory and envs stay as they are."""
        r, last = self.rollout, self.rollout.reward.shape[0]
        seen = self.observe(last)
        output = self.policy(
            r.observation[last : last + 1], self.state, r.starts[last : last + 1], seen=seen
        )
        r.value[last] = self.policy.real_value(output.value[0])
