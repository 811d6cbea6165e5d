"""Which agents share a policy, and what an agent may be called."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def why_unusable(agent: object) -> str | None:
    """Roles are named after agents, and options (ppo.roles.ROLE), metrics and files after
    roles."""
    if isinstance(agent, str) and NAME.fullmatch(agent) and not keyword.iskeyword(stem(agent)):
        return None
    return (
        "cannot name a role: use at most 64 letters a to z, digits and _, a letter first, and "
        "no word of Python"
    )


def stem(agent: str) -> str:
    """The name without its number: hider_0 and hider_1 are hiders."""
    return re.sub(r"_?\d+$", "", agent) or agent


def roles_by_name(agents: Sequence[str]) -> dict[str, list[str]]:
    """Agents by role, where only their names tell."""
    roles: dict[str, list[str]] = {}
    for agent in agents:
        roles.setdefault(stem(agent), []).append(agent)
    return roles
