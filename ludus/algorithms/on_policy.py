"""Learning from what the policy of now has just played: roles with their rollouts, and what
collects them. PPO is built on it; so may be algorithms of your own.

Axes: T steps of the rollout, R rows (env × agent of the role), F observation entries. A row of time
t: observation_t, action_t → reward_t, terminated_t, truncated_t, valid_t → observation_{t+1}.
Nothing here reads a tensor back to the host inside a rollout: on CUDA it is one graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ludus.algorithms.actions import action_metrics
from ludus.algorithms.algorithm import (
    Evidence,
    Learner,
    Memory,
    Timed,
    checked_metrics,
    make_policy,
)
from ludus.algorithms.graphs import compiled
from ludus.algorithms.rollout import RoleRollout
from ludus.config import Config
from ludus.config.schedules import parse
from ludus.errors import LudusError
from ludus.networks.heads import Actions, action_space, quadrature
from ludus.networks.history import HISTORY
from ludus.networks.network import Auxiliary
from ludus.networks.policy import Output, Policy
from ludus.protocols import Batch, Layout

ADAM_EPSILON = 1e-5
SAMPLE = 512  # rows for diagnostics: enough for shares and ranks
LEARNED_FROM = (
    "observation",
    "raw",
    "binary",
    "choices",
    "log_prob",
    "value",
    "valid",
    "valued",
    "starts",
    "target",
)
"""Of a rollout, what an update reads row by row."""
COLUMNS = (*LEARNED_FROM, "mask", "advantage", "state", "policy")
"""Names that a rollout's own data and losses have."""


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
        self.config: Any = config.learner.for_role(name)
        self.num_agents = agents.stop - agents.start
        self.rows = batch.num_envs * self.num_agents
        policy = make_policy(batch.layout, config, name).to(config.device)
        assert isinstance(policy, Policy), "rollouts are made with a Policy"
        self.policy = policy
        self.space = self.policy.space
        self.auxiliaries = [a.to(config.device) for a in self.make_auxiliaries()]
        self.optimizer = self.make_optimizer(config.device)
        self.parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.state = self.policy.initial_state(self.rows)
        self.start = torch.ones(self.rows, dtype=torch.bool, device=config.device)
        self.chunk = self.chunk_of(config)
        masked = batch.layout.sizes["num_masked"] if self.space.masked else 0
        recorded = [a.record(batch, agents) for a in self.auxiliaries]
        self._refuse_names(recorded)
        self.rollout = RoleRollout(
            config.learner.rollout,
            self.chunk,
            self.rows,
            self.policy,
            masked,
            config.device,
            {name: x for part in recorded for name, x in part.items()},
        )
        self.updates = 0  # steps of the optimizer in the last `learn_role`
        self.optimizer.register_step_post_hook(self._count_update)
        self.gamma = torch.zeros((), device=config.device)
        self.decide = compiled(decide, config)
        quadrature(self.start.device)  # made before anything is compiled or captured
        self.network_metrics = self.policy.actor.network.metrics()

    @staticmethod
    def chunk_of(config: Config) -> int:
        """Steps of a chunk: the memory is kept where chunks start, and gradients flow no further
        back."""
        return config.learner.rollout

    def make_auxiliaries(self) -> list[Auxiliary]:
        """Losses beside the algorithm's own."""
        brought = self.policy.actor.network.auxiliary(self.policy)
        return [brought] if brought is not None else []

    def _refuse_names(self, recorded: Sequence[Mapping[str, Tensor]]) -> None:
        """Refuses auxiliaries that would write over each other."""
        names = [a.name for a in self.auxiliaries] + [name for part in recorded for name in part]
        for name in names:
            if names.count(name) > 1 or name in COLUMNS:
                raise LudusError(
                    f"the role {self.name}: '{name}' is the name of two things that are kept of a "
                    "rollout or of a loss: give the auxiliary, or what it records, another name"
                )

    def _count_update(self, *_: Any) -> None:
        """Where updates are replayed as graphs, the algorithm sets the number itself."""
        self.updates += 1

    def make_optimizer(self, device: str) -> torch.optim.Optimizer:
        """Adam, with the separate value network as a group of its own."""
        of_critic = ("critic.", "value_head.") if self.policy.critic is not None else ()
        actor = [p for n, p in self.policy.named_parameters() if not n.startswith(of_critic)]
        for auxiliary in self.auxiliaries:
            actor += auxiliary.parameters()
        critic = [p for n, p in self.policy.named_parameters() if n.startswith(of_critic)]
        groups: list[dict[str, Any]] = [{"params": actor, "name": "actor"}] + (
            [{"params": critic, "name": "critic"}] if critic else []
        )
        on_gpu = device == "cuda"
        for group in groups:  # in a graph the learning rate must live on the device
            group["lr"] = torch.tensor(1e-3, device="cuda") if on_gpu else 1e-3
        return torch.optim.Adam(groups, eps=ADAM_EPSILON, fused=True, capturable=on_gpu)

    def set_schedules(self, progress: float) -> float:
        """Scheduled values for this point of the budget, as tensors that a graph can read. Returns
        the learning rate."""
        self.gamma.fill_(parse(self.config.gamma)(progress))
        rate = parse(self.config.learning_rate)(progress)
        self.set_rates({"actor": rate, "critic": rate})
        return rate

    def set_rates(self, rates: dict[str, float]) -> None:
        """By the optimizer's groups."""
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rates[group.get("name", "actor")])
            else:
                group["lr"] = rates[group.get("name", "actor")]

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
        auxiliaries = [t for a in self.auxiliaries for t in (*a.parameters(), *a.buffers())]
        kept = [*self.rollout.seen.values(), self.rollout.age]
        return [
            *self.policy.parameters(),
            *self.policy.buffers(),
            *auxiliaries,
            *optimizer,
            self.state,
            self.start,
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
            torch.full_like(rows, self.rollout.reward.shape[0] - self.chunk), rows
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
        if t % self.chunk == 0:
            r.state[t // self.chunk].copy_(self.state)
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

    def record_step(self, t: int) -> None:
        """What the step brought. Rows of bots and opponents are not this policy's: they are not
        valid here."""
        r = self.rollout
        torch.mul(self.flat("reward"), self.config.reward_scale, out=r.reward[t])
        learns = self.flat("controller") == 0
        torch.logical_and(self.flat("valid"), learns, out=r.valid[t])
        torch.logical_and(self.flat("was_alive"), learns, out=r.valued[t])
        torch.logical_and(self.flat("was_alive"), ~self.flat("valid"), out=r.idle[t])
        for auxiliary in self.auxiliaries:
            for name, recorded in auxiliary.record(self.batch, self.agents).items():
                r.recorded[name][t] = recorded
        r.terminated[t] = self.flat("agent_terminated")
        r.truncated[t] = self.flat("agent_truncated")
        self.start.view(self.batch.num_envs, self.num_agents).copy_(
            self.batch.tensor("resetting").unsqueeze(1)
        )

    def bootstrap_value(self) -> None:
        """The value of the state the rollout ended in; memory and envs stay as they are."""
        r, last = self.rollout, self.rollout.reward.shape[0]
        seen = self.observe(last)
        output = self.policy(
            r.observation[last : last + 1], self.state, r.starts[last : last + 1], seen=seen
        )
        r.value[last] = self.policy.real_value(output.value[0])

    def output(self) -> Output:
        """What the policy as it is now says to every step of the rollout, from the memory at its
        start."""
        r = self.rollout
        steps = len(r.reward)
        times, rows = (x[:steps] for x in r.everything())
        return self.policy(
            r.observation[:steps],
            r.state[0],
            r.starts[:steps],
            r.mask[:steps] if self.space.masked else None,
            r.stacks(times, rows) if r.seen else None,
        )

    def auxiliary_losses(
        self, output: Output, rows: Mapping[str, Tensor], weight: Tensor
    ) -> list[Tensor]:
        """Those of the auxiliaries, in their order. `weight` sums to 1 over the rows that count."""
        return [auxiliary(output, rows, weight, self.rollout) for auxiliary in self.auxiliaries]

    def actions(self) -> Actions:
        """What was done in every step of the rollout."""
        return Actions(self.rollout.raw, self.rollout.binary, self.rollout.choices)


class OnPolicy(Learner):
    """Collects a rollout, one iteration at a time, and says what the trainer asks for."""

    role_class = Role
    roles: dict[str, Any]

    def __init__(self, batch: Batch, config: Config) -> None:
        super().__init__(batch, config)
        self.rollout_steps = config.learner.rollout

    @staticmethod
    def make_policy(layout: Layout, config: Config, role: str) -> Policy:
        space = action_space(layout.actions_of(role), config.policy.state_dependent_std)
        scale = config.learner.for_role(role).reward_scale
        return Policy(layout.observation, space, config.policy, layout.seen, scale)

    @classmethod
    def memory(cls, config: Config, layout: Layout, players: int) -> Memory:
        """Every role's `rollout`, and the `memory` that policies carry from step to step: those
        that learn, and opponents."""
        rollout = memory = 0
        for seats in layout.seats:
            policy = cls.make_policy(layout, config, seats.role)
            masked = layout.sizes["num_masked"] if policy.space.masked else 0
            rows = seats.count * seats.teams
            # the CPU stores some of it in other types
            where = "meta" if config.device == "cuda" else "cpu"
            chunk = cls.role_class.chunk_of(config)
            kept = RoleRollout(config.learner.rollout, chunk, rows, policy, masked, where, {})
            rollout += kept.nbytes
            memory += players * policy.initial_state(rows).nbytes
        return Memory({"rollout": rollout, "memory": memory})

    # -- what the trainer asks for -----------------------------------------------------------------

    def learned_steps(self) -> int:
        """Valid rows of the rollout that belong to learning agents."""
        return int(sum(int(role.rollout.valid.sum()) for role in self.roles.values()))

    def updates(self) -> int:
        """Steps of the optimizer in the last `learn`."""
        return sum(role.updates for role in self.roles.values())

    def action_metrics(self) -> dict[str, float]:
        out: dict[str, float] = {}
        for name, role in self.roles.items():
            r = role.rollout
            out |= action_metrics(
                self.batch.layout.actions_of(name), name, r.raw, r.binary, r.choices, r.valid
            )
        return out

    def buffer_bytes(self) -> int:
        return sum(role.rollout.nbytes for role in self.roles.values())

    def modules(self) -> dict[str, nn.Module]:
        return {
            f"{name}/{auxiliary.name}": auxiliary
            for name, role in self.roles.items()
            for auxiliary in role.auxiliaries
        }

    def evidence(self, name: str) -> Evidence:
        """Some rows of the step where the last chunk starts."""
        role = self.roles[name]
        r = role.rollout
        t, count = r.reward.shape[0] - role.chunk, min(SAMPLE, role.rows)
        rows = slice(0, count)
        mask = r.mask[t : t + 1, rows] if role.space.masked else None
        every = torch.arange(count, device=r.reward.device).unsqueeze(0)
        seen = r.stacks(torch.full_like(every, t), every)
        valid = r.valid.flatten()
        observed = r.observation[:-1, :, : role.policy.entries].flatten(0, 1).float()
        return Evidence(
            inputs=(
                r.observation[t : t + 1, rows],
                r.state[-1, rows],
                r.starts[t : t + 1, rows],
                mask,
                seen,
            ),
            observation=observed[valid] if bool(valid.any()) else observed,
            suspects={
                "observation": r.observation[..., : role.policy.entries],
                "reward": r.reward,
                "value": r.value,
                "log_prob": r.log_prob,
                "advantage": r.advantage,
            },
            decided=bool(valid.any()),
        )

    # -- playing -----------------------------------------------------------------------------------

    @torch.no_grad()
    def collect(self, timed: Timed) -> None:
        """One rollout. `timed(phase)` is a context that measures."""
        for role in self.roles.values():
            role.policy.eval()
        self.play_rollout(self.play, timed)

    def play(self, timed: Timed) -> None:
        for role in self.roles.values():
            role.rollout.start_rollout()
        for t in range(self.rollout_steps):
            with timed("act"), self.precision():
                for role in self.roles.values():
                    role.act(t)
                for opponent in self.opponents:
                    opponent.act()
            with timed("simulate"):
                self.batch.step()
            with timed("act"):
                for role in self.roles.values():
                    role.record_step(t)
        with timed("act"), self.precision():
            for role in self.roles.values():
                role.bootstrap_value()

    # -- learning ----------------------------------------------------------------------------------

    def learn(self, progress: float) -> dict[str, float]:
        metrics: dict[str, float] = {}
        network = self.config.policy.section
        for name, role in self.roles.items():
            role.policy.train()
            if role.network_metrics is not None or role.auxiliaries:  # no graph of nothing
                self.part(f"begin {name}", self.begin_update, role)()
            role.updates = 0
            told = checked_metrics(self.learn_role(role, progress), self.config.algorithm)
            if role.network_metrics is not None or role.policy.normalise_observation:
                self.part(f"end {name}", self.end_update, role)()
            metrics |= {f"learner/{name}/{key}": value for key, value in told.items()}
            if role.network_metrics is not None and bool(role.rollout.valid.any()):
                read = role.network_metrics.read()
                metrics |= {f"{network}/{name}/{key}": value for key, value in read.items()}
        return metrics

    @torch.no_grad()
    def begin_update(self, role: Any) -> None:
        """What networks and their losses want to know before the first update."""
        r = role.rollout
        if role.network_metrics is not None:
            role.network_metrics.before(role.sample())
        for auxiliary in role.auxiliaries:
            for name, prepared in auxiliary.prepare(r).items():
                if name not in r.prepared:  # once: a graph writes to the same place again
                    r.prepared[name] = torch.empty_like(prepared)
                r.prepared[name].copy_(prepared)

    @torch.no_grad()
    def end_update(self, role: Any) -> None:
        """Observation statistics move only after the updates: the same ones were used while acting
        and while learning."""
        r = role.rollout
        if role.network_metrics is not None:
            role.network_metrics.after(role.sample())
        if role.policy.normalise_observation:
            role.policy.observation_norm.update(
                r.observation[:-1].flatten(0, 1), r.valued.flatten()
            )
