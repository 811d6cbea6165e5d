"""Policies from a checkpoint, without a trainer."""

from __future__ import annotations

from typing import Any

from ludus.policies.heads import action_space
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
    config = run.config()
    config.device = "cpu"
    layout, _ = layout_of(config)
    tensors = checkpoint.read(run, step, manifest, "policy.safetensors")
    policies = {}
    for seats in layout.seats:
        policy = Policy(layout.observation, action_space(layout, config.policy.state_dependent_std), config.policy, layout.seen)
        mine = checkpoint.fit_layout(
            checkpoint.split(tensors, seats.role), manifest["layout"], layout.describe(), f"{folder}@{step}"
        )
        policy.load_state_dict({n: t for n, t in mine.items() if not n.startswith("predictor.")})
        policies[seats.role] = policy.eval()
    return policies, {**layout.describe(), "step": step}
