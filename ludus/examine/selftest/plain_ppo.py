"""An iteration of PPO by the reference, from the rows that were stored: advantages, targets,
losses, gradients, updates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ludus.algorithms.on_policy import ADAM_EPSILON
from ludus.examine.selftest import reference
from ludus.examine.selftest.reference import Parameters
from ludus.examine.selftest.scene import LESSONS, ROLLOUT, SHARE, RoleLesson, Session

BUFFERS = ("observation_norm.", "value_norm.", "history_entries")


@dataclass
class Outcome:
    """What an update must come to."""

    advantage: Tensor
    target: Tensor
    standardised: Tensor
    p: Parameters  # after the update
    gradients: Parameters  # of the last pass, scaled down to the limit
    losses: dict[str, float] = field(default_factory=dict)  # mean over passes
    value_norm: tuple[Tensor, Tensor, Tensor] = (torch.zeros(0), torch.zeros(0), torch.zeros(0))


def at_share(scalar: Any) -> float:
    """A constant, or a straight line between two numbers, at the share of the budget that the
    lesson is taught at."""
    if not isinstance(scalar, str):
        return float(scalar)
    first, last = (float(x) for x in scalar.split("->"))
    return first + (last - first) * SHARE


def update(session: Session, name: str, role: str) -> Outcome:
    return session.once(("update", name, role), lambda: _update(session, name, role))


def _update(session: Session, name: str, role: str) -> Outcome:
    lesson = session.lesson(name)
    mine, c, policy = lesson.roles[role], lesson.config.learner, lesson.config.policy
    r = {n: t.clone() for n, t in mine.rollouts[1].items()}
    p = {n: t.clone() for n, t in mine.before.items()}
    learned = [n for n in p if not n.startswith(BUFFERS)]
    out = Outcome(*_targets(c, r), p, {})
    statistics = reference.merged(p, "value_norm", out.target[r["valued"]].reshape(-1, 1))
    out.value_norm = statistics
    if c.normalise_values:
        _rescale(p, statistics)
    adam = reference.Adam(ADAM_EPSILON)
    critic = ("critic.", "value_head.") if policy.separate_value else ()
    value_rate = (
        at_share(c.value_learning_rate)
        if c.value_learning_rate is not None
        else at_share(c.learning_rate)
    )
    rates = {n: value_rate if n.startswith(critic) else at_share(c.learning_rate) for n in learned}
    for epoch in range(c.epochs):
        if epoch and c.recompute_advantages:
            seen = reference.policy(
                p,
                policy,
                r["observation"][..., :7].double(),
                r["state"][0].double(),
                r["starts"],
                8,
            )
            r["value"] = reference.real(p, seen.value).detach()
            out.advantage, out.target, out.standardised = _targets(c, r)
        for n in learned:
            p[n] = p[n].detach().requires_grad_()
        loss, losses = _loss(mine, lesson.config, p, r, out)
        found = torch.autograd.grad(loss, [p[n] for n in learned], allow_unused=True)
        gradients = {
            n: g if g is not None else torch.zeros_like(p[n])
            for n, g in zip(learned, found, strict=True)
        }
        out.gradients, norm = reference.clipped(gradients, c.max_grad_norm)
        for key, value in {
            **losses,
            "grad_norm": norm,
            "clipped_updates": float(norm > c.max_grad_norm),
        }.items():
            out.losses[key] = out.losses.get(key, 0.0) + value / c.epochs
        adam.step(p, out.gradients, rates)
    out.p = {n: t.detach() for n, t in p.items()}
    return out


def _targets(c: Any, r: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    advantage, target = reference.advantages(
        r["reward"],
        r["value"],
        r["terminated"],
        r["truncated"],
        r["idle"],
        at_share(c.gamma),
        c.gae_lambda,
    )
    counted = advantage[r["valid"]]
    standardised = torch.where(
        r["valid"], (advantage - counted.mean()) / counted.std(unbiased=False), 0.0
    )
    return advantage, target, standardised


def _rescale(p: Parameters, statistics: tuple[Tensor, Tensor, Tensor]) -> None:
    """New statistics of value targets; the head says the same in units of reward as before."""
    old_mean, old_std = p["value_norm.mean"], (p["value_norm.var"] + 1e-8).sqrt()
    p["value_norm.mean"], p["value_norm.var"], p["value_norm.count"] = statistics
    new_std = (p["value_norm.var"] + 1e-8).sqrt()
    p["value_head.weight"] = p["value_head.weight"] * old_std / new_std
    p["value_head.bias"] = (
        p["value_head.bias"] * old_std + old_mean - p["value_norm.mean"]
    ) / new_std


def _loss(
    mine: RoleLesson, config: Any, p: Parameters, r: dict[str, Tensor], out: Outcome
) -> tuple[Tensor, dict[str, float]]:
    """Chunk by chunk: the memory of each is the stored one, and gradients end where it begins."""
    c = config.learner
    chunks = [slice(k, k + c.bptt) for k in range(0, ROLLOUT, c.bptt)]
    said = [
        reference.policy(
            p,
            config.policy,
            r["observation"][k, :, :7].double(),
            r["state"][i].double(),
            r["starts"][k],
            8,
        )
        for i, k in enumerate(chunks)
    ]
    head, value = torch.cat([x.head for x in said]), torch.cat([x.value for x in said])
    counts, valued = r["valid"].clone(), r["valued"].clone()
    for k in chunks:
        counts[k.start : k.start + c.burn_in] = False
        valued[k.start : k.start + c.burn_in] = False
    told = reference.distribution(
        mine.role.space,
        head,
        p["log_std"],
        r["mask"][:ROLLOUT],
        r["raw"],
        r["binary"],
        r["choices"],
    )
    log_ratio = (told.log_prob - r["log_prob"])[counts]
    ratio, advantage, clip = log_ratio.exp(), out.standardised[counts], at_share(c.clip)
    policy_loss = -torch.where(
        advantage > 0, advantage * ratio.clamp(max=1 + clip), advantage * ratio.clamp(min=1 - clip)
    ).mean()
    std, mean = (p["value_norm.var"] + 1e-8).sqrt(), p["value_norm.mean"]
    target = ((out.target - mean) / std)[valued]
    error = (value[valued] - target).square()
    if c.value_clip:
        old = ((r["value"][:ROLLOUT] - mean) / std)[valued]
        error = torch.max(
            error,
            (old + (value[valued] - old).clamp(-c.value_clip, c.value_clip) - target).square(),
        )
    value_loss, entropy = 0.5 * error.mean(), told.entropy[counts].mean()
    loss = policy_loss + c.value_weight * value_loss - at_share(c.entropy) * entropy
    losses = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "approx_kl": (ratio - 1 - log_ratio).mean(),
        "clip_fraction": ((ratio - 1).abs() > clip).double().mean(),
    }
    if c.auxiliary:
        losses["auxiliary_loss"] = _prediction(p, config, r, said, counts)
        loss = loss + c.auxiliary * losses["auxiliary_loss"]
    return loss, {n: float(x.detach()) for n, x in losses.items()}


def _prediction(
    p: Parameters, config: Any, r: dict[str, Tensor], said: list[reference.Seen], counts: Tensor
) -> Tensor:
    """Of the next observation of the chunk, where it belongs to the same episode."""
    total = torch.zeros((), dtype=torch.float64)
    size = p["observation_norm.mean"].shape[0]
    for i, k in enumerate(range(0, ROLLOUT, config.learner.bptt)):
        for step in range(config.learner.bptt - 1):
            t = k + step
            guess = said[i].features[step] @ p["predictor.weight"].T + p["predictor.bias"]
            following = reference.normal(
                p, reference.padded(r["observation"][t + 1, :, :7].double(), size)
            )[:, :7]
            counted = counts[t] & ~r["starts"][t + 1]
            total = total + ((guess - following).square().mean(-1) * counted).sum()
    return total / counts.sum()


def every(session: Session) -> list[tuple[str, str, RoleLesson, Outcome]]:
    return [
        (name, role, mine, update(session, name, role))
        for name in LESSONS
        for role, mine in session.lesson(name).roles.items()
    ]
