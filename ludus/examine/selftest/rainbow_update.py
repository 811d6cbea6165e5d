"""Rainbow's update beside the reference: targets, losses, gradients, new weights, and the networks
that follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ludus.algorithms.rainbow import rainbow
from ludus.algorithms.rainbow.q_policy import NoisyLinear
from ludus.algorithms.rainbow.rainbow import huber, quantile_huber, random_shares
from ludus.examine.selftest import reference
from ludus.examine.selftest.core import Wrong, close, holds, part, same
from ludus.examine.selftest.scene import Session, nothing

RAINBOW, NETWORK = "ludus/algorithms/rainbow/rainbow.py", "ludus/algorithms/rainbow/q_policy.py"
ALPHA = 0.6

LESSONS: dict[str, dict[str, Any]] = {
    "everything": dict(
        prioritised=True,
        alpha=ALPHA,
        beta="0.4 -> 0.8",
        average=0.9,
        max_grad_norm=0.05,
        target_every=2,
    ),
    "plain DQN": dict(
        iqn=False,
        dueling=False,
        double=False,
        average=0.0,
        max_grad_norm=0.0,
        target_every=1,
        target_tau=0.25,
        normalise=False,
        n_step=1,
        kappa=0.3,
    ),
    "single": dict(
        double=False,
        dueling=False,
        target_every=1000,
        hidden=(8, 8),
        learning_rate="0.02 -> 0.01",
        gamma="0.8 -> 0.9",
        weight_decay=3.0,
    ),
}


@dataclass
class Update:
    """One update as it was made: what it was made from, and the weights before and after."""

    sample: Any
    shares: list[Tensor]
    before: reference.Parameters
    target: reference.Parameters
    after: reference.Parameters
    gradients: dict[str, Tensor]
    priorities: Tensor | None


@dataclass
class Made:
    algorithm: Any
    updates: list[Update] = field(default_factory=list)
    target_after: reference.Parameters = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    asked: list[tuple[float, float]] = field(default_factory=list)  # gamma and beta of each draw
    recent: tuple[Tensor, Tensor] = (torch.zeros(0), torch.zeros(0))


def lesson(s: Session, name: str) -> Made:
    return s.once(("rainbow", name), lambda: _teach(s, LESSONS[name]))


def _teach(s: Session, settings: dict[str, Any]) -> Made:
    module: Any = rainbow
    made = Made(s.make_rainbow(**settings))
    algorithm = made.algorithm
    role = algorithm.roles["agent"]
    for _ in range(5):
        algorithm.collect(nothing)
    samples: list[Any] = []
    shares: list[Tensor] = []
    draw, update, spread = role.replay.sample, algorithm.update, module.random_shares

    def drawn(*arguments: Any) -> Any:
        samples.append(draw(*arguments))
        made.asked.append((float(arguments[1]), float(arguments[2])))
        return samples[-1]

    def shared(*arguments: Any) -> Tensor:
        shares.append(spread(*arguments))
        return shares[-1]

    def updated(of: Any) -> None:
        before, target, first = (
            reference.doubles(of.policy),
            reference.doubles(of.target),
            len(shares),
        )
        update(of)
        gradients = {
            n: p.grad.detach().cpu().clone()
            for n, p in of.policy.named_parameters()
            if p.grad is not None
        }
        tree = of.replay.tree
        priorities = tree.priority[samples[-1].leaf].cpu().clone() if tree is not None else None
        made.updates.append(
            Update(
                samples[-1],
                shares[first:],
                before,
                target,
                reference.doubles(of.policy),
                gradients,
                priorities,
            )
        )

    recent = role.replay.recent(8)
    made.recent = (
        role.replay.observation[recent].cpu().clone(),
        role.replay.valid[recent].cpu().clone(),
    )
    role.replay.sample, algorithm.update, module.random_shares = drawn, updated, shared
    try:
        metrics = algorithm.learn(0.25)
    finally:
        role.replay.sample, algorithm.update, module.random_shares = draw, update, spread
    made.metrics = {n.rsplit("/", 1)[-1]: v for n, v in metrics.items()}
    made.target_after = reference.doubles(role.target)
    return made


class Plain:
    """One update by the reference."""

    def __init__(self, made: Made, u: Update) -> None:
        self.c, self.policy = made.algorithm.config.learner, made.algorithm.config.policy
        self.u, self.sample = u, u.sample
        learned = {
            n for n, p in made.algorithm.roles["agent"].policy.named_parameters() if p.requires_grad
        }
        self.p = {n: t.clone().requires_grad_(n in learned) for n, t in u.before.items()}
        self.middles = (torch.arange(self.c.quantiles) + 0.5) / self.c.quantiles

    def prepared(self, x: Tensor) -> Tensor:
        x = reference.padded(x.cpu().double(), self.p["observation_norm.mean"].shape[0])
        return reference.normal(self.p, x) if self.policy.normalise_observation else x

    def values(
        self, p: reference.Parameters, prefix: str, x: Tensor, seen: Any, shares: Tensor
    ) -> Tensor:
        return reference.network(
            p, prefix, self.policy, self.c, x, seen["picture"][0].cpu(), shares
        )

    def targets(self) -> Tensor:
        s, count = self.sample, len(self.sample.action)
        x = self.prepared(s.following[0])
        even = self.middles.expand(count, -1)
        chooser = (self.p, "online.") if self.c.double else (self.u.target, "")
        with torch.no_grad():
            q = self.values(*chooser, x, s.following_seen, even).mean(1)
            best = torch.where(s.following_mask[0].cpu(), q, -torch.inf).argmax(-1)
            shares = self.u.shares[0].cpu() if self.c.iqn else torch.zeros(count, 1)
            after = self.values(self.u.target, "", x, s.following_seen, shares)
        following = torch.stack([after[i, :, a] for i, a in enumerate(best.tolist())])
        return (
            s.earned.cpu().double().unsqueeze(1)
            + s.discount.cpu().double().unsqueeze(1) * following
        )

    def estimates(self) -> tuple[Tensor, Tensor]:
        s, count = self.sample, len(self.sample.action)
        shares = self.u.shares[1].cpu() if self.c.iqn else torch.zeros(count, 1)
        values = self.values(self.p, "online.", self.prepared(s.observation[0]), s.seen, shares)
        return torch.stack([values[i, :, a] for i, a in enumerate(s.action.tolist())]), shares

    def errors(self) -> tuple[Tensor, Tensor]:
        estimate, shares = self.estimates()
        return self.targets().unsqueeze(1) - estimate.unsqueeze(2), shares

    def loss(self) -> Tensor:
        error, shares = self.errors()
        kappa = self.c.kappa
        huber = torch.where(
            error.abs() <= kappa, 0.5 * error.square(), kappa * (error.abs() - 0.5 * kappa)
        )
        if self.c.iqn:
            huber = (
                huber
                * torch.where(
                    error < 0, 1 - shares.double().unsqueeze(-1), shares.double().unsqueeze(-1)
                )
                / kappa
            )
            each = huber.mean(2).sum(1)
        else:
            each = huber.sum((1, 2))
        weight, usable = self.sample.weight.cpu().double(), self.sample.usable.cpu()
        return (each * weight * usable).sum() / usable.sum()

    def gradients(self) -> tuple[reference.Parameters, float]:
        learned = [n for n in self.p if self.p[n].requires_grad]
        found = torch.autograd.grad(self.loss(), [self.p[n] for n in learned], allow_unused=True)
        whole = {
            n: g if g is not None else torch.zeros_like(self.p[n])
            for n, g in zip(learned, found, strict=True)
        }
        return reference.clipped(whole, self.c.max_grad_norm)


def every(s: Session) -> list[tuple[str, Made]]:
    return [(name, lesson(s, name)) for name in LESSONS]


@part("quantile loss", RAINBOW)
def losses_by_hand(s: Session) -> None:
    """Estimates 0 (of the quantile 1/4) and 1 (of 3/4), targets 0.5 and 3: the quantile Huber loss
    is 0.90625."""
    close("Huber losses", huber(torch.tensor([0.5, -1.0, 3.0, -3.0]), 1.0), [0.125, 0.5, 2.5, 2.5])
    error = torch.tensor([[0.5, 3.0]]).unsqueeze(1) - torch.tensor([[0.0, 1.0]]).unsqueeze(2)
    close("the quantile loss", quantile_huber(error, torch.tensor([[0.25, 0.75]]), 1.0), [0.90625])
    samples = torch.arange(100.0)
    best = min(
        range(100),
        key=lambda z: float(
            quantile_huber((samples - z).view(1, 1, -1), torch.tensor([[0.8]]), 0.01)
        ),
    )
    holds(f"the loss finds {best} as the quantile 0.8 of 0 to 99", best in (79, 80))
    shares = random_shares(500, 4, torch.device(s.device)).cpu()
    holds(
        "random quantiles are not spread evenly",
        torch.equal((shares * 4).long(), torch.arange(4).expand(500, 4)),
    )
    close("their mean", shares.mean(), 0.5, 0.02)


@part("updates", RAINBOW)
def updates_are_as_many_as_the_ratio_says(s: Session) -> None:
    """No update before the warm-up; then replay_ratio transitions per agent-step of all rows,
    fractions adding up."""
    algorithm = s.make_rainbow(warm_up=200, replay_ratio=0.1)
    done = []
    for _ in range(13):
        algorithm.collect(nothing)
        algorithm.learn(0.0)
        done.append(algorithm.updates())
    holds(
        f"updates {done} instead of 4 after three iterations of warm-up",
        sum(done[:3]) == 0 and sum(done[3:]) == 4,
    )
    for name, made in every(s):
        holds(f"{len(made.updates)} updates instead of 4 ({name})", len(made.updates) == 4)


@part("bootstrap target", RAINBOW)
def targets_and_losses_are_right(s: Session) -> None:
    """Reward of n steps plus the discounted value that the target network gives the best action:
    chosen by the learning network with double, by the target network without, never a forbidden
    one; and the weighted loss over usable transitions."""
    for name, made in every(s):
        losses = [float(Plain(made, u).loss().detach()) for u in made.updates]
        close(f"the loss ({name})", made.metrics["value_loss"], sum(losses) / len(losses), 2e-3)


@part("module updates", RAINBOW)
def every_layer_is_updated(s: Session) -> None:
    """An iteration moves every weight of encoder, quantiles and streams: none is left out or cut
    loose."""
    for name, made in every(s):
        expected, _ = Plain(made, made.updates[0]).gradients()
        for n, gradient in expected.items():
            if bool(gradient.any()) and torch.equal(
                made.updates[0].before[n], made.updates[-1].after[n]
            ):
                raise Wrong(
                    f"{n} ({name}) was not moved at all, though its gradient is up to "
                    f"{gradient.abs().max():.2g}"
                )


@part("gradients", RAINBOW)
def gradients_of_every_weight(s: Session) -> None:
    """Every weight of encoder, quantiles and streams gets the gradient of the loss, scaled down to
    max_grad_norm; none reaches the target."""
    for name, made in every(s):
        norms = []
        for u in made.updates:
            expected, norm = Plain(made, u).gradients()
            norms.append(norm)
            largest = max(float(g.abs().max()) for g in expected.values())
            for n, g in expected.items():
                if n not in u.gradients:
                    raise Wrong(f"{n} ({name}) gets no gradient at all")
                close(
                    f"gradient of {n} ({name}), over the largest",
                    u.gradients[n] / largest,
                    g / largest,
                    5e-3,
                )
        close(f"grad_norm ({name})", made.metrics["grad_norm"], sum(norms) / len(norms), 5e-3)
        target = made.algorithm.roles["agent"].target
        holds(
            f"the target network is trained ({name})",
            not any(p.requires_grad for p in target.parameters()),
        )


@part("optimizer", RAINBOW)
def every_weight_is_moved_by_adamw(s: Session) -> None:
    """Each update moves every weight as Adam with decoupled weight decay does, with the scheduled
    learning rate."""
    for name, made in every(s):
        c = made.algorithm.config.learner
        rate = 0.0175 if isinstance(c.learning_rate, str) else c.learning_rate
        adam = reference.Adam(1e-8, c.weight_decay)
        p = {n: t.clone() for n, t in made.updates[0].before.items()}
        for u in made.updates:
            adam.step(
                p, {n: g.double() for n, g in u.gradients.items()}, dict.fromkeys(u.gradients, rate)
            )
        for n in made.updates[0].gradients:
            before, got = made.updates[0].before[n], made.updates[-1].after[n]
            far = (p[n] - before).abs().max().clamp(min=1e-6)
            close(
                f"movement of {n} ({name}), over the largest",
                (got - before) / far,
                (p[n] - before) / far,
                0.05,
            )


@part("schedules", RAINBOW)
def rainbows_schedules_are_followed(s: Session) -> None:
    """Discount, learning rate and the making up for priorities are what their schedules say at this
    share of the budget."""
    for name, gamma, beta, rate in (
        ("everything", 0.9, 0.5, 0.01),
        ("single", 0.825, 0.55, 0.0175),
    ):
        made = lesson(s, name)
        close(f"gamma and beta of each draw ({name})", made.asked, [[gamma, beta]] * 4)
        close(f"the learning rate ({name})", made.metrics["lr"], rate)


@part("target network", RAINBOW)
def the_target_network_follows(s: Session) -> None:
    """Every target_every updates the target network moves by target_tau towards the learning one
    (1: becomes it), and rests between."""
    for name, made in every(s):
        c = made.algorithm.config.learner
        expected = {n: t.clone() for n, t in made.updates[0].target.items()}
        for i, u in enumerate(made.updates):
            if (i + 1) % c.target_every == 0:
                for n in expected:
                    if expected[n].is_floating_point():
                        expected[n] += c.target_tau * (u.after[f"online.{n}"] - expected[n])
            got = made.updates[i + 1].target if i + 1 < len(made.updates) else made.target_after
            for n in expected:
                close(
                    f"{n} of the target network after update {i + 1} ({name})", got[n], expected[n]
                )


@part("running average", NETWORK)
def the_average_follows(s: Session) -> None:
    """What plays outside training is a running average of the weights: at first over a tenth of the
    updates, then `average`."""
    for name, made in every(s):
        c = made.algorithm.config.learner
        for i, u in enumerate(made.updates):
            keep = min(c.average, (1 + i) / (10 + i))
            for n in [n for n in u.before if n.startswith("averaged.")]:
                online = u.after[n.replace("averaged.", "online.")]
                close(
                    f"{n} after update {i + 1} ({name})",
                    u.after[n],
                    keep * u.before[n] + (1 - keep) * online,
                )


@part("prioritised replay", RAINBOW)
def errors_become_priorities(s: Session) -> None:
    """After an update a transition's priority is its mean absolute error to the power alpha, and 0
    if it proved unusable; one that waits for an idle agent keeps what it has."""
    made = lesson(s, "everything")
    for u in made.updates:
        error = Plain(made, u).errors()[0].detach().abs().mean((1, 2))
        wanted = torch.where(u.sample.usable.cpu(), (error + 1e-6) ** ALPHA, 0.0)
        leaf = u.sample.leaf.cpu()
        for i in range(len(leaf)):  # drawn twice: the highest counts
            wanted[i] = wanted[leaf == leaf[i]].max()
        assert u.priorities is not None
        settled = ~u.sample.waiting.cpu()
        close("priorities", u.priorities.cpu()[settled], wanted[settled], 2e-3)


@part("metrics", RAINBOW)
def values_are_told_in_units_of_reward(s: Session) -> None:
    """q_mean, q_min, q_max and td_error are those of usable transitions, divided by
    reward_scale."""
    for name, made in every(s):
        scale = made.algorithm.config.learner.reward_scale
        told = [(Plain(made, u), u.sample.usable.cpu()) for u in made.updates]
        q = [(p.estimates()[0].detach().mean(1) / scale)[usable] for p, usable in told]
        close(
            f"q_mean ({name})",
            made.metrics["q_mean"],
            torch.stack([x.mean() for x in q]).mean(),
            2e-3,
        )
        close(f"q_max ({name})", made.metrics["q_max"], torch.cat(q).max(), 2e-3)
        td = [
            (p.errors()[0].detach().abs().mean((1, 2)) / scale)[usable].mean() for p, usable in told
        ]
        close(f"td_error ({name})", made.metrics["td_error"], torch.stack(td).mean(), 2e-3)


@part("observation normaliser", RAINBOW)
def statistics_of_what_was_observed(s: Session) -> None:
    """After an iteration, mean and variance of all valid observations so far; during its updates
    they rest."""
    made = lesson(s, "everything")
    first, last = made.updates[0], made.updates[-1]
    same(
        "statistics between updates",
        last.after["observation_norm.mean"],
        first.before["observation_norm.mean"],
    )
    seen, valid = made.recent
    rows = reference.padded(seen[valid].double(), len(first.before["observation_norm.mean"]))
    expected = reference.merged(first.before, "observation_norm", rows)
    now = reference.doubles(made.algorithm.roles["agent"].policy)
    for what, value in zip(("mean", "var", "count"), expected, strict=True):
        close(f"observation_norm.{what}", now[f"observation_norm.{what}"], value, 1e-3)


@part("acting", RAINBOW)
def the_best_allowed_action_is_taken(s: Session) -> None:
    """Without random actions the choice is the allowed one of highest value, of the learning
    network, by evenly spaced quantiles."""
    algorithm = s.make_rainbow(epsilon_from=0.0, epsilon_to=0.0)
    algorithm.collect(nothing)
    r, policy = algorithm.roles["agent"].replay, algorithm.roles["agent"].policy
    c, p = algorithm.config.learner, reference.doubles(policy)
    middles = ((torch.arange(c.quantiles) + 0.5) / c.quantiles).expand(r.rows, -1)
    for t in range(2, 8):
        x = reference.normal(p, reference.padded(r.observation[t].cpu().double(), policy.inputs))
        pictures = r.stacks(torch.full((r.rows,), t, device=s.device), r.every_row)["picture"][
            0
        ].cpu()
        q = reference.network(p, "online.", algorithm.config.policy, c, x, pictures, middles).mean(
            1
        )
        same(
            f"choices of step {t}",
            r.action[t],
            torch.where(r.mask[t].cpu(), q, -torch.inf).argmax(-1),
        )


@part("exploration", RAINBOW)
def epsilon_falls_as_scheduled(s: Session) -> None:
    """The share of random actions falls in a line over epsilon_over agent-steps (or episodes), and
    that many actions are random."""
    from dataclasses import replace

    algorithm = s.make_rainbow(warm_up=400)
    c = replace(algorithm.config.learner, epsilon_from=1.0, epsilon_to=0.2, epsilon_over=100)
    close(
        "epsilon by steps",
        [c.random_actions(n, 0) for n in (0, 50, 100, 1000)],
        [1.0, 0.6, 0.2, 0.2],
    )
    c = replace(c, epsilon_unit="episodes", epsilon_off=400)
    close(
        "epsilon by episodes",
        [c.random_actions(10**6, n) for n in (0, 25, 399, 400)],
        [1.0, 0.8, 0.2, 0.0],
    )
    role, shares = algorithm.roles["agent"], []
    for _ in range(12):
        steps = int(role.count.steps)
        algorithm.collect(nothing)
        close("epsilon while playing", role.epsilon, 0.6 - 0.4 * min(1.0, steps / 1000))
        shares.append(float(role.random_actions) - float(role.epsilon))
        algorithm.learn(0.0)
    holds(
        f"random actions are {sum(shares) / 12:+.2f} more often than epsilon says",
        abs(sum(shares) / 12) < 0.08,
    )


@part("batch normalisation", NETWORK)
def batch_statistics_are_learned_and_used(s: Session) -> None:
    """Updates normalise by their own batch and remember it; acting only uses what is remembered;
    the average copies it."""
    algorithm = s.make_rainbow(batch_norm=True, average=0.9)
    role = algorithm.roles["agent"]
    for _ in range(2):
        algorithm.collect(nothing)
        holds(
            "acting changes what batch normalisation remembers",
            int(role.policy.online.norm.num_batches_tracked) == 0,
        )
    algorithm.learn(0.0)
    online, updates = role.policy.online.norm, int(role.count.updates)
    same("batches that were remembered", online.num_batches_tracked, updates)
    same("the average's statistics", role.policy.averaged.norm.running_mean, online.running_mean)
    x = torch.randn(1, 6, 5, device=s.device)
    seen = {"picture": torch.randint(0, 255, (1, 6, 3, 2, 2), dtype=torch.uint8, device=s.device)}
    one = role.policy.eval().q_values(x[:, :1], None, {"picture": seen["picture"][:, :1]})
    close(
        "values of a row alone and among others",
        one[0, 0],
        role.policy.q_values(x, None, seen)[0, 0],
    )


@part("noisy weights", NETWORK)
def noise_explores_and_is_silent_in_play(s: Session) -> None:
    """Noise is an outer product scaled by learned sizes, new with every draw, drawn for the target
    network too, and none outside training."""
    layer = NoisyLinear(2, 1, 0.5)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0]]))
        layer.weight_noise.fill_(0.1)
        layer.bias.fill_(3.0)
        layer.bias_noise.fill_(0.2)
        layer.noise_in.copy_(torch.tensor([1.0, -2.0]))
        layer.noise_out.fill_(3.0)
    close("a noisy layer by hand", layer(torch.tensor([1.0, 10.0])), [1.3 + 14.0 + 3.6], 1e-5)
    close("without noise", layer.eval()(torch.tensor([1.0, 10.0])), [24.0], 1e-5)
    algorithm = s.make_rainbow(noisy=True, average=0.0)
    network = algorithm.roles["agent"].policy.online
    noises = []
    for _ in range(2):
        network.draw_noise()
        noises.append(network.advantage[0].noise_in.clone())
    holds("noise is not drawn anew", not torch.equal(*noises))
    for _ in range(2):
        algorithm.collect(nothing)
        algorithm.learn(0.0)
    holds(
        "the size of the noise gets no gradient", bool(network.advantage[0].weight_noise.grad.any())
    )
    ours, theirs = (
        network.advantage[0].noise_in,
        algorithm.roles["agent"].target.advantage[0].noise_in,
    )
    holds(
        "the target network has no noise, or that of the online network",
        bool(theirs.any()) and not torch.equal(ours, theirs),
    )


CHECKS = (
    losses_by_hand,
    updates_are_as_many_as_the_ratio_says,
    targets_and_losses_are_right,
    every_layer_is_updated,
    gradients_of_every_weight,
    every_weight_is_moved_by_adamw,
    rainbows_schedules_are_followed,
    the_target_network_follows,
    the_average_follows,
    errors_become_priorities,
    values_are_told_in_units_of_reward,
    statistics_of_what_was_observed,
    the_best_allowed_action_is_taken,
    epsilon_falls_as_scheduled,
    batch_statistics_are_learned_and_used,
    noise_explores_and_is_silent_in_play,
)
