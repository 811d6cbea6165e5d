"""Policies from a checkpoint or a snapshot, without a trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ludus.algorithms.algorithm import make_policy
from ludus.batches import game_info, is_foreign
from ludus.errors import LudusError
from ludus.external.layout import ForeignLayout
from ludus.external.spaces import codecs_of
from ludus.protocols import ActingPolicy, Layout
from ludus.runs import checkpoint
from ludus.runs.run import Run, split_reference


def load_policies(
    reference: str, layout: Layout | None = None
) -> tuple[dict[str, ActingPolicy], dict[str, Any]]:
    """Every role's policy on the CPU, and the layout they act in (with the step they are from): by
    default the game's as it is now."""
    saved = checkpoint.find_checkpoint(reference)
    policies, described = make_policies(
        saved.run, saved.tensors("policy"), saved.manifest["layout"], saved.where, layout
    )
    return policies, {**described, "step": saved.step}


def external_layout(reference: str) -> ForeignLayout | None:
    """The layout of a run in envs of another library, from its folder; None for games, and for envs
    elsewhere."""
    run = Run(split_reference(reference)[0])
    config = run.settings()
    if not is_foreign(config.game) or config.game.startswith("remote:"):
        return None
    described = run.read_json("game.json").get("spaces")
    if not isinstance(described, dict):
        raise LudusError(
            f"{run.path / 'game.json'} does not say what is seen and done in {config.game[:80]}: "
            "it was changed"
        )

    codecs = codecs_of(described)
    roles = {role: kept["agents"] for role, kept in described.items()}
    return ForeignLayout(
        config.game, roles, [codecs[role] for role, agents in roles.items() for _ in agents]
    )


def make_policies(
    run: Run,
    tensors: Mapping[str, torch.Tensor],
    saved_layout: Mapping[str, Any],
    where: str,
    layout: Layout | None = None,
) -> tuple[dict[str, ActingPolicy], dict[str, Any]]:
    """Networks as the run's config has them, with these weights (role/name); and the layout they
    act in."""
    config = run.config(plays=layout is None)
    config.device = "cpu"
    layout = layout or game_info(config, bots=()).layout  # bots change nothing in it
    policies = {}
    for seats in layout.seats:
        policy = make_policy(layout, config, seats.role)
        mine = checkpoint.fit_layout(
            checkpoint.split(tensors, seats.role),
            saved_layout,
            layout.describe(),
            where,
            config.policy.network,
        )
        try:
            policy.load_state_dict({n: t for n, t in mine.items() if "/" not in n})
        except RuntimeError as error:
            raise LudusError(
                f"{where} does not fit the network {config.policy.network} as it is now "
                f"({str(error).splitlines()[-1].strip()}): its code has changed since the run"
            ) from None
        policies[seats.role] = policy.eval()
    return policies, layout.describe()


def check_same_layout(a: Mapping[str, Any], b: Mapping[str, Any], what: str) -> None:
    for part in ("observation", "seen", "action", "actions_by_role", "roles"):
        if a.get(part) != b.get(part):
            raise LudusError(
                f"{what} differ in their {part}: a policy of one cannot play the other"
            )
