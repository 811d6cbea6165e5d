"""Policies from a checkpoint or a snapshot, without a trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ludus.errors import LudusError
from ludus.learn.algorithm import make_policy
from ludus.policies.policy import Policy
from ludus.training import checkpoint
from ludus.training.run import Run, split_reference
from ludus.training.sources import layout_of


def load_policies(reference: str) -> tuple[dict[str, Policy], dict[str, Any]]:
    """Every role's policy on the CPU, and the layout they act in (with the step they are from)."""
    folder, mark = split_reference(reference)
    run = Run(folder)
    step = checkpoint.find(run, mark)
    manifest = checkpoint.read_manifest(run, step)
    tensors = checkpoint.read(run, step, manifest, "policy.safetensors")
    policies, layout = make_policies(run, tensors, manifest["layout"], f"{folder}@{step}")
    return policies, {**layout, "step": step}


def make_policies(
    run: Run, tensors: Mapping[str, torch.Tensor], saved_layout: Mapping[str, Any], where: str
) -> tuple[dict[str, Policy], dict[str, Any]]:
    """Networks as the run's config has them, with these weights (role/name); and the layout they act in."""
    config = run.config()
    config.device = "cpu"
    layout, _ = layout_of(config)
    policies = {}
    for seats in layout.seats:
        policy = make_policy(layout, config, seats.role)
        mine = checkpoint.fit_layout(checkpoint.split(tensors, seats.role), saved_layout, layout.describe(), where)
        policy.load_state_dict({n: t for n, t in mine.items() if "/" not in n})
        policies[seats.role] = policy.eval()
    return policies, layout.describe()


def check_same_layout(a: Mapping[str, Any], b: Mapping[str, Any], what: str) -> None:
    for part in ("observation", "seen", "action", "actions_by_role", "roles"):
        if a.get(part) != b.get(part):
            raise LudusError(f"{what} differ in their {part}: a policy of one cannot play the other")
