"""ludus bench train"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ludus import machine
from ludus.bench import peers
from ludus.commands.options import parse_config
from ludus.errors import LudusError
from ludus.recipes import load_recipe

if TYPE_CHECKING:
    from ludus.config import Config

SUMMARY = (
    "Measures training speed, beside a bare torch loop doing the same arithmetic, and beside "
    "other libraries."
)
EXAMPLE = "ludus bench train --recipe pursuit --against sb3 --json"


def main(arguments: list[str]) -> int:
    import argparse

    head = argparse.ArgumentParser(
        prog="ludus bench train",
        description=f"{SUMMARY}\n\nExample: {EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    head.add_argument(
        "--recipe",
        required=True,
        help="a recipe, as for ludus train; its options follow (--envs, --ppo.epochs …)",
    )
    head.add_argument(
        "--seconds", type=float, default=10.0, help="how long to measure each part (default: 10)"
    )
    head.add_argument("--against", help="a peer: sb3")
    own, rest = head.parse_known_args(arguments)
    if own.seconds <= 0:
        raise LudusError(f"--seconds {own.seconds} measures nothing: use more than 0")
    recipe = load_recipe(own.recipe)
    config, _, options = parse_config(recipe, rest, "bench train", EXAMPLE, SUMMARY)
    if config.train.total_seconds is None:
        config.train.total_agent_steps = max(config.train.total_agent_steps or 0, 10**9)
    if options.run or options.init_from:
        raise LudusError("bench train keeps no run: leave --run and --init-from out")
    from ludus.bench.turns import Turn

    with Turn() as turn:
        result = {"recipe": own.recipe, **_measured(config, own.seconds, own.against, turn.wait)}
    if options.json:
        print(json.dumps(result))
    else:
        _print(result)
    return 0


def _measured(
    config: Config, seconds: float, against: str | None, wait: Callable[[], None]
) -> dict[str, Any]:
    """The trainer, its bound and its peers, once `wait` returns."""
    import torch

    from ludus.bench import limits
    from ludus.bench.train import bound, measure, simulating
    from ludus.training.start import prepare

    config, _ = prepare(config)
    ours = measure(config, seconds, wait)
    memory = machine.memory(config.device)
    if config.device == "cuda":  # acting and simulating are one graph there
        share = simulating(ours["trainer"], seconds) / ours["seconds"]
        ours["phases"] |= {"simulate": share, "act": ours["phases"].pop("rollout") - share}
    limit = bound(ours["trainer"], seconds)
    result: dict[str, Any] = {
        "device": config.device,
        "dtype": config.train.dtype,
        "threads": config.train.threads,
        "agent_steps_per_s": ours["agent_steps_per_s"],
        "phases": ours["phases"],
        "bound": None,
        "limits": None,
        "memory": memory,
        "peers": {},
        "ratio": {},
    }
    if limit is not None:
        dtype = getattr(torch, str(config.train.dtype))
        result["bound"] = {
            "agent_steps_per_s": limit.agent_steps_per_s,
            "share": ours["agent_steps_per_s"] / limit.agent_steps_per_s,
        }
        result["limits"] = limits.shares(limit.work, ours["seconds"], config.device, dtype)
    if against:
        found = peers.measure(against, config, seconds)
        result["peers"] = {name: {"agent_steps_per_s": rate} for name, rate in found.items()}
        result["ratio"] = {name: ours["agent_steps_per_s"] / rate for name, rate in found.items()}
    return result


def _print(result: dict[str, Any]) -> None:
    bound, limits = result["bound"], result["limits"]
    print(
        f"{result['recipe']} on {result['device']} ({result['dtype']}, {result['threads']} "
        "threads): "
        f"{result['agent_steps_per_s']:,.0f} agent-steps/s"
    )
    print(
        "  time   " + "  ".join(f"{name} {share:.1%}" for name, share in result["phases"].items())
    )
    if bound is None:
        print("  bound  none: no bare loop was written for this algorithm")
    else:
        print(
            f"  bound  {bound['agent_steps_per_s']:,.0f} (bare torch): {bound['share']:.0%} of it"
        )
        matrix, bandwidth = limits["matrix"], limits["bandwidth"]
        print(
            f"  limits {matrix['share']:.1%} of {matrix['operations_per_s'] / 1e12:.2f} T matrix "
            "operations/s, "
            f"{bandwidth['share']:.1%} of {bandwidth['bytes_per_s'] / 1e9:.0f} GB/s (bytes of "
            "unfused operations)"
        )
    print(
        "  memory "
        + "  ".join(
            f"{name.partition('/')[2]} {value:,.0f}" for name, value in result["memory"].items()
        )
    )
    for name, ratio in result["ratio"].items():
        print(
            f"  {name}: {result['peers'][name]['agent_steps_per_s']:,.0f}, ours is {ratio:.1f} "
            "times as fast"
        )
