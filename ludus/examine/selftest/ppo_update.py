"""PPO's update beside the reference: from the same rows, the same advantages, losses, gradients and
new weights must come."""

from __future__ import annotations

import torch

from ludus.examine.selftest import reference
from ludus.examine.selftest.core import Wrong, close, holds, part, same
from ludus.examine.selftest.plain_ppo import BUFFERS, at_share, every
from ludus.examine.selftest.scene import ROLLOUT, SHARE, Session, nothing

PPO = "ludus/algorithms/ppo/ppo.py"


@part("advantages", "ludus/algorithms/advantage.py")
def advantages_are_discounted_and_cut_at_ends(s: Session) -> None:
    """Advantages are sums of one-step errors, discounted by gamma and lambda, cut where an episode
    ends; after a truncated row the future is the value of the final observation, after a terminal
    one there is none."""
    for name, role, mine, expected in every(s):
        if name != "two memories":  # those advantages are of the last pass: the weights decide them
            close(
                f"advantages of {role} ({name})",
                mine.rollouts[2]["advantage"],
                expected.advantage,
                1e-3,
            )


@part("value targets", PPO)
def targets_are_advantage_plus_value(s: Session) -> None:
    """The value's target is the stored value plus the advantage."""
    for name, role, mine, expected in every(s):
        if name != "two memories":
            close(
                f"value targets of {role} ({name})",
                mine.rollouts[2]["target"],
                expected.target,
                1e-3,
            )


@part("advantage standardisation", "ludus/algorithms/advantage.py")
def advantages_are_standardised_over_valid_rows(s: Session) -> None:
    """The advantages that weigh the policy's loss have mean 0 and deviation 1 over valid rows, and
    are 0 elsewhere."""
    for name, role, mine, expected in every(s):
        if name != "two memories":
            close(
                f"standardised advantages of {role} ({name})",
                mine.rollouts[2]["standardised"],
                expected.standardised,
                1e-3,
            )


@part("recomputed advantages", PPO)
def advantages_are_recomputed(s: Session) -> None:
    """With recompute_advantages every further pass starts from values of the policy as it is
    then."""
    for name, role, mine, expected in every(s):
        if name == "two memories":
            close(
                f"advantages of {role} before the last pass",
                mine.rollouts[2]["advantage"],
                expected.advantage,
                5e-3,
            )


@part("value normaliser", "ludus/networks/normalise.py")
def value_statistics_are_those_of_the_targets(s: Session) -> None:
    """The value normaliser holds mean and variance of all targets so far, of valid rows and idle
    ones, and is left alone where it is not used."""
    for name, role, mine, expected in every(s):
        used = s.lesson(name).config.learner.normalise_values
        source = (
            expected.value_norm
            if used
            else [mine.before[f"value_norm.{n}"] for n in ("mean", "var", "count")]
        )
        for what, value in zip(("mean", "var", "count"), source, strict=True):
            close(
                f"value_norm.{what} of {role} ({name})",
                mine.after[f"value_norm.{what}"],
                value,
                1e-3,
            )


@part("loss", PPO)
def losses_are_those_of_the_paper(s: Session) -> None:
    """Clipped surrogate, half squared value error (clipped where asked), entropy, KL and clipped
    share, over valid rows."""
    for name, role, mine, expected in every(s):
        for key, value in expected.losses.items():
            if key not in ("grad_norm", "clipped_updates"):
                close(f"{key} of {role} ({name})", mine.metrics[key], value, 3e-3)


@part("module updates", PPO)
def every_module_is_updated(s: Session) -> None:
    """An iteration moves every parameter of every module that the loss depends on: none is left out
    or cut loose."""
    for name, role, mine, expected in every(s):
        for n, gradient in expected.gradients.items():
            if bool(gradient.any()) and torch.equal(mine.after[n], mine.before[n]):
                raise Wrong(
                    f"{n} of {role} ({name}) was not moved at all, though its gradient is up to "
                    f"{gradient.abs().max():.2g}"
                )


@part("gradients", PPO)
def gradients_reach_every_parameter(s: Session) -> None:
    """Every parameter of every module gets the gradient of the loss, scaled down to max_grad_norm
    all together."""
    for name, role, mine, expected in every(s):
        for key in ("grad_norm", "clipped_updates"):
            close(f"{key} of {role} ({name})", mine.metrics[key], expected.losses[key], 5e-3)
        largest = max(float(g.abs().max()) for g in expected.gradients.values())
        for n, g in expected.gradients.items():
            if not bool(g.any()):  # a deviation that the network says itself
                continue
            if n not in mine.gradients:
                raise Wrong(f"{n} of {role} ({name}) gets no gradient at all")
            close(
                f"gradient of {n} of {role} ({name}), over the largest",
                mine.gradients[n] / largest,
                g / largest,
                5e-3,
            )


@part("optimizer", PPO)
def every_parameter_is_moved_by_adam(s: Session) -> None:
    """Each pass moves every parameter of every module as Adam does, with the scheduled learning
    rate (the critic's own where given)."""
    for name, role, mine, expected in every(s):
        for n, value in expected.p.items():
            if n.startswith(BUFFERS) or not value.numel():
                continue
            got, before = mine.after[n], mine.before[n]
            far = (value - before).abs().max().clamp(min=1e-6)
            close(
                f"movement of {n} of {role} ({name}), over the largest",
                (got - before) / far,
                (value - before) / far,
                0.05,
            )


@part("schedules", "ludus/algorithms/ppo/role.py")
def schedules_are_followed(s: Session) -> None:
    """Learning rates of actor and critic, discount, clip and the entropy's weight are what their
    schedules say at this share of the budget."""
    for name in ("plain", "two memories"):
        lesson = s.lesson(name)
        c = lesson.config.learner
        for mine in lesson.roles.values():
            for group in mine.role.optimizer.param_groups:
                own = group["name"] == "critic" and c.value_learning_rate is not None
                wanted = at_share(c.value_learning_rate if own else c.learning_rate)
                close(f"learning rate of the {group['name']} ({name})", float(group["lr"]), wanted)
            for what in ("gamma", "clip", "entropy"):
                close(f"{what} ({name})", getattr(mine.role, what), at_share(getattr(c, what)))


@part("observation normaliser", "ludus/networks/normalise.py")
def observation_statistics_are_those_of_valid_rows(s: Session) -> None:
    """After an update, mean and variance of all observations of learning agents so far; bots,
    resets and the dead stay out."""
    for name in ("plain", "memory"):
        for role, mine in s.lesson(name).roles.items():
            r, p = mine.rollouts[1], mine.before
            seen = r["observation"][:ROLLOUT][r["valued"]].double()
            expected = reference.merged(p, "observation_norm", seen)
            for what, value in zip(("mean", "var", "count"), expected, strict=True):
                close(
                    f"observation_norm.{what} of {role} ({name})",
                    mine.after[f"observation_norm.{what}"],
                    value,
                    1e-3,
                )


@part("minibatches", PPO)
def every_row_is_learned_from_once_a_pass(s: Session) -> None:
    """A pass deals all chunks that have a valid row out to its minibatches, each once, in an order
    that changes."""
    algorithm = s.lesson("plain").algorithm
    valid = torch.rand(3, 40, device=s.device) < 0.3
    orders = []
    for _ in range(2):
        parts = [p.cpu() for p in algorithm.shuffled(valid, 4)]
        holds(f"a pass of 4 minibatches has {len(parts)}", len(parts) == 4)
        dealt = torch.cat(parts)
        useful = valid.any(0).nonzero().squeeze(1).cpu() if s.device == "cpu" else torch.arange(40)
        same("chunks of a pass", dealt.sort().values, useful)
        orders.append(dealt)
    holds("two passes deal the chunks out in the same order", not torch.equal(*orders))


@part("minibatches", PPO)
def updates_are_as_many_as_asked_for(s: Session) -> None:
    """Epochs times minibatches updates an iteration; fewer only where target_kl is passed; none
    with a learning rate of 0."""
    for settings, updates in (
        (dict(epochs=3, minibatches=4), 12),
        (dict(epochs=6, learning_rate=0.1, target_kl=1e-4), 2),
        (dict(learning_rate=0.0), 0),
        (dict(epochs=2, roles={"right": {"epochs": 5}}), 5),
    ):
        algorithm = s.make_ppo(s.ppo_config(dict(hidden=(8,)), settings))
        algorithm.collect(nothing)
        algorithm.learn(SHARE)
        steps = [
            int(state["step"])
            for state in algorithm.roles["right"].optimizer.state.values()
            if "step" in state
        ]
        holds(
            f"{max(steps, default=0)} updates instead of {updates} with {settings}",
            max(steps, default=0) == updates,
        )


@part("target_kl", PPO)
def the_divergence_of_a_pass_is_a_mean(s: Session) -> None:
    """What target_kl is compared with is the mean over the minibatches of a pass, however many
    there are."""
    algorithm = s.make_ppo(
        s.ppo_config(dict(hidden=(8,)), dict(epochs=1, minibatches=4, learning_rate=0.05))
    )
    algorithm.collect(nothing)
    metrics = algorithm.learn(SHARE)
    told = metrics["learner/right/approx_kl"]
    close(
        "the divergence of a pass, over the mean of its minibatches",
        algorithm.roles["right"].pass_kl / told,
        1.0,
        1e-3,
    )


@part("invalid rows", PPO)
def invalid_rows_teach_nothing(s: Session) -> None:
    """Whatever stands in rows that are neither valid nor idle, the gradient is the same."""
    gradients = []
    for garbage in (False, True):
        torch.manual_seed(5)
        algorithm = s.make_ppo(
            s.ppo_config(dict(hidden=(8,)), dict(epochs=1, normalise_values=False))
        )
        algorithm.collect(nothing)
        role = algorithm.roles["right"]
        r, bad = role.rollout, ~role.rollout.valued
        if garbage:
            r.log_prob[bad], r.raw[bad], r.reward[bad] = -50.0, 3.0, 1e4
            r.observation[:-1][bad] = 7.0
        keep = r.value.clone()
        algorithm.learn(SHARE)
        same("values that were stored", r.value, keep)
        gradients.append(torch.cat([p.grad.flatten() for p in role.parameters]))
    # a reset row's reward reaches no valid row: the episode before it is over
    close("gradients with garbage in invalid rows", gradients[1], gradients[0], 1e-4)


CHECKS = (
    schedules_are_followed,
    advantages_are_discounted_and_cut_at_ends,
    targets_are_advantage_plus_value,
    advantages_are_standardised_over_valid_rows,
    value_statistics_are_those_of_the_targets,
    advantages_are_recomputed,
    losses_are_those_of_the_paper,
    every_module_is_updated,
    gradients_reach_every_parameter,
    every_parameter_is_moved_by_adam,
    invalid_rows_teach_nothing,
    observation_statistics_are_those_of_valid_rows,
    every_row_is_learned_from_once_a_pass,
    updates_are_as_many_as_asked_for,
    the_divergence_of_a_pass_is_a_mean,
)
