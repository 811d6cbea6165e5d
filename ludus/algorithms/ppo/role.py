"""What one role learns with by PPO, beside its policy and rollout."""

from __future__ import annotations

import torch

from ludus.algorithms.on_policy import Role
from ludus.algorithms.ppo.next_observation import NextObservation
from ludus.config import Config
from ludus.config.schedules import parse
from ludus.networks.network import Auxiliary
from ludus.protocols import Batch

OF_VALID_ROWS = ("explained_variance", "advantage_std", "value_mean", "return_mean")
OVERVIEW = (*OF_VALID_ROWS, "invalid_share", "valid_rows")
LOSSES = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")


class PPORole(Role):
    def __init__(self, name: str, agents: slice, batch: Batch, config: Config) -> None:
        super().__init__(name, agents, batch, config)
        losses = (f"{auxiliary.name}_loss" for auxiliary in self.auxiliaries)
        self.summed = (*LOSSES, *losses, "grad_norm", "clipped_updates", "updates")
        self.sums = torch.zeros(len(self.summed), device=config.device)
        self.pass_kl = torch.zeros((), device=config.device)
        self.no_valid_row = torch.zeros((), device=config.device)
        self.clip, self.entropy = (torch.zeros((), device=config.device) for _ in range(2))
        self.overview = torch.zeros(len(OVERVIEW), device=config.device)
        self.entropy_matters = any(parse(self.config.entropy).values)
        self.highest_rate = 0.0

    @staticmethod
    def chunk_of(config: Config) -> int:
        return getattr(config.learner, "bptt", None) or 1

    def make_auxiliaries(self) -> list[Auxiliary]:
        weight = self.config.auxiliary
        own: list[Auxiliary] = [NextObservation(self.policy, weight)] if weight else []
        return own + super().make_auxiliaries()

    def set_schedules(self, progress: float) -> float:
        c = self.config
        actor = super().set_schedules(progress)
        self.clip.fill_(parse(c.clip)(progress))
        self.entropy.fill_(parse(c.entropy)(progress))
        critic = actor
        if c.value_learning_rate is not None:
            critic = parse(c.value_learning_rate)(progress)
            self.set_rates({"actor": actor, "critic": critic})
        self.highest_rate = max(actor, critic)
        return actor

    def tensors(self) -> list[torch.Tensor]:
        return [*super().tensors(), self.sums]
