"""Where a run stands; part of every checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ludus.runs.budget import Anchor


@dataclass
class Progress:
    iteration: int = 0
    agent_steps: int = 0
    env_steps: int = 0
    updates: int = 0
    episodes: int = 0
    seconds: float = 0.0
    evaluated_at_steps: int = 0
    evaluated_at_seconds: float = 0.0
    sampled_episodes: int = 0
    evaluations: int = 0
    best: dict[str, Any] = field(default_factory=dict)
    schedule_share: float = 0.0
    anchor: Anchor = field(default_factory=Anchor)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Progress:
        return Progress(**{**data, "anchor": Anchor(**data["anchor"])})


def stream_seed(seed: int, iteration: int, stream: str) -> int:
    """A seed for one use in one iteration."""
    digest = hashlib.sha256(f"{seed}/{iteration}/{stream}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
