"""Which agents share a policy."""

from __future__ import annotations

import re
from collections.abc import Sequence


def stem(agent: str) -> str:
    """The name without its number: hider_0 and hider_1 are hiders."""
    return re.sub(r"_?\d+$", "", agent) or agent


def roles_by_name(agents: Sequence[str]) -> dict[str, list[str]]:
    """Agents by role, where only their names tell."""
    roles: dict[str, list[str]] = {}
    for agent in agents:
        roles.setdefault(stem(agent), []).append(agent)
    return roles
