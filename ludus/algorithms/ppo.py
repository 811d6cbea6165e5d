"""Proximal policy optimisation, for feed-forward and recurrent policies, one or many roles.

`Role` (role.py) holds what one role learns with, `RoleRollout` (rollout.py) what it saw,
`PPO.collect` plays, `PPO.learn` updates. Where this differs from the paper (Schulman et al. 2017):
advantages are standardised over the whole rollout of a role, value targets are normalised with a
head that is rescaled when their statistics move, minibatches are whole chunks of `bptt` steps that
start from the stored memory, and passes stop early when the policy has moved `target_kl`.

Axes: T steps of the rollout, R rows (env × agent of the role), F observation entries; L steps of a
chunk, C chunks. A row of time t: observation_t, action_t → reward_t, terminated_t, truncated_t,
valid_t → observation_{t+1}. Nothing here reads a tensor back to the host inside a rollout or an
update, except one number per pass for `target_kl`: on CUDA the rollout, the advantages and each
pass are graphs, captured once and replayed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ludus.algorithms.actions import action_metrics
from ludus.algorithms.advantage import (
    explained_variance,
    generalised_advantages,
    masked_mean,
    standardise,
)
from ludus.algorithms.algorithm import Evidence, Learner, Timed
from ludus.algorithms.graphs import compiled
from ludus.algorithms.next_keys import later_steps
from ludus.algorithms.role import LOSS_SUMS, OF_VALID_ROWS, OVERVIEW, SAMPLE, SUMS, Role
from ludus.config import Config
from ludus.networks.heads import Actions
from ludus.protocols import Batch


class PPO(Learner):
    """Plays with the batch and learns from it, one iteration at a time."""

    roles: dict[str, Role]

    def __init__(self, batch: Batch, config: Config) -> None:
        super().__init__(batch, config, Role)
        self.rollout_steps = config.learn.rollout
        self.bptt = config.learn.bptt or 1
        self.loss = compiled(self.loss_terms, config)

    # -- what the trainer asks for -----------------------------------------------------------------

    def learned_steps(self) -> int:
        """Valid rows of the rollout that belong to learning agents."""
        return int(sum(int(role.rollout.valid.sum()) for role in self.roles.values()))

    def updates(self) -> int:
        return sum(role.epochs_run * role.config.minibatches for role in self.roles.values())

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
        out: dict[str, nn.Module] = {}
        for name, role in self.roles.items():
            found = {
                f"{name}/predictor": role.predictor,
                f"{name}/key_predictor": role.key_predictor,
            }
            out |= {n: module for n, module in found.items() if module is not None}
        return out

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

    # -- learning ----------------------------------------------------------------------------------

    def learn(self, share: float) -> dict[str, float]:
        """Updates every role on its rollout. `share`: how much of the budget is spent, for
        schedules."""
        metrics: dict[str, float] = {}
        for role in self.roles.values():
            metrics |= {
                f"ppo/{role.name}/{key}": value
                for key, value in self.learn_role(role, share).items()
            }
            if role.strategy is not None and role.valid_rows:
                metrics |= {
                    f"strategy/{role.name}/{key}": value
                    for key, value in role.strategy.read().items()
                }
        return metrics

    def learn_role(self, role: Role, share: float) -> dict[str, float]:
        c = role.config
        rates = role.set_schedules(share)
        role.policy.train()
        self.part(f"prepare {role.name}", self.prepare, role)()
        epochs = 0
        if max(rates) > 0 and (self.on_gpu or bool(role.rollout.valued.any())):
            for epoch in range(c.epochs):
                if epoch and c.recompute_advantages:
                    self.part(f"recompute {role.name}", self.recompute, role)()
                self.part(f"pass {role.name}", self.one_pass, role)()
                epochs += 1
                if c.target_kl is not None and float(role.pass_kl) > c.target_kl:
                    break
        self.part(f"finish {role.name}", self.finish, role)()
        role.epochs_run = epochs

        values = torch.cat([role.sums, role.overview]).tolist()
        out = dict(zip([*SUMS, *OVERVIEW], values, strict=True))
        updates = out.pop("updates")
        role.valid_rows = int(out.pop("valid_rows"))
        for name in OF_VALID_ROWS if not role.valid_rows else ():
            # nobody of this role decided anything: there is no mean, rather than one of 0
            del out[name]
        if math.isnan(out.get("explained_variance", 0.0)):
            del out["explained_variance"]
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
        if role.key_predictor is not None:
            later = later_steps(r.terminated | r.truncated, torch.rand_like(r.reward))
            r.later.copy_(later * role.rows + torch.arange(role.rows, device=later.device))
        if role.config.normalise_values:
            role.policy.update_value_norm(r.target, r.valued)
        mean = masked_mean(r.advantage, r.valid)
        scale = role.config.reward_scale  # metrics are in units of the game's reward
        overview = {
            "explained_variance": explained_variance(r.value[:steps], r.target, r.valid),
            "advantage_std": masked_mean((r.advantage - mean).square(), r.valid).sqrt() / scale,
            "value_mean": masked_mean(r.value[:steps], r.valid) / scale,
            "return_mean": masked_mean(r.target, r.valid) / scale,
            "invalid_share": 1.0 - r.valid.float().mean(),
            "valid_rows": r.valid.sum().float(),
        }
        role.overview.copy_(torch.stack([overview[name] for name in OVERVIEW]))

    def set_targets(self, role: Role) -> None:
        r, c = role.rollout, role.config
        ends = (r.terminated, r.truncated, r.idle)
        generalised_advantages(
            r.reward, r.value, *ends, role.gamma, c.gae_lambda, r.advantage, r.target
        )
        r.standardised.copy_(standardise(r.advantage, r.valid))

    @torch.no_grad()
    def recompute(self, role: Role) -> None:
        """Values of the whole rollout by the policy as it is now, and advantages from them."""
        r = role.rollout
        with self.precision():
            output = role.policy(
                r.observation, r.state[0], r.starts, seen=r.stacks(*r.everything())
            )
        r.value.copy_(role.policy.real_value(output.value))
        self.set_targets(role)

    @torch.no_grad()
    def finish(self, role: Role) -> None:
        """Observation statistics move only now: the same ones were used while acting and while
        learning."""
        r = role.rollout
        if role.strategy is not None:
            role.strategy.look_again(role.sample())
        if role.policy.normalise_observation:
            role.policy.observation_norm.update(
                r.observation[:-1].flatten(0, 1), r.valued.flatten()
            )

    def one_pass(self, role: Role) -> None:
        """One pass over the rollout in minibatches of whole chunks."""
        c = role.config
        role.pass_kl.zero_()
        data = self.chunks(role)
        for minibatch in self.shuffled(data["valued"], c.minibatches):
            role.optimizer.zero_grad()
            total, total_valued = (
                data[name][:, minibatch].sum().float() for name in ("valid", "valued")
            )
            for indices in minibatch.tensor_split(c.accumulate):
                loss, sums = self.loss(
                    role, data, indices, total, total_valued, self.seen(role, indices)
                )
                loss.backward()
                role.sums[: len(LOSS_SUMS)] += sums
                role.pass_kl += sums[LOSS_SUMS.index("approx_kl")] / c.minibatches
            self.update(role, total_valued)

    def update(self, role: Role, total: Tensor) -> None:
        nothing = (total == 0).float()
        if (
            self.on_gpu
        ):  # a minibatch that teaches nothing must not move the weights by momentum alone
            role.no_valid_row.copy_(nothing)
            role.optimizer.found_inf = role.no_valid_row  # type: ignore[attr-defined]
        limit = role.config.max_grad_norm
        norm = nn.utils.clip_grad_norm_(
            role.parameters, limit if limit > 0 else float("inf"), foreach=True
        )
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
        return role.rollout.stacks(
            chunks // rows * self.bptt + steps, (chunks % rows).expand(self.bptt, -1)
        )

    def loss_terms(
        self,
        role: Role,
        data: dict[str, Tensor],
        indices: Tensor,
        total: Tensor,
        total_valued: Tensor,
        seen: dict[str, Tensor],
    ) -> tuple[Tensor, Tensor]:
        """The PPO loss of (a part of) a minibatch [L, C] with `total` valid rows: only these count,
        each as much as any other. The value is learned on idle rows, too: rollouts end in the
        middle of them.

        Returns also what it is made of, in the order of LOSS_SUMS.
        """
        c, clip = role.config, role.clip
        part = {name: x[:, indices] for name, x in data.items()}
        inputs = (part["observation"], part["state"][0], part["starts"], part.get("mask"), seen)
        with self.precision():
            if c.recompute_activations:
                output = checkpoint(
                    role.policy, *inputs, use_reentrant=False, preserve_rng_state=False
                )
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
        policy_loss = -mean(
            torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
        )

        target = part["target"]
        error = (output.value - target).square()
        if c.value_clip:
            old = role.policy.normal_value(part["value"])
            clipped = old + (output.value - old).clamp(-c.value_clip, c.value_clip)
            error = torch.max(error, (clipped - target).square())
        value_loss = 0.5 * (error * (part["valued"] / total_valued.clamp(min=1.0))).sum()
        with contextlib.nullcontext() if role.entropy_matters else torch.no_grad():
            entropy = mean(output.distribution.entropy())
        loss = policy_loss + c.value_weight * value_loss - role.entropy * entropy
        auxiliary = torch.zeros((), device=loss.device)
        if role.predictor is not None:
            auxiliary = self.prediction_loss(role, output.features, part, weight)
            loss = loss + c.auxiliary * auxiliary
        keys = torch.zeros((), device=loss.device)
        if role.key_predictor is not None and output.vector is not None:
            keys = self.keys_loss(role, output.vector, part, weight)
            loss = loss + c.next_keys * keys
        with torch.no_grad():
            kl = mean(ratio - 1 - log_ratio)  # unbiased, never negative (Schulman's k3)
            cut = mean((ratio - 1).abs() > clip)
        return loss, torch.stack(
            [policy_loss, value_loss, entropy, kl, cut, auxiliary, keys]
        ).detach()

    def prediction_loss(
        self, role: Role, features: Tensor, part: dict[str, Tensor], weight: Tensor
    ) -> Tensor:
        """Predict the next observation of the chunk where it belongs to the same episode."""
        assert role.predictor is not None
        following = role.policy.observation_norm(part["observation"][1:].float())[
            ..., : role.policy.entries
        ]
        same_episode = weight[:-1] * ~part["starts"][1:]
        error = (role.predictor(features[:-1].float()) - following).square().mean(-1)
        return (error * same_episode).sum()

    def keys_loss(
        self, role: Role, vector: Tensor, part: dict[str, Tensor], weight: Tensor
    ) -> Tensor:
        """Predict the opponent's keys in a later step, from the vector of now and the observation
        of then."""
        assert role.key_predictor is not None
        r, later = role.rollout, part["later"]
        observed = role.policy.prepared(r.observation.flatten(0, 1)[later])
        guess = role.key_predictor(vector, observed[..., : role.policy.entries])
        pressed = r.opponent_keys.flatten(0, 1)[later].float()
        cost = nn.functional.binary_cross_entropy_with_logits(
            guess, pressed, reduction="none"
        ).mean(-1)
        return (cost * weight * r.valid.flatten()[later]).sum()

    def chunks(self, role: Role) -> dict[str, Tensor]:
        """The rollout as chunks: every tensor [L, C, …], the memory at each chunk's start [1, C,
        state]."""
        r, length = role.rollout, self.bptt
        steps, rows = r.reward.shape
        count = steps // length

        def cut(x: Tensor) -> Tensor:
            x = x[:steps]
            if length == 1:
                return x.reshape(1, steps * rows, *x.shape[2:])
            return (
                x.reshape(count, length, rows, *x.shape[2:])
                .transpose(0, 1)
                .reshape(length, count * rows, *x.shape[2:])
            )

        names = [
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
        ]
        names += ["mask"] if role.space.masked else []
        names += ["later"] if role.key_predictor is not None else []
        data = {name: cut(getattr(r, name)) for name in names}
        if role.config.burn_in:  # the first steps of a chunk only warm the memory up
            for name in ("valid", "valued"):
                data[name] = data[name].clone()
                data[name][: role.config.burn_in] = False
        data["advantage"] = cut(r.standardised)
        data["target"] = role.policy.normal_value(data["target"])
        data["state"] = r.state.reshape(1, count * rows, r.state.shape[-1])
        return data

    def shuffled(self, useful: Tensor, parts: int) -> Iterator[Tensor]:
        """Chunk indices in random order, in `parts` equal parts. On the CPU, chunks that teach
        nothing are left out."""
        count = useful.shape[1]
        if self.config.device == "cpu":
            kept = useful.any(0).nonzero().squeeze(1)
            order = kept[torch.randperm(len(kept))]
            yield from (o for o in order.tensor_split(parts) if len(o))
        else:
            order = torch.rand(count, device=useful.device).argsort()
            yield from order.split(count // parts)
