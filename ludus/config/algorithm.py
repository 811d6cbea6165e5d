"""Settings that every learning algorithm has. One of your own inherits them and adds more."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from ludus.config.limits import Above, AtLeast, Between, check_limits
from ludus.config.schedules import Scalar
from ludus.errors import LudusError, nearest
from ludus.protocols import Layout

if TYPE_CHECKING:
    from ludus.config.experiment import Config


@dataclass(kw_only=True)
class AlgorithmConfig:
    """What every algorithm is asked for. Its methods say what the settings come to; what they
    return here suits an algorithm that makes one update from each rollout."""

    gamma: Annotated[Scalar, Between(0, 1)] = 0.99
    """Discount per step."""
    learning_rate: Annotated[Scalar, Between(0, 1)] = 3e-4
    """Step size of the optimizer."""
    reward_scale: Annotated[float, Above(0)] = 1.0
    """Rewards are multiplied by this before learning; never clipped."""
    rollout: Annotated[int, AtLeast(1)] = 32
    """Steps of every env in one iteration."""

    if TYPE_CHECKING:  # what an algorithm has beside these is known to its own code and recipes

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Preset → its values: of these settings by name, of other sections by the dotted name."""

    def for_role(self, role: str) -> Self:
        """The settings that a role is learned with."""
        return self

    def resolve(self, config: Config) -> None:
        """Fills in what is derived from other settings."""

    def check(self, config: Config, rows: Mapping[str, int]) -> None:
        """Refuses settings that cannot work together. `rows`: agents of each role, in all envs."""

    def check_game(self, config: Config, layout: Layout, longest: float | None) -> None:
        """Refuses a game that these settings cannot learn. `longest`: steps of an episode."""

    def learning_rates(self, roles: Sequence[str]) -> dict[str, Scalar]:
        """By the names that they are set by within the section."""
        return {"learning_rate": self.learning_rate}

    # -- what a run with these settings comes to ---------------------------------------------------

    def updates(self, agent_steps: int, rows: int) -> float:
        """Steps of the optimizer in so many agent-steps. `rows`: agents of all envs."""
        return agent_steps / (self.rollout * rows)

    def kept_rows(self, rows: int) -> int:
        """Agent-steps that are kept to be learned from."""
        return self.rollout * rows

    def random_actions(self, agent_steps: float, episodes: float) -> float | None:
        """The share of random actions after so many agent-steps and episodes; None: the algorithm
        explores in another way."""
        return None

    @property
    def explores_by_noise(self) -> bool:
        """Does something else than random actions explore?"""
        return False

    @property
    def before_first_update(self) -> int:
        """Agent-steps that are only collected."""
        return 0

    # -- smaller versions, for trying things out ---------------------------------------------------

    def small(self, steps: int) -> Self:
        """One update per iteration, from about so many steps of every env."""
        return dataclasses.replace(self, rollout=min(self.rollout, steps))

    def timed(self, envs: int) -> Self:
        """A short iteration whose parts take the share of the time that they take in a long one."""
        return dataclasses.replace(self, rollout=min(self.rollout, 4))

    def quick(self) -> Self:
        """What learns a single episode by repetition, within seconds and from a few envs."""
        return self


@dataclass(kw_only=True)
class RoleConfig(AlgorithmConfig):
    """Settings of an algorithm that can learn each role with values of its own."""

    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Different values for a role, as SECTION.roles.ROLE.KEY."""

    same_for_roles: ClassVar[tuple[str, ...]] = ("rollout", "roles")
    """What cannot differ between roles."""

    @classmethod
    def of_roles(cls) -> list[str]:
        """Settings that a role can have a value of its own for."""
        return [f.name for f in dataclasses.fields(cls) if f.name not in cls.same_for_roles]

    def for_role(self, role: str) -> Self:
        return dataclasses.replace(self, **self.roles.get(role, {}), roles={})

    def set_for_role(self, section: str, role: str, key: str, value: Any) -> None:
        if key not in self.of_roles():
            shared = key in self.same_for_roles
            reason = "is the same for all roles" if shared else nearest(key, self.of_roles())
            raise LudusError(f"{section}.roles.{role}.{key} cannot be set: {reason}")
        self.roles.setdefault(role, {})[key] = value

    def check(self, config: Config, rows: Mapping[str, int]) -> None:
        section = config.section
        for role, values in self.roles.items():
            if role not in rows:
                raise LudusError(
                    f"{section}.roles.{role}: the game has no role '{role}': {nearest(role, rows)}"
                )
            for key, value in list(values.items()):
                self.set_for_role(section, role, key, value)
            check_limits(self.for_role(role), f"{section}.roles.{role}.")

    def learning_rates(self, roles: Sequence[str]) -> dict[str, Scalar]:
        own = {
            f"roles.{role}.learning_rate": self.for_role(role).learning_rate
            for role in roles
            if role in self.roles
        }
        return {**super().learning_rates(roles), **own}

    def without(self, *keys: str) -> dict[str, dict[str, Any]]:
        """`roles` without their own values of these settings."""
        return {
            role: {k: v for k, v in values.items() if k not in keys}
            for role, values in self.roles.items()
        }
