"""Proximal policy optimisation, for feed-forward and recurrent policies, one or many roles.

`OnPolicy` (on_policy.py) collects, `PPORole` (role.py) holds what one role learns with, and `PPO`
updates. Where this differs from the paper (Schulman et al. 2017): advantages are standardised over
the whole rollout of a role, value targets are normalised with a head that is rescaled when their
statistics move, minibatches are whole chunks of `bptt` steps that start from the stored memory, and
passes stop early when the policy has moved `target_kl`.

Axes: T steps of the rollout, R rows (env × agent of the role), F observation entries; L steps of a
chunk, C chunks. Nothing here reads a tensor back to the host inside a rollout or an update, except
one number per pass for `target_kl`: on CUDA the rollout, the advantages and each pass are graphs,
captured once and replayed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ludus.algorithms.advantage import (
    explained_variance,
    generalised_advantages,
    masked_mean,
    standardise,
)
from ludus.algorithms.graphs import compiled
from ludus.algorithms.on_policy import LEARNED_FROM, OnPolicy
from ludus.algorithms.ppo.config import PPOConfig
from ludus.algorithms.ppo.role import LOSSES, OF_VALID_ROWS, OVERVIEW, PPORole
from ludus.config import Config
from ludus.networks.heads import Actions
from ludus.protocols import Batch


class PPO(OnPolicy):
    """Plays with the batch and learns from it, one iteration at a time."""

    settings = PPOConfig
    learns_auxiliary = True
    role_class = PPORole
    roles: dict[str, PPORole]

    def __init__(self, batch: Batch, config: Config) -> None:
        super().__init__(batch, config)
        self.loss = compiled(self.loss_terms, config)

    # -- learning ----------------------------------------------------------------------------------

    def learn_role(self, role: PPORole, progress: float) -> dict[str, float]:
        c = role.config
        rate = role.set_schedules(progress)
        self.part(f"prepare {role.name}", self.prepare, role)()
        epochs = 0
        if role.highest_rate > 0 and (self.on_gpu or bool(role.rollout.valued.any())):
            for epoch in range(c.epochs):
                if epoch and c.recompute_advantages:
                    self.part(f"recompute {role.name}", self.recompute, role)()
                self.part(f"pass {role.name}", self.one_pass, role)()
                epochs += 1
                if c.target_kl is not None and float(role.pass_kl) > c.target_kl:
                    break
        role.updates = epochs * c.minibatches

        values = torch.cat([role.sums, role.overview]).tolist()
        out = dict(zip([*role.summed, *OVERVIEW], values, strict=True))
        updates = out.pop("updates")
        valid_rows = int(out.pop("valid_rows"))
        for name in OF_VALID_ROWS if not valid_rows else ():
            # nobody of this role decided anything: there is no mean, rather than one of 0
            del out[name]
        if math.isnan(out.get("explained_variance", 0.0)):
            del out["explained_variance"]
        for name in role.summed[:-1]:
            mean = out.pop(name) / max(1.0, updates)
            if updates:
                out[name] = mean
        if updates:
            out["entropy_share"] = out["entropy"] / max(1e-9, role.space.max_entropy)
        return out | {"lr": rate, "epochs_run": float(epochs)}

    @torch.no_grad()
    def prepare(self, role: PPORole) -> None:
        """Advantages, targets and their statistics, before the first pass."""
        r, steps = role.rollout, role.rollout.reward.shape[0]
        role.sums.zero_()
        self.set_targets(role)
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

    def set_targets(self, role: PPORole) -> None:
        r, c = role.rollout, role.config
        ends = (r.terminated, r.truncated, r.idle)
        generalised_advantages(
            r.reward, r.value, *ends, role.gamma, c.gae_lambda, r.advantage, r.target
        )
        r.standardised.copy_(standardise(r.advantage, r.valid))

    @torch.no_grad()
    def recompute(self, role: PPORole) -> None:
        """Values of the whole rollout by the policy as it is now, and advantages from them."""
        r = role.rollout
        with self.precision():
            output = role.policy(
                r.observation, r.state[0], r.starts, seen=r.stacks(*r.everything())
            )
        r.value.copy_(role.policy.real_value(output.value))
        self.set_targets(role)

    def one_pass(self, role: PPORole) -> None:
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
                role.sums[: len(sums)] += sums
                role.pass_kl += sums[LOSSES.index("approx_kl")] / c.minibatches
            self.update(role, total_valued)

    def update(self, role: PPORole, total: Tensor) -> None:
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
            role.sums[role.summed.index("grad_norm")] += norm
            role.sums[role.summed.index("clipped_updates")] += (
                (norm > limit).float() if limit > 0 else 0.0
            )
            role.sums[role.summed.index("updates")] += 1.0 - nothing

    def seen(self, role: PPORole, chunks: Tensor) -> dict[str, Tensor]:
        """What was seen as bytes in these chunks: gathered here, never stored frame by frame."""
        if not role.rollout.seen:
            return {}
        rows = role.rollout.reward.shape[1]
        steps = torch.arange(role.chunk, device=chunks.device).unsqueeze(1)
        return role.rollout.stacks(
            chunks // rows * role.chunk + steps, (chunks % rows).expand(role.chunk, -1)
        )

    def loss_terms(
        self,
        role: PPORole,
        data: dict[str, Tensor],
        indices: Tensor,
        total: Tensor,
        total_valued: Tensor,
        seen: dict[str, Tensor],
    ) -> tuple[Tensor, Tensor]:
        """The PPO loss of (a part of) a minibatch [L, C] with `total` valid rows: only these count,
        each as much as any other. The value is learned on idle rows, too: rollouts end in the
        middle of them.

        Returns also what it is made of: LOSSES, then those of the auxiliaries.
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
        losses = role.auxiliary_losses(output, part, weight)
        for auxiliary, own in zip(role.auxiliaries, losses, strict=True):
            loss = loss + auxiliary.weight * own
        with torch.no_grad():
            kl = mean(ratio - 1 - log_ratio)  # unbiased, never negative (Schulman's k3)
            cut = mean((ratio - 1).abs() > clip)
        return loss, torch.stack([policy_loss, value_loss, entropy, kl, cut, *losses]).detach()

    def chunks(self, role: PPORole) -> dict[str, Tensor]:
        """The rollout as chunks: every tensor [L, C, …], the memory at each chunk's start [1, C,
        state]."""
        r, length = role.rollout, role.chunk
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

        names = [*LEARNED_FROM]
        names += ["mask"] if role.space.masked else []
        data = {name: cut(getattr(r, name)) for name in names}
        data |= {name: cut(x) for name, x in {**r.recorded, **r.prepared}.items()}
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
