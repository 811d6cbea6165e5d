"""REINFORCE with a baseline, as an algorithm of one's own: a file anywhere on the Python path.

    ludus train pursuit --algorithm reinforce:Reinforce --reinforce.learning-rate "3e-3 -> 0"

`OnPolicy` plays the rollouts. What is left is the loss: every row that an agent decided something
in is made more likely by its return, minus the value that was predicted for it.
"""

import math
from dataclasses import dataclass

import torch

import ludus
from ludus.algorithms.advantage import (
    explained_variance,
    generalised_advantages,
    masked_mean,
    standardise,
)
from ludus.config.schedules import Scalar

LOGGED = ("policy_loss", "value_loss", "entropy", "explained_variance", "grad_norm")


@dataclass(kw_only=True)
class ReinforceConfig(ludus.AlgorithmConfig):
    """REINFORCE with a baseline."""

    learning_rate: Scalar = "3e-3 -> 0"
    """Step size of Adam."""
    entropy: float = 0.003
    """Weight of the entropy bonus."""
    value_weight: float = 0.5
    """Weight of the baseline's loss."""
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this norm."""


class Reinforce(ludus.OnPolicy):
    """One update from each rollout."""

    settings = ReinforceConfig

    def learn_role(self, role, progress):
        """Updates one role; what it returns is logged as learner/ROLE/KEY."""
        rate = role.set_schedules(progress)
        told = {}
        if rate > 0 and bool(role.rollout.valid.any()):
            self.set_targets(role)
            told = self.update(role)
            told["entropy_share"] = told["entropy"] / max(1e-9, role.space.max_entropy)
        return {**told, "lr": rate}

    @torch.no_grad()
    def set_targets(self, role):
        """Returns to the end of the rollout (λ = 1), with its last value as what comes after."""
        r = role.rollout
        ends = (r.terminated, r.truncated, r.idle)
        generalised_advantages(r.reward, r.value, *ends, role.gamma, 1.0, r.advantage, r.target)
        r.standardised.copy_(standardise(r.advantage, r.valid))
        role.policy.update_value_norm(r.target, r.valued)

    def update(self, role):
        """One step of the optimizer. Reset rows, the dead and the idle teach no action; the value
        is learned on idle rows, too."""
        r, c = role.rollout, role.config
        with self.precision():
            output = role.output()
        log_prob = output.distribution.log_prob(role.actions())
        error = output.value - role.policy.normal_value(r.target)
        losses = {
            "policy_loss": -masked_mean(log_prob * r.standardised, r.valid),
            "value_loss": 0.5 * masked_mean(error.square(), r.valued),
            "entropy": masked_mean(output.distribution.entropy(), r.valid),
        }
        loss = losses["policy_loss"] + c.value_weight * losses["value_loss"]
        role.optimizer.zero_grad()
        (loss - c.entropy * losses["entropy"]).backward()
        norm = torch.nn.utils.clip_grad_norm_(role.parameters, c.max_grad_norm)
        role.optimizer.step()
        explained = explained_variance(r.value[:-1], r.target, r.valid)
        told = torch.stack([*losses.values(), explained, norm]).tolist()
        metrics = dict(zip(LOGGED, told, strict=True))
        if math.isnan(metrics["explained_variance"]):  # all returns are alike: nothing to explain
            del metrics["explained_variance"]
        return metrics
