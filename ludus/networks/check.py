"""Settings of networks that do not fit a game's observations and actions."""

from __future__ import annotations

import torch
from torch import Tensor

from ludus.config import OF_ACTIONS, Config
from ludus.errors import FAULTS, LudusError, nearest
from ludus.imports import is_path, where_raised
from ludus.networks.encoders import Part, example
from ludus.networks.history import HISTORY
from ludus.networks.network import Observation
from ludus.networks.policy import aligned, make_network, network_class
from ludus.networks.sets import sets_of
from ludus.networks.standard import StandardNetwork
from ludus.protocols import Layout

STEPS, ROWS = 2, 3  # of what a network of the user's own is tried on


def check_network(config: Config, layout: Layout) -> None:
    """Refuses names of entries that there are not, parts that have nothing to join, and a network
    that does not give what it says."""
    policy, network = config.policy, network_class(config.policy.network)
    for key in OF_ACTIONS:
        for entry in getattr(policy, key):
            if entry not in layout.continuous:
                raise LudusError(f"policy.{key}.{entry}: {nearest(entry, layout.continuous)}")
    for prefix in policy.quiet_inputs:
        if not any(name.startswith(prefix) for name in layout.observation):
            raise LudusError(
                f"policy.quiet_inputs names '{prefix}', but no observation entry begins so: "
                f"{nearest(prefix, layout.observation)}"
            )
    sets_of(layout.observation, policy.sets)
    policy.network_settings.check_game(config, layout)
    ours = issubclass(network, StandardNetwork)
    if ours and layout.seen and not policy.hidden:
        raise LudusError(
            f"{config.game} has pictures or tokens, which join in the first hidden layer: give "
            "policy.hidden a layer"
        )
    if policy.sets and not ours:
        raise LudusError(
            "policy.sets is read by the standard network, and this run has "
            f"{policy.network}: leave it empty"
        )
    if is_path(policy.network):
        try_network(config, layout)


def try_network(config: Config, layout: Layout) -> None:
    """Refuses a network of the user's own that cannot be made, or gives another shape than it
    says."""
    name, entries = config.policy.network, layout.observation
    try:
        history = network_class(name).history(entries, config.policy)
        seen: dict[str, Part] = {
            **layout.seen,
            **({HISTORY: history} if history is not None else {}),
        }
        observation = Observation(tuple(entries), aligned(len(entries)), seen)
        network = make_network(observation, config.policy)
    except LudusError:
        raise
    except FAULTS as error:
        raise LudusError(
            f"the network '{name}' cannot be made for {config.game}: {where_raised(error)}"
        ) from error
    if config.policy.quiet_inputs and network.input_weight is None:
        raise LudusError(
            "policy.quiet_inputs sets the first weights to zero, and the network "
            f"'{name}' does not say which those are: leave it empty, or add the property "
            "input_weight"
        )
    outputs = getattr(network, "outputs", None)
    if not isinstance(outputs, int) or outputs < 1:
        raise LudusError(
            f"the network '{name}' does not say how many features it gives: set self.outputs in "
            f"__init__ to a whole number (it is {outputs!r})"
        )
    numbers = torch.zeros(STEPS, ROWS, observation.size)
    pictures = {n: example(part, STEPS, ROWS) for n, part in seen.items()}
    try:
        with torch.no_grad():
            encoded = network(numbers, pictures)
    except LudusError:
        raise
    except FAULTS as error:
        raise LudusError(
            f"the network '{name}' fails on observations of {config.game} (numbers "
            f"{list(numbers.shape)}): {where_raised(error)}"
        ) from error
    features = encoded[0] if isinstance(encoded, tuple) else encoded
    wanted = (STEPS, ROWS, outputs)
    if not isinstance(features, Tensor) or tuple(features.shape) != wanted:
        got = list(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise LudusError(
            f"the network '{name}' gives {got} for {STEPS} steps of {ROWS} rows, and says that it "
            f"has {outputs} outputs: forward has to give {list(wanted)}"
        )
