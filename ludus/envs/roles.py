"""Which agents share a policy, and what an agent may be called."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def why_unusable(agent: str) -> str | None:
    """Roles are named after agents, and metrics, options and files after roles."""
    if NAME.fullmatch(agent):
        return None
    return "has a name that files and metrics cannot have: use up to 64 of the letters a to z, digits, _ and -"


def stem(agent: str) -> str:
    """The name without its number: hider_0 and hider_1 are hiders."""
    return re.sub(r"_?\d+$", "", agent) or agent


def roles_by_name(agents: Sequence[str]) -> dict[str, list[str]]:
    """Agents by role, where only their names tell."""
    roles: dict[str, list[str]] = {}
    for agent in agents:
        roles.setdefault(stem(agent), []).append(agent)
    return roles
