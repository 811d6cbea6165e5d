"""An algorithm's weights, optimizers and carried tensors, in and out of checkpoints."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ludus.algorithms.algorithm import Algorithm
from ludus.config import PolicyConfig
from ludus.config.values import UnreadNetwork
from ludus.errors import LudusError
from ludus.imports import is_path
from ludus.networks.network import Network
from ludus.protocols import ActingPolicy, Layout
from ludus.runs import checkpoint
from ludus.runs.checkpoint import Checkpoint


def tensors_of(algorithm: Algorithm) -> dict[str, dict[str, torch.Tensor]]:
    """The tensors of policy.safetensors and optimizer.safetensors, and the algorithm's part of
    state.safetensors."""
    parts: dict[str, ActingPolicy | nn.Module] = {**algorithm.policies, **algorithm.modules()}
    policy = {
        f"{name}/{n}": t for name, module in parts.items() for n, t in module.state_dict().items()
    }
    optimizer = {
        f"{name}/{n}": t
        for name, o in algorithm.optimizers().items()
        for n, t in checkpoint.optimizer_tensors(o).items()
    }
    return {
        "policy": policy,
        "optimizer": optimizer,
        "state": {f"carried/{n}": t for n, t in algorithm.carried().items()},
    }


def load_tensors(algorithm: Algorithm, tensors: Mapping[str, Mapping[str, torch.Tensor]]) -> None:
    """Policies, other modules and optimizers from what `tensors_of` gave of an equal algorithm."""
    parts: dict[str, ActingPolicy | nn.Module] = {**algorithm.policies, **algorithm.modules()}
    for name, module in parts.items():
        mine = checkpoint.split(tensors["policy"], name)
        module.load_state_dict({n: t for n, t in mine.items() if n in module.state_dict()})
    for name, optimizer in algorithm.optimizers().items():
        checkpoint.load_optimizer(optimizer, checkpoint.split(tensors["optimizer"], name))


def refuse_other_meaning(saved: Checkpoint, ours: PolicyConfig, loaded: Collection[str]) -> None:
    """Settings that leave the shapes of weights alone, and yet make the same weights compute
    something else. `loaded`: the weights that were taken over."""

    theirs = saved.run.settings().policy  # as data: a network of the user's own stays unread
    before: dict[str, Any] = {}
    now: dict[str, Any] = {}
    of_networks = [name for name in loaded if ".network." in name]
    if of_networks and (is_path(theirs.network) or is_path(ours.network)):
        before["network"], now["network"] = theirs.network, ours.network
    if of_networks:
        before["activation"], now["activation"] = theirs.activation, ours.activation
    if of_networks and theirs.network == ours.network:
        mine = ours.network_settings.meaning(loaded)
        read = theirs.network_settings
        their = read.unread if isinstance(read, UnreadNetwork) else read.meaning(loaded)
        now |= {f"{ours.section}.{name}": value for name, value in mine.items()}
        before |= {f"{ours.section}.{name}": their.get(name) for name in mine}
    for name, value in before.items():
        if now[name] != value:
            raise LudusError(
                f"{saved.where} was trained with policy.{name} {value}, and this run has "
                f"{now[name]}: the same weights would compute something else; add "
                f"--policy.{name} {value}"
            )


def load_all(algorithm: Algorithm, layout: Layout, saved: Checkpoint) -> set[str]:
    """Policies with their normalisers, and the optimizers' state where the layout is the same.
    Returns the names of the policies' weights."""
    loaded = load_policies(algorithm, layout, saved)
    if saved.manifest["layout"] == json.loads(json.dumps(layout.describe())):
        for name, o in algorithm.optimizers().items():
            mine = checkpoint.split(saved.tensors("optimizer"), name)
            checkpoint.load_optimizer(o, mine)
    return loaded


def load_policies(
    algorithm: Algorithm,
    layout: Layout,
    saved: Checkpoint,
    modules: Sequence[str] = (),
) -> set[str]:
    """Weights into the policies; `modules` limits it to parts whose name contains one. Returns the
    names of those taken over."""
    tensors, manifest, where = saved.tensors("policy"), saved.manifest, saved.where
    beside, loaded = algorithm.modules(), set[str]()
    for name, policy in algorithm.policies.items():
        mine = {n: t for n, t in checkpoint.split(tensors, name).items() if "/" not in n}
        if not mine:
            known = ", ".join(sorted({n.split("/")[0] for n in tensors}))
            raise LudusError(f"{where} has no policy for the role {name}: it has {known}")
        network = saved.run.settings().policy.network
        mine = checkpoint.fit_layout(mine, manifest["layout"], layout.describe(), where, network)
        wanted = policy.state_dict()
        if modules:
            mine = {n: t for n, t in mine.items() if any(m in n for m in modules)}
            if not mine:
                known = ", ".join(sorted({n.rsplit(".", 1)[0] for n in wanted}))
                raise LudusError(
                    f"no module of {where} matches {', '.join(modules)}: there is {known}"
                )
        elif mine.keys() != wanted.keys():
            raise LudusError(f"{where} is another network: {difference(mine, wanted, where)}")
        for n, t in mine.items():
            if n not in wanted or wanted[n].shape != t.shape:
                has = list(wanted[n].shape) if n in wanted else "nothing"
                raise LudusError(
                    f"{where}: {name}/{n} is {list(t.shape)} but this policy has {has}: use the "
                    "same policy settings"
                )
        policy.load_state_dict({**wanted, **mine})
        join(policy, mine)
        loaded |= mine.keys()
    if not modules and list(manifest["layout"]["observation"]) == list(
        layout.describe()["observation"]
    ):
        # they read or predict entries by their places: in another order they start again
        for name, module in beside.items():
            theirs = checkpoint.split(tensors, name)
            if theirs and shapes(theirs) != shapes(module.state_dict()):
                raise LudusError(
                    f"{where}: {name} was made with other settings or by an older version: train "
                    "again from the start"
                )
            if theirs:
                module.load_state_dict(theirs)
    return loaded


def join(policy: ActingPolicy, loaded: Collection[str]) -> None:
    """Tells its networks which of their weights they have taken over."""
    for name, module in policy.named_modules():
        if isinstance(module, Network):
            module.join({n.removeprefix(f"{name}.") for n in loaded if n.startswith(f"{name}.")})


def difference(theirs: Collection[str], ours: Collection[str], where: str) -> str:
    """What one network has and the other lacks, by module, and how to take over what both have
    where ours only has more."""

    def only(names: Collection[str], others: Collection[str]) -> str:
        modules = dict.fromkeys(
            ".".join(name.split(".")[:4]) for name in sorted(set(names) - set(others))
        )
        return ", ".join(list(modules)[:3])

    more, less = only(theirs, ours), only(ours, theirs)
    if more:
        return f"it has {more}, which this one lacks; use the same policy settings"
    parts = " ".join(sorted({name.split(".")[0] for name in theirs}))
    return (
        f"it lacks {less}; to begin with all it has: ludus train … --init-from {where} "
        f"--init-modules {parts}"
    )


def shapes(tensors: Mapping[str, torch.Tensor]) -> dict[str, list[int]]:
    return {name: list(tensor.shape) for name, tensor in tensors.items()}


def load_carried(algorithm: Algorithm, state: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in algorithm.carried().items():
        tensor.copy_(state[f"carried/{name}"])
