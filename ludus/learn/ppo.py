"""Proximal policy optimisation, for feed-forward and recurrent policies, one or many roles.

From top to bottom: `Role` holds what one role learns with, `RoleRollout` what it saw, `PPO.collect` plays, `PPO.learn`
updates. Where this differs from the paper (Schulman et al. 2017): advantages are standardised over the whole rollout of a
role, value targets are normalised with a head that is rescaled when their statistics move, minibatches are whole chunks of
`bptt` steps that start from the stored memory, and passes stop early when the policy has moved `target_kl`.

Axes: T steps of the rollout, R rows (env × agent of the role), F observation entries; L steps of a chunk, C chunks.
A row of time t: observation_t, action_t → reward_t, terminated_t, truncated_t, valid_t → observation_{t+1}.
Nothing here reads a tensor back to the host inside a rollout or an update, except one number per pass for `target_kl`: on
CUDA the rollout, the advantages and each pass are graphs, captured once and replayed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ludus.config import Config, PPOConfig
from ludus.curriculum.schedules import parse
from ludus.learn.actions import action_metrics
from ludus.learn.advantage import explained_variance, generalised_advantages, masked_mean, standardise
from ludus.learn.algorithm import Evidence, Timed
from ludus.learn.strategy_metrics import StrategyMetrics
from ludus.policies.encoders import shaped, steps_back, stored_as
from ludus.policies.heads import Actions, action_space, quadrature
from ludus.policies.player import Player
from ludus.policies.policy import Policy
from ludus.policies.strategy import HISTORY
from ludus.training.graphs import Graphs, compiled

SAMPLE = 512  # rows for diagnostics: enough for shares and ranks
OVERVIEW = ("explained_variance", "advantage_std", "value_mean", "return_mean", "invalid_share")
LOSS_SUMS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "auxiliary_loss", "next_keys_loss")
SUMS = (*LOSS_SUMS, "grad_norm", "clipped_updates", "updates")


class RoleRollout:
    """What the agents of one role saw and did, over T steps. The last observation and value are the bootstrap's.

    The memory is kept where chunks start. Pictures and histories are kept once, not once per frame of a stack: `seen` has
    frames − 1 of them from before the rollout, and `age` tells how many belong to the episode. On CUDA observations are kept in half precision, and acted on as they are kept.
    """

    def __init__(self, steps: int, bptt: int, rows: int, policy: Policy, mask: int, device: str, opponent_keys: int = 0) -> None:
        entries, space, state_size = policy.inputs, policy.space, policy.state_size
        half = device != "cpu"

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(*shape, dtype=dtype, device=device)

        self.observation = zeros(steps + 1, rows, entries, dtype=torch.float16 if half else torch.float32)
        self.mask = zeros(steps + 1, rows, mask, dtype=torch.bool)
        self.raw = zeros(steps, rows, space.continuous)
        self.binary = zeros(steps, rows, space.binary, dtype=torch.int8)
        self.choices = zeros(steps, rows, len(space.choices), dtype=torch.int32)
        self.opponent_keys = zeros(steps, rows, opponent_keys, dtype=torch.int8)
        self.log_prob = zeros(steps, rows)
        self.value = zeros(steps + 1, rows)
        self.reward = zeros(steps, rows)
        self.advantage = zeros(steps, rows)
        self.standardised = zeros(steps, rows)
        self.target = zeros(steps, rows)
        self.valid = zeros(steps, rows, dtype=torch.bool)
        self.idle = zeros(steps, rows, dtype=torch.bool)
        self.terminated = zeros(steps, rows, dtype=torch.bool)
        self.truncated = zeros(steps, rows, dtype=torch.bool)
        self.starts = zeros(steps + 1, rows, dtype=torch.bool)
        self.state = zeros(steps // bptt, rows, state_size)
        self.age = zeros(steps + 1, rows, dtype=torch.int32)
        self.parts = policy.seen
        self.seen = {
            name: zeros(steps + part.frames, rows, part.height, part.width, dtype=stored_as(part, device))
            for name, part in self.parts.items()
        }

    def turn_over(self) -> None:
        """Before a new rollout: the frames that its first steps look back to."""
        for name, part in self.parts.items():
            if part.frames > 1:
                self.seen[name][: part.frames - 1] = self.seen[name][-part.frames : -1].clone()

    def everything(self) -> tuple[Tensor, Tensor]:
        """Times and rows of the whole rollout, for `stacks`."""
        shape = self.value.shape
        times = torch.arange(shape[0], device=self.value.device).unsqueeze(1).expand(shape)
        return times, torch.arange(shape[1], device=self.value.device).expand(shape)

    def stacks(self, times: Tensor, rows: Tensor) -> dict[str, Tensor]:
        """What was seen at `times` by `rows` (both [L, C]), with the frames before it in the same episode."""
        out = {}
        count = self.reward.shape[1]
        age = self.age.flatten()[times * count + rows]
        for name, part in self.parts.items():
            ago = steps_back(part)
            back = torch.arange(ago.start, ago.stop, ago.step, device=times.device)
            newest = times.unsqueeze(-1) + part.frames - 1
            stack = self.seen[name].flatten(0, 1)[(newest - back) * count + rows.unsqueeze(-1)]
            if part.frames > 1:
                stack = torch.where((age.unsqueeze(-1) >= back)[..., None, None], stack, 0)
            out[name] = shaped(stack, part)
        return out

    @property
    def nbytes(self) -> int:
        tensors = [t for t in vars(self).values() if isinstance(t, Tensor)] + list(self.seen.values())
        return sum(t.numel() * t.element_size() for t in tensors)


def decide(
    policy: Policy, observation: Tensor, state: Tensor, starts: Tensor, mask: Tensor | None, seen: dict[str, Tensor]
) -> tuple[Actions, Tensor, Tensor, Tensor]:
    """Actions of one step [1, rows], their log-probabilities, the values in units of reward, and the memory after it."""
    output = policy(observation, state, starts, mask, seen)
    actions = output.distribution.sample()
    return actions, output.distribution.log_prob(actions), policy.real_value(output.value), output.state


class Role:
    """A role's policy, optimizer, memory and rollout."""

    def __init__(self, name: str, agents: slice, batch: Any, config: Config) -> None:
        self.name, self.agents, self.batch = name, agents, batch
        self.config: PPOConfig = config.learn.for_role(name)
        layout = batch.layout
        self.space = action_space(layout.actions_of(name), config.policy.state_dependent_std)
        self.num_agents = agents.stop - agents.start
        self.rows = batch.num_envs * self.num_agents
        self.policy = Policy(layout.observation, self.space, config.policy, layout.seen).to(config.device)
        self.predictor: nn.Linear | None = None
        if self.config.auxiliary:
            self.predictor = nn.Linear(self.policy.actor.outputs, len(layout.observation)).to(config.device)
        self.key_predictor: nn.Linear | None = None
        if self.config.next_keys and self.policy.strategy is not None:
            vector = self.policy.strategy.into.in_features
            self.key_predictor = nn.Linear(vector, self.space.binary).to(config.device)
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
        self.optimizer = torch.optim.Adam(groups, eps=self.config.adam_epsilon, fused=True, capturable=on_gpu)
        self.parameters = actor + critic
        self.state = self.policy.initial_state(self.rows)
        self.start = torch.ones(self.rows, dtype=torch.bool, device=config.device)
        masked = batch.layout.sizes["num_masked"] if self.space.masked else 0
        self.bptt = config.learn.bptt or 1
        self.rollout = RoleRollout(
            config.learn.rollout, self.bptt, self.rows, self.policy, masked, config.device,
            opponent_keys=self.space.binary if self.key_predictor is not None else 0,
        )  # fmt: skip
        self.epochs_run = 0
        self.sums = torch.zeros(len(SUMS), device=config.device)
        self.pass_kl = torch.zeros((), device=config.device)
        self.no_valid_row = torch.zeros((), device=config.device)
        self.gamma, self.clip, self.entropy = (torch.zeros((), device=config.device) for _ in range(3))
        self.overview = torch.zeros(len(OVERVIEW), device=config.device)
        self.entropy_matters = any(parse(self.config.entropy).values)
        self.decide = compiled(decide, config)
        quadrature(self.start.device)  # made before anything is compiled or captured
        encoder = self.policy.strategy
        self.strategy = StrategyMetrics(encoder, config.device) if encoder is not None else None

    def set_schedules(self, share: float) -> tuple[float, float]:
        """Scheduled values for this point of the budget, as tensors that a graph can read. Returns actor's and critic's rate."""
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
        """What the next rollout needs of this one, as parts of the tensors that hold it: a checkpoint's business."""
        r = self.rollout
        frames = {f"seen/{n}": r.seen[n][-part.frames : -1] for n, part in r.parts.items() if part.frames > 1}
        return {"state": self.state, "start": self.start} | ({"age": r.age[-1], **frames} if frames else {})

    def tensors(self) -> list[Tensor]:
        """Everything that an iteration changes and the next one needs."""
        optimizer = [t for values in self.optimizer.state.values() for t in values.values()]
        predictors = [p for module in (self.predictor, self.key_predictor) if module is not None for p in module.parameters()]
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
        """The observation into the rollout; its padding stays zero. Returns what is seen as bytes, [1, rows, …]."""
        r = self.rollout
        padded = r.observation[t].view(self.batch.num_envs, self.num_agents, -1)
        padded[..., : self.policy.entries].copy_(self.batch.tensor("observation")[:, self.agents])
        r.starts[t].copy_(self.start)
        if not r.seen:
            return {}
        before = r.age[t - 1] if t else r.age[-1] - 1  # the last row of a rollout is the first of the next
        r.age[t] = torch.where(self.start, 0, before + 1)
        for name, part in r.parts.items():
            newest = self.policy.remembered(r.observation[t]) if name == HISTORY else self.flat(f"seen_{name}")
            r.seen[name][t + part.frames - 1].copy_(newest)
        every = torch.arange(self.rows, device=self.start.device).unsqueeze(0)
        return r.stacks(torch.full_like(every, t), every)

    def sample(self) -> dict[str, Tensor]:
        """What some rows saw where the last chunk starts."""
        rows = torch.arange(min(SAMPLE, self.rows), device=self.start.device).unsqueeze(0)
        seen = self.rollout.stacks(torch.full_like(rows, self.rollout.reward.shape[0] - self.bptt), rows)
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
            batch.tensor("continuous")[:, self.agents, : self.space.continuous] = torch.tanh(r.raw[t]).view(shape)
        if self.space.binary:
            batch.tensor("binary")[:, self.agents, : self.space.binary] = r.binary[t].view(shape)
        if self.space.choices:
            batch.tensor("choices")[:, self.agents, : len(self.space.choices)] = r.choices[t].view(shape)

    def see(self, t: int) -> None:
        """What the step brought. Rows of bots and opponents are not this policy's: they are not valid here."""
        r = self.rollout
        torch.mul(self.flat("reward"), self.config.reward_scale, out=r.reward[t])
        torch.logical_and(self.flat("valid"), self.flat("controller") == 0, out=r.valid[t])
        torch.logical_and(self.flat("was_alive"), ~self.flat("valid"), out=r.idle[t])
        if self.key_predictor is not None:  # whoever pressed them: the policy, a snapshot or a bot
            r.opponent_keys[t] = self.batch.tensor("binary")[:, self.agents].flip(1).flatten(0, 1)
        r.terminated[t] = self.flat("agent_terminated")
        r.truncated[t] = self.flat("agent_truncated")
        self.start.view(self.batch.num_envs, self.num_agents).copy_(self.batch.tensor("resetting").unsqueeze(1))

    def look_ahead(self) -> None:
        """The value of the state the rollout ended in; memory and envs stay as they are."""
        r, last = self.rollout, self.rollout.reward.shape[0]
        seen = self.observe(last)
        output = self.policy(r.observation[last : last + 1], self.state, r.starts[last : last + 1], seen=seen)
        r.value[last] = self.policy.real_value(output.value[0])


class PPO:
    """Plays with the batch and learns from it, one iteration at a time."""

    def __init__(self, batch: Any, config: Config) -> None:
        self.batch, self.config = batch, config
        self.roles = {s.role: Role(s.role, s.agents, batch, config) for s in batch.layout.seats}
        self.policies = {name: role.policy for name, role in self.roles.items()}
        self.rollout_steps = config.learn.rollout
        self.opponents: list[Player] = []  # frozen policies in slots; they act where `controller` says so
        self.bptt = config.learn.bptt or 1
        self.on_gpu = config.device == "cuda"
        self.graphs = Graphs(self.tensors) if self.on_gpu else None
        self.loss = compiled(self.loss_terms, config)

    def tensors(self) -> list[Tensor]:
        """What trying an iteration out would change: simulator, memory, policies, optimizers."""
        memories = [t for opponent in self.opponents for t in (opponent.state, *opponent.frames.kept.values())]
        return [*self.batch.arrays.values(), *memories, *(t for role in self.roles.values() for t in role.tensors())]

    def run(self, name: str, function: Callable[[], None]) -> None:
        """Runs a part of the iteration; on CUDA as a graph."""
        if self.graphs is None:
            function()
        else:
            self.graphs.run(name, function)

    def precision(self) -> contextlib.AbstractContextManager:
        """Mixed precision where it was asked for. Autocast's cache of weights would outlive updates inside a graph."""
        if self.config.train.dtype == "bfloat16":
            return torch.autocast(self.config.device, torch.bfloat16, cache_enabled=False)
        return contextlib.nullcontext()

    # -- what the trainer asks for -------------------------------------------------------------------------------------

    def learned_steps(self) -> int:
        """Valid rows of the rollout that belong to learning agents."""
        return int(sum(int(role.rollout.valid.sum()) for role in self.roles.values()))

    def updates(self) -> int:
        return sum(role.epochs_run * role.config.minibatches for role in self.roles.values())

    def action_metrics(self) -> dict[str, float]:
        out: dict[str, float] = {}
        for name, role in self.roles.items():
            r = role.rollout
            out |= action_metrics(self.batch.layout.actions_of(name), name, r.raw, r.binary, r.choices, r.valid)
        return out

    def buffer_bytes(self) -> int:
        return sum(role.rollout.nbytes for role in self.roles.values())

    def modules(self) -> dict[str, nn.Module]:
        out: dict[str, nn.Module] = {}
        for name, role in self.roles.items():
            found = {f"{name}/predictor": role.predictor, f"{name}/key_predictor": role.key_predictor}
            out |= {n: module for n, module in found.items() if module is not None}
        return out

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        return {name: role.optimizer for name, role in self.roles.items()}

    def carried(self) -> dict[str, Tensor]:
        return {f"{name}/{n}": t for name, role in self.roles.items() for n, t in role.carried().items()}

    def evidence(self, name: str) -> Evidence:
        """Some rows of the step where the last chunk starts."""
        role = self.roles[name]
        r = role.rollout
        t, count = r.reward.shape[0] - role.bptt, min(SAMPLE, role.rows)
        rows = slice(0, count)
        mask = r.mask[t : t + 1, rows] if role.space.masked else None
        every = torch.arange(count, device=r.reward.device).unsqueeze(0)
        seen = r.stacks(torch.full_like(every, t), every)
        valid = r.valid.flatten()
        observed = r.observation[:-1, :, : role.policy.entries].flatten(0, 1).float()
        return Evidence(
            inputs=(r.observation[t : t + 1, rows], r.state[-1, rows], r.starts[t : t + 1, rows], mask, seen),
            observation=observed[valid] if bool(valid.any()) else observed,
            suspects={
                "observation": r.observation[..., : role.policy.entries], "reward": r.reward, "value": r.value,
                "log_prob": r.log_prob, "advantage": r.advantage,
            },
        )  # fmt: skip

    # -- playing -------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def collect(self, timed: Timed) -> None:
        """One rollout. `timed(phase)` is a context that measures."""
        for role in self.roles.values():
            role.policy.eval()
        if self.on_gpu:
            with timed("rollout"):
                self.run("rollout", lambda: self.play(lambda phase: contextlib.nullcontext()))
        else:
            self.play(timed)

    def play(self, timed: Timed) -> None:
        for role in self.roles.values():
            role.rollout.turn_over()
        for t in range(self.config.learn.rollout):
            with timed("act"), self.precision():
                for role in self.roles.values():
                    role.act(t)
                for opponent in self.opponents:
                    opponent.act()
            with timed("simulate"):
                self.batch.step()
            with timed("act"):
                for role in self.roles.values():
                    role.see(t)
        with timed("act"), self.precision():
            for role in self.roles.values():
                role.look_ahead()

    # -- learning ------------------------------------------------------------------------------------------------------

    def learn(self, share: float) -> dict[str, float]:
        """Updates every role on its rollout. `share`: how much of the budget is spent, for schedules."""
        metrics: dict[str, float] = {}
        for role in self.roles.values():
            metrics |= {f"ppo/{role.name}/{key}": value for key, value in self.learn_role(role, share).items()}
            if role.strategy is not None:
                metrics |= {f"strategy/{role.name}/{key}": value for key, value in role.strategy.read().items()}
        return metrics

    def learn_role(self, role: Role, share: float) -> dict[str, float]:
        c = role.config
        rates = role.set_schedules(share)
        role.policy.train()
        self.run(f"prepare {role.name}", lambda: self.prepare(role))
        epochs = 0
        if max(rates) > 0 and (self.on_gpu or bool(role.rollout.valid.any())):
            for epoch in range(c.epochs):
                if epoch and c.recompute_advantages:
                    self.run(f"recompute {role.name}", lambda: self.recompute(role))
                self.run(f"pass {role.name}", lambda: self.one_pass(role))
                epochs += 1
                if c.target_kl is not None and float(role.pass_kl) > c.target_kl:
                    break
        self.run(f"finish {role.name}", lambda: self.finish(role))
        role.epochs_run = epochs

        values = torch.cat([role.sums, role.overview]).tolist()
        out = dict(zip([*SUMS, *OVERVIEW], values, strict=True))
        updates = out.pop("updates")
        used = {"auxiliary_loss": bool(c.auxiliary), "next_keys_loss": bool(c.next_keys)}
        for name in SUMS[:-1]:
            mean = out.pop(name) / max(1.0, updates)
            if updates and used.get(name, True):
                out[name] = mean
        if updates:
            out["entropy_share"] = out["entropy"] / max(1e-9, role.space.max_entropy)
        return out | {"lr": rates[0], "epochs_run": float(epochs)}

    @torch.no_grad()
    def prepare(self, role: Role) -> None:
        """Advantages, targets and their statistics, before the first pass."""
        r, steps = role.rollout, role.rollout.reward.shape[0]
        role.sums.zero_()
        if role.strategy is not None:
            role.strategy.look(role.sample())
        self.set_targets(role)
        if role.config.normalise_values:
            role.policy.update_value_norm(r.target, r.valid)
        mean = masked_mean(r.advantage, r.valid)
        overview = {
            "explained_variance": explained_variance(r.value[:steps], r.target, r.valid),
            "advantage_std": masked_mean((r.advantage - mean).square(), r.valid).sqrt(),
            "value_mean": masked_mean(r.value[:steps], r.valid),
            "return_mean": masked_mean(r.target, r.valid),
            "invalid_share": 1.0 - r.valid.float().mean(),
        }
        role.overview.copy_(torch.stack([overview[name] for name in OVERVIEW]))

    def set_targets(self, role: Role) -> None:
        r, c = role.rollout, role.config
        generalised_advantages(r.reward, r.value, r.terminated, r.truncated, r.idle, role.gamma, c.gae_lambda, r.advantage)
        torch.add(r.advantage, r.value[:-1], out=r.target)
        r.standardised.copy_(standardise(r.advantage, r.valid))

    @torch.no_grad()
    def recompute(self, role: Role) -> None:
        """Values of the whole rollout by the policy as it is now, and advantages from them."""
        r = role.rollout
        with self.precision():
            output = role.policy(r.observation, r.state[0], r.starts, seen=r.stacks(*r.everything()))
        r.value.copy_(role.policy.real_value(output.value))
        self.set_targets(role)

    @torch.no_grad()
    def finish(self, role: Role) -> None:
        """Observation statistics move only now: the same ones were used while acting and while learning."""
        r = role.rollout
        if role.strategy is not None:
            role.strategy.look_again(role.sample())
        if role.policy.normalise_observation:
            role.policy.observation_norm.update(r.observation[:-1].flatten(0, 1), r.valid.flatten())

    def one_pass(self, role: Role) -> None:
        """One pass over the rollout in minibatches of whole chunks."""
        c = role.config
        role.pass_kl.zero_()
        data = self.chunks(role)
        for minibatch in self.shuffled(data["valid"], c.minibatches):
            role.optimizer.zero_grad()
            total = data["valid"][:, minibatch].sum().float()
            for indices in minibatch.tensor_split(c.accumulate):
                loss, sums = self.loss(role, data, indices, total, self.seen(role, indices))
                loss.backward()
                role.sums[: len(LOSS_SUMS)] += sums
                role.pass_kl += sums[LOSS_SUMS.index("approx_kl")] / c.minibatches
            self.update(role, total)

    def update(self, role: Role, total: Tensor) -> None:
        nothing = (total == 0).float()
        if self.on_gpu:  # a minibatch without a valid row must not move the weights by momentum alone
            role.no_valid_row.copy_(nothing)
            role.optimizer.found_inf = role.no_valid_row  # type: ignore[attr-defined]
        limit = role.config.max_grad_norm
        norm = nn.utils.clip_grad_norm_(role.parameters, limit if limit > 0 else float("inf"), foreach=True)
        role.optimizer.step()
        with torch.no_grad():
            role.sums[SUMS.index("grad_norm")] += norm
            role.sums[SUMS.index("clipped_updates")] += (norm > limit).float() if limit > 0 else 0.0
            role.sums[SUMS.index("updates")] += 1.0 - nothing

    def seen(self, role: Role, chunks: Tensor) -> dict[str, Tensor]:
        """What was seen as bytes in these chunks: gathered here, never stored frame by frame."""
        if not role.rollout.seen:
            return {}
        rows = role.rollout.reward.shape[1]
        steps = torch.arange(self.bptt, device=chunks.device).unsqueeze(1)
        return role.rollout.stacks(chunks // rows * self.bptt + steps, (chunks % rows).expand(self.bptt, -1))

    def loss_terms(
        self, role: Role, data: dict[str, Tensor], indices: Tensor, total: Tensor, seen: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The PPO loss of (a part of) a minibatch [L, C] with `total` valid rows: only these count, each as much as any other.

        Returns also what it is made of, in the order of LOSS_SUMS.
        """
        c, clip = role.config, role.clip
        part = {name: x[:, indices] for name, x in data.items()}
        inputs = (part["observation"], part["state"][0], part["starts"], part.get("mask"), seen)
        with self.precision():
            if c.recompute_activations:
                output = checkpoint(role.policy, *inputs, use_reentrant=False, preserve_rng_state=False)
            else:
                output = role.policy(*inputs)
        valid = part["valid"]
        weight = valid / total.clamp(min=1.0)

        def mean(x: Tensor) -> Tensor:
            return (x * weight).sum()

        actions = Actions(part["raw"], part["binary"], part["choices"])
        log_ratio = output.distribution.log_prob(actions) - part["log_prob"]
        log_ratio = torch.where(valid, log_ratio, 0.0)  # rows that are not ours must not overflow
        ratio = log_ratio.exp()
        advantage = part["advantage"]
        policy_loss = -mean(torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage))

        target = part["target"]
        error = (output.value - target).square()
        if c.value_clip:
            old = role.policy.normal_value(part["value"])
            clipped = old + (output.value - old).clamp(-c.value_clip, c.value_clip)
            error = torch.max(error, (clipped - target).square())
        value_loss = 0.5 * mean(error)
        with contextlib.nullcontext() if role.entropy_matters else torch.no_grad():
            entropy = mean(output.distribution.entropy())
        loss = policy_loss + c.value_weight * value_loss - role.entropy * entropy
        auxiliary = torch.zeros((), device=loss.device)
        if role.predictor is not None:
            auxiliary = self.prediction_loss(role, output.features, part, weight)
            loss = loss + c.auxiliary * auxiliary
        keys = torch.zeros((), device=loss.device)
        if role.key_predictor is not None and output.vector is not None:
            guess = role.key_predictor(output.vector.float())
            pressed = part["opponent_keys"].float()
            keys = mean(nn.functional.binary_cross_entropy_with_logits(guess, pressed, reduction="none").mean(-1))
            loss = loss + c.next_keys * keys
        with torch.no_grad():
            kl = mean(ratio - 1 - log_ratio)  # unbiased, never negative (Schulman's k3)
            cut = mean((ratio - 1).abs() > clip)
        return loss, torch.stack([policy_loss, value_loss, entropy, kl, cut, auxiliary, keys]).detach()

    def prediction_loss(self, role: Role, features: Tensor, part: dict[str, Tensor], weight: Tensor) -> Tensor:
        """Predict the next observation of the chunk where it belongs to the same episode."""
        assert role.predictor is not None
        following = role.policy.observation_norm(part["observation"][1:].float())[..., : role.policy.entries]
        same_episode = weight[:-1] * ~part["starts"][1:]
        error = (role.predictor(features[:-1].float()) - following).square().mean(-1)
        return (error * same_episode).sum()

    def chunks(self, role: Role) -> dict[str, Tensor]:
        """The rollout as chunks: every tensor [L, C, …], the memory at each chunk's start [1, C, state]."""
        r, length = role.rollout, self.bptt
        steps, rows = r.reward.shape
        count = steps // length

        def cut(x: Tensor) -> Tensor:
            x = x[:steps]
            if length == 1:
                return x.reshape(1, steps * rows, *x.shape[2:])
            return x.reshape(count, length, rows, *x.shape[2:]).transpose(0, 1).reshape(length, count * rows, *x.shape[2:])

        names = ["observation", "raw", "binary", "choices", "log_prob", "value", "valid", "starts", "target"]
        names += ["mask"] if role.space.masked else []
        names += ["opponent_keys"] if role.key_predictor is not None else []
        data = {name: cut(getattr(r, name)) for name in names}
        if role.config.burn_in:  # the first steps of a chunk only warm the memory up
            data["valid"] = data["valid"].clone()
            data["valid"][: role.config.burn_in] = False
        data["advantage"] = cut(r.standardised)
        data["target"] = role.policy.normal_value(data["target"])
        data["state"] = r.state.reshape(1, count * rows, r.state.shape[-1])
        return data

    def shuffled(self, valid: Tensor, parts: int) -> Iterator[Tensor]:
        """Chunk indices in random order, in `parts` equal parts. On the CPU, chunks without a valid row are left out."""
        count = valid.shape[1]
        if self.config.device == "cpu":
            useful = valid.any(0).nonzero().squeeze(1)
            order = useful[torch.randperm(len(useful))]
            yield from (o for o in order.tensor_split(parts) if len(o))
        else:
            order = torch.rand(count, device=valid.device).argsort()
            yield from order.split(count // parts)
