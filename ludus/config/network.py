"""Settings that a network brings: the section policy.NAME. One of your own inherits these."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ludus.protocols import Layout

if TYPE_CHECKING:
    from ludus.config.experiment import Config


@dataclass(kw_only=True)
class NetworkConfig:
    """A network without settings of its own."""

    if TYPE_CHECKING:  # what a network has is known to its own code and recipes

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def resolve(self) -> None:
        """Fills in what is derived from other settings."""

    def check(self) -> None:
        """Refuses settings that cannot work together."""

    def check_game(self, config: Config, layout: Layout) -> None:
        """Refuses a game that a network with these settings cannot learn."""

    def meaning(self, loaded: Collection[str]) -> dict[str, Any]:
        """Settings without which the same weights compute something else; as long as a network does
        not say which, all of them. `loaded`: the names of the weights in question."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def large(self) -> bool:
        """Is an update of a few thousand rows slow on a processor?"""
        return False
