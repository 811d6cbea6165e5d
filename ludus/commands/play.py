"""ludus play"""

from __future__ import annotations

from dataclasses import dataclass

from ludus.commands.parsing import parse
from ludus.commands.view import View, show


@dataclass(kw_only=True)
class Play(View):
    """Play yourself, in the browser: against a RUN's newest policies, or in a GAME against bots.
    Keys are shown on the page."""

    agent: int = 0
    """Number of the agent you play."""


def main(arguments: list[str]) -> int:
    options = parse(Play, arguments, "play", "ludus play runs/brawl-1   ·   ludus play racing")
    return show(options, take=options.agent)
