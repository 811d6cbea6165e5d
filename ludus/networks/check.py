"""Settings of networks that do not fit a game's observations and actions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedParameter

from ludus.config import OF_ACTIONS, Config
from ludus.errors import LudusError, nearest
from ludus.imports import in_one_sentence, is_path
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
    with in_one_sentence(f"the network '{name}' cannot be made for {config.game}"):
        history = network_class(name).history(entries, config.policy)
        looked_back = {HISTORY: history} if history is not None else {}
        seen: dict[str, Part] = {**layout.seen, **looked_back}
        observation = Observation(tuple(entries), aligned(len(entries)), seen)
        network = make_network(observation, config.policy)
        lazy = [n for n, p in network.named_parameters() if isinstance(p, UninitializedParameter)]
    if lazy:
        raise LudusError(
            f"the network '{name}' has a lazy layer ({lazy[0]}), whose size is not known before "
            "its first use: give the layer its number of inputs"
        )
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
    failing = f"the network '{name}' fails on observations of {config.game}"
    with torch.no_grad(), in_one_sentence(f"{failing} (numbers {list(numbers.shape)})"):
        encoded = network(numbers, pictures)
    features = encoded[0] if isinstance(encoded, tuple) else encoded
    wanted = (STEPS, ROWS, outputs)
    if not isinstance(features, Tensor) or tuple(features.shape) != wanted:
        got = list(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise LudusError(
            f"the network '{name}' gives {got} for {STEPS} steps of {ROWS} rows, and says that it "
            f"has {outputs} outputs: forward has to give {list(wanted)}"
        )
    if features.dtype != torch.float32 or not bool(torch.isfinite(features).all()):
        kind = str(features.dtype).removeprefix("torch.")
        what = kind if kind != "float32" else "values that are not finite"
        raise LudusError(
            f"the network '{name}' gives {what} for an observation of zeros: forward has to give "
            "finite float32"
        )
