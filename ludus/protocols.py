"""What different kinds of one thing have in common: envs of our games and of other libraries, and
those who act in them. Code that works with any of them asks for these, not for a class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

    from ludus.networks.encoders import Part
    from ludus.networks.heads import ActionSpace
    from ludus.networks.normalise import RunningNorm
    from ludus.networks.policy import Output
    from ludus.sim.game import Goal, Param, Phase, Term
    from ludus.sim.game import Role as GameRole
    from ludus.sim.layout import Seats, Seen


class RoleActions(Protocol):
    """What the agents of a role can do: the names of numbers and keys, the options of choices, and
    where in the action mask the flags of each begin (-1: it has none)."""

    @property
    def continuous(self) -> list[str]: ...
    @property
    def binary(self) -> list[str]: ...
    @property
    def choices(self) -> dict[str, list[str]]: ...
    @property
    def binary_mask_at(self) -> list[int]: ...
    @property
    def choice_mask_at(self) -> list[int]: ...


class Layout(Protocol):
    """Names and sizes of what agents see and do. Arrays are as wide as the widest role needs."""

    @property
    def num_agents(self) -> int: ...
    @property
    def seats(self) -> list[Seats]: ...
    @property
    def observation(self) -> list[str]: ...
    @property
    def seen(self) -> Mapping[str, Seen]: ...
    @property
    def continuous(self) -> list[str]: ...
    @property
    def binary(self) -> list[str]: ...
    @property
    def choices(self) -> dict[str, list[str]]: ...
    @property
    def terms(self) -> list[str]: ...
    @property
    def goals(self) -> list[str]: ...
    @property
    def sizes(self) -> Mapping[str, int]: ...

    def actions_of(self, role: str) -> RoleActions:
        """What a role can do."""

    def observation_of(self, role: str) -> list[str]:
        """The entries that are a role's own: those after them are always zero."""

    def describe(self) -> dict[str, Any]:
        """Named layouts, as `game.json` and checkpoints keep them."""


class GameFacts(Protocol):
    """What is known of a game; of an env of another library little more than its name."""

    @property
    def name(self) -> str: ...
    @property
    def roles(self) -> Sequence[GameRole]: ...
    @property
    def params(self) -> Mapping[str, Param]: ...
    @property
    def rewards(self) -> Mapping[str, Term]: ...
    @property
    def goal_metrics(self) -> Mapping[str, Goal]: ...
    @property
    def step(self) -> Sequence[Phase]: ...


class Batch(Protocol):
    """Envs that are stepped together. Arrays are [env, …] or [env, agent, …]; what they mean, and
    when an episode ends, is the same whatever is inside.

    Our games have a `ludus.sim.Batch`, which can do more (opponents, tasks, stages); envs of other
    libraries a `ludus.external.foreign.ForeignBatch`.
    """

    num_envs: int
    device: str
    arrays: dict[str, Any]

    @property
    def layout(self) -> Layout: ...
    @property
    def game(self) -> GameFacts: ...
    @property
    def controllers(self) -> Mapping[str, Mapping[str, int]]:
        """role → bot → its number in `controller`."""

    def __getitem__(self, name: str) -> Any:
        """An array by name."""

    def tensor(self, name: str) -> Tensor:
        """The same memory as a torch tensor."""

    def numpy(self, name: str) -> np.ndarray:
        """A copy on the host."""

    def step(self) -> None:
        """One step of every env, with the actions that are in the arrays. Finished envs reset
        instead."""

    def set_controller(
        self, role: str, name: str, envs: Any = slice(None), team: int | None = None
    ) -> None:
        """Hands the agents of a role (of one team) to a bot, or back to the policy."""

    def read_statistics(self) -> dict[str, dict[str, float]]:
        """Per role, over the episodes finished since the last call."""

    def read_valid_steps(self) -> int:
        """Agent-steps since the last call. Reset rows, dead and idle agents do not count."""

    def read_spent(self) -> tuple[float, float, float]:
        """Since the last call: seconds of steps that went into resets and into waiting for envs
        elsewhere, and CPU time of other processes."""

    def received(self) -> dict[str, Any]:
        """The game as the simulator holds it now."""

    def check_received(self, varied: Mapping[str, Any] | None = None) -> None:
        """Raises if the simulator does not hold what it was given."""

    def fingerprint(self) -> str:
        """A hash of the game as received."""

    def state(self) -> dict[str, np.ndarray]:
        """What can be saved of it, as copies on the host."""

    def resume_state(self, state: Mapping[str, np.ndarray], seed: int) -> bool:
        """Goes on from `state()`. False: the episodes could not be saved, and others start from
        this seed."""


class ActingPolicy(Protocol):
    """The network that acts for a role, with its normalisers, or one that stands for it."""

    @property
    def space(self) -> ActionSpace: ...
    @property
    def seen(self) -> Mapping[str, Part]:
        """What it sees beside the observation's numbers."""

    @property
    def state_size(self) -> int:
        """Numbers per row that it remembers."""

    @property
    def entries(self) -> int:
        """Entries of the observation."""

    @property
    def normalise_observation(self) -> bool: ...
    @property
    def observation_norm(self) -> RunningNorm: ...

    def __call__(
        self,
        observation: Tensor,
        state: Tensor,
        starts: Tensor,
        mask: Tensor | None = None,
        seen: Mapping[str, Tensor] | None = None,
    ) -> Output:
        """[steps, rows, …] of everything, and the state [rows, state_size] before the first
        step."""

    def initial_state(self, rows: int) -> Tensor: ...

    def remembered(self, observation: Tensor) -> Tensor:
        """What a history keeps of an observation, for a policy that sees one."""

    def expected_reward(self, value: Tensor) -> Tensor:
        """A value of its output in units of the game's reward."""

    # as of any torch module

    def eval(self) -> Self: ...
    def to(self, device: str) -> Self: ...
    def requires_grad_(self, requires_grad: bool = True) -> Self: ...
    def state_dict(self) -> dict[str, Tensor]: ...
    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> Any: ...
    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...
    def named_buffers(self) -> Iterator[tuple[str, Tensor]]: ...
    def modules(self) -> Iterator[nn.Module]: ...
    def named_modules(self) -> Iterator[tuple[str, nn.Module]]: ...


class Player(Protocol):
    """A frozen policy that acts for some agents of a batch: an opponent, or one that is
    measured."""

    def act(self) -> None:
        """Writes the actions of its rows into the batch, and keeps what it remembers."""

    def memory(self) -> list[Tensor]:
        """What it remembers of the episodes it is in, as the tensors that hold it."""
