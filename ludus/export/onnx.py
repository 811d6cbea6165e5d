"""A trained policy as an ONNX file, for an engine without Python: normalisers inside, memory as an
input and an output.

Axes: `rows` agents at once. Inputs are named as what a batch holds: `observation` [rows, entries],
`seen_NAME` [rows, frames, height, width] (tokens: [rows, count, 3]), `seen_history` [rows, tokens,
1, entries + 1] of a strategy encoder (oldest first, the last entry 1 where the episode had such a
step, else all 0), `action_mask` [rows, flags], `state` [rows, size]: zeros at the start of an
episode, afterwards the output `next_state`. A file has only the inputs and outputs that its policy
needs.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ludus import __version__
from ludus.batches import game_info
from ludus.errors import LudusError
from ludus.networks.encoders import AMOUNT, CELL, FEATURE, TokenTable, shaped, steps_back, stored_as
from ludus.networks.memory import LSTM, NoMemory
from ludus.networks.policy import Trunk
from ludus.protocols import ActingPolicy
from ludus.runs.load import load_policies
from ludus.runs.run import Run, split_reference

OURS = "ludus_"  # before the names of outputs while a graph is made: torch has names of its own


class OneStep(nn.Module):
    """An LSTM layer for one step; the caller starts episodes with a state of zeros."""

    def __init__(self, layer: LSTM) -> None:
        super().__init__()
        self.size, self.state_size = layer.size, layer.state_size
        self.input_weight, self.hidden_weight, self.bias = (
            layer.input_weight,
            layer.hidden_weight,
            layer.bias,
        )

    def forward(self, x_lrf: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        hidden, cell = state[:, : self.size], state[:, self.size :]
        gates = nn.functional.linear(x_lrf[0], self.input_weight, self.bias) + nn.functional.linear(
            hidden, self.hidden_weight
        )
        i, f, o, g = gates.chunk(4, -1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        hidden = torch.sigmoid(o) * torch.tanh(cell)
        return hidden.unsqueeze(0), torch.cat([hidden, cell], -1)


class WholeTable(nn.Module):
    """A token table that looks at all tokens, padding too: how many there are must not shape the
    graph."""

    def __init__(self, tokens: TokenTable) -> None:
        super().__init__()
        self.features, self.table = tokens.kind.features, tokens.table

    def forward(self, seen: Tensor) -> Tensor:
        index = seen[..., CELL].long() * self.features + seen[..., FEATURE].long()
        amount = torch.log2(1.0 + seen[..., AMOUNT].float())
        return (self.table[index] * amount.unsqueeze(-1)).sum(-2)


def _exportable(policy: ActingPolicy, where: str) -> ActingPolicy:
    """A copy whose parts are for one step."""
    policy = copy.deepcopy(policy).eval().requires_grad_(False)
    for trunk in [module for module in policy.modules() if isinstance(module, Trunk)]:
        if isinstance(trunk.memory, LSTM):
            trunk.memory = OneStep(trunk.memory)  # type: ignore[assignment]
        elif not isinstance(trunk.memory, NoMemory):
            raise LudusError(
                f"{where} has the memory {type(trunk.memory).__name__}, which ONNX export does not "
                "know: use none or lstm"
            )
    for module in list(policy.modules()):
        for name, child in module.named_children():
            if isinstance(child, TokenTable):
                setattr(module, name, WholeTable(child))
    return policy


class Exported(nn.Module):
    """What the file computes, with tensors by position: `inputs` and `outputs` name them."""

    def __init__(self, policy: ActingPolicy, choices: Mapping[str, list[str]], where: str) -> None:
        super().__init__()
        self.policy = _exportable(policy, where)
        space = policy.space
        self.inputs = ["observation", *(f"seen_{name}" for name in policy.seen)]
        self.inputs += ["action_mask"] if space.masked else []
        self.inputs += ["state"] if policy.state_size else []
        self.outputs = ["continuous", "mean", "log_std"] if space.continuous else []
        self.outputs += ["pressed"] if space.binary else []
        self.outputs += [f"choice_{name}" for name in choices]
        self.outputs += ["value"] + (["next_state"] if policy.state_size else [])

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(self.inputs, tensors, strict=True))
        observation = given["observation"].unsqueeze(0)
        rows = observation.shape[1]
        state = given.get("state", observation.new_zeros(rows, 0))
        starts = torch.zeros(1, rows, dtype=torch.bool)
        mask = given["action_mask"].unsqueeze(0) if "action_mask" in given else None
        seen = {name: given[f"seen_{name}"].unsqueeze(0) for name in self.policy.seen}
        output = self.policy(observation, state, starts, mask, seen)
        d, space = output.distribution, self.policy.space
        out = [
            torch.tanh(d.mean[0]),
            d.mean[0],
            d.log_std.expand(rows, -1) if d.log_std.ndim == 1 else d.log_std[0],
        ]
        out = out if space.continuous else []
        if space.binary:
            pressed = torch.sigmoid(d.key_logits[0])
            out.append(pressed if d.key_mask is None else pressed * d.key_mask[0])
        out += [log_probs[0].exp() for log_probs in d.choice_log_probs]
        out.append(self.policy.expected_reward(output.value[0]))
        return tuple(out) + ((output.state,) if self.policy.state_size else ())

    def example(self, num_masked: int, rows: int = 2) -> tuple[Tensor, ...]:
        """Inputs of the right shapes."""
        shapes: dict[str, Tensor] = {"observation": torch.zeros(rows, self.policy.entries)}
        for name, part in self.policy.seen.items():
            stack = torch.zeros(
                1,
                rows,
                len(steps_back(part)),
                part.height,
                part.width,
                dtype=stored_as(part, "cpu"),
            )
            shapes[f"seen_{name}"] = shaped(stack, part)[0]
        shapes["action_mask"] = torch.ones(rows, num_masked, dtype=torch.bool)
        shapes["state"] = torch.zeros(rows, self.policy.state_size)
        return tuple(shapes[name] for name in self.inputs)


def export_policy(
    policy: ActingPolicy, layout: Mapping[str, Any], num_masked: int, path: Path, **about: Any
) -> Path:
    """Writes one policy. `about` goes into the file's metadata, with the names of all entries."""
    if importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnxscript") is None:
        raise LudusError(
            "export to ONNX needs the packages onnx and onnxscript: pip install 'ludus[onnx]'"
        )
    import onnx

    action = layout.get("actions_by_role", {}).get(about.get("role"), layout["action"])
    model = Exported(policy, action["choices"], str(path))
    rows = torch.export.Dim("rows", min=1)
    with _quiet():
        program = torch.onnx.export(
            model,
            model.example(num_masked),
            input_names=model.inputs,
            output_names=[f"{OURS}{name}" for name in model.outputs],
            dynamic_shapes=(tuple({0: rows} for _ in model.inputs),),
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    made = program.model_proto
    name_outputs(made.graph, model.outputs)
    facts = {"ludus": __version__, "observation": layout["observation"], "action": action, **about}
    onnx.helper.set_model_props(
        made, {name: v if isinstance(v, str) else json.dumps(v) for name, v in facts.items()}
    )
    onnx.checker.check_model(made)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(made, path)
    return path


def name_outputs(graph: Any, outputs: Sequence[str]) -> None:
    """Gives the outputs of a graph their names; what has such a name inside gets another one."""
    inner = {name for node in graph.node for name in node.output}
    names = {name: f"{name}_inside" for name in inner.intersection(outputs)}
    names |= {f"{OURS}{name}": name for name in outputs}
    for node in graph.node:
        for kept in (node.input, node.output):
            kept[:] = [names.get(name, name) for name in kept]
    for value in (*graph.output, *graph.value_info):
        value.name = names.get(value.name, value.name)


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter tells its developers a lot."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def export_run(reference: str, folder: Path | None = None) -> list[Path]:
    """One file per role: RUN/export/ROLE.onnx."""
    policies, layout = load_policies(reference)
    where, _ = split_reference(reference)
    config = Run(where).config()
    config.device = "cpu"
    num_masked = game_info(config).layout.sizes["num_masked"]
    target = folder if folder is not None else where / "export"
    return [
        export_policy(
            policy,
            layout,
            num_masked,
            target / f"{role}.onnx",
            role=role,
            step=layout["step"],
            game=config.game,
        )
        for role, policy in policies.items()
    ]
