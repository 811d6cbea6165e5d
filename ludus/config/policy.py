"""Settings of the network of each role."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated

from ludus.config.limits import AtLeast, OneOf
from ludus.config.network import NetworkConfig
from ludus.errors import LudusError
from ludus.imports import in_one_sentence, section_name
from ludus.registry import NETWORKS

# of PolicyConfig: by the name of an action entry
OF_ACTIONS = ("initial_log_std_of", "initial_mean_of")


def settings_of_network(name: str) -> type[NetworkConfig]:
    """The dataclass of the settings that a network brings."""
    taken = {*(f.name for f in fields(PolicyConfig)), *dir(PolicyConfig)}
    NETWORKS.refuse_taken(name, taken, "the policy's own")
    return NETWORKS.settings_of(name, NetworkConfig)


@dataclass(kw_only=True)
class PolicyConfig:
    """The network of each role."""

    network: str = "standard"
    """What turns observations into features, before memory: standard, strategy (with a transformer
    over the history of the opponent) or your own, package.module:Class."""
    network_settings: NetworkConfig = None  # type: ignore[assignment]  # filled in below
    """Settings that the network brings, as policy.NAME.KEY."""
    hidden: Annotated[tuple[int, ...], AtLeast(1)] = (128, 128)
    """Sizes of the hidden layers."""
    activation: Annotated[str, OneOf(("tanh", "relu", "silu"))] = "tanh"
    """tanh, relu or silu."""
    memory: Annotated[str, OneOf(("none", "lstm"))] = "none"
    """none or lstm."""
    memory_size: Annotated[int, AtLeast(1)] = 128
    """Units of the LSTM."""
    sets: tuple[str, ...] = ()
    """Things of a kind in the observation, by what comes before their number: mate reads mate0_…,
    mate1_… with the same weights and in any order. Empty: every entry has weights of its own."""
    separate_value: bool = True
    """A value network of its own, instead of a head on the actor's."""
    normalise_observation: bool = True
    """Running mean and deviation of every observation entry."""
    state_dependent_std: bool = False
    """The spread of continuous actions is an output of the network, instead of one parameter per
    entry."""
    initial_log_std: float = -0.5
    """Log of the spread of continuous actions at the start."""
    initial_log_std_of: dict[str, float] = field(default_factory=dict)
    """The same for single action entries, such as turn -1.5."""
    initial_mean_of: dict[str, float] = field(default_factory=dict)
    """Mean of single continuous actions at the start, before they are squashed to -1 .. 1 (default:
    0): forward 1 walks ahead."""
    initial_key_logit: float = 0.0
    """Logit of pressing a key at the start: -1 presses it 27% of the time."""
    quiet_inputs: tuple[str, ...] = ()
    """Observation entries, by the beginning of their name, that the network does not hear at the
    start (zero weights): many entries of little meaning, such as rays, drown the few that matter
    until the network has learned to tell them apart."""

    def __post_init__(self) -> None:
        if self.network_settings is None:
            self.network_settings = settings_of_network(self.network)()

    def choose_network(self, name: str) -> None:
        """Another network; its settings are those that it has by default."""
        if name != self.network:
            kind = settings_of_network(name)
            with in_one_sentence(f"the settings of the network '{name}' cannot be made"):
                self.network, self.network_settings = name, kind()

    @property
    def section(self) -> str:
        """Of the network's own settings, within `policy`."""
        return section_name(self.network)

    def check(self) -> None:
        """Refuses settings that cannot work together."""
        with in_one_sentence(f"check of the settings of {self.network} failed"):
            self.network_settings.check()
        if self.sets and self.normalise_observation:
            raise LudusError(
                "policy.sets needs policy.normalise_observation False: statistics of its own for "
                "every entry tell members apart"
            )
        if self.sets and not self.hidden:
            raise LudusError(
                "policy.sets joins in the first hidden layer: give policy.hidden a layer"
            )
