"""ludus bench env"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from ludus.batches import is_foreign
from ludus.bench import foreign
from ludus.bench.env import measure
from ludus.bench.peers import measure_env
from ludus.commands.parsing import parse
from ludus.errors import LudusError
from ludus.games import load_game

SWEEP = [16, 64, 256, 1024, 4096, 16384, 65536]


@dataclass(kw_only=True)
class BenchEnv:
    """Measures how fast a game simulates: valid agent-steps per second, actions copied in and
    observations written."""

    game: str
    """A game, game:preset, package.module:GAME, gym:ID, pettingzoo:MODULE or
    env:MODULE:FUNCTION."""
    device: str = "cpu"
    """cpu or cuda."""
    envs: int | None = None
    """Number of envs in the batch (default: 4096; for gym:ID 16)."""
    threads: int | None = None
    """CPU threads (default: one per core)."""
    seconds: float = 3.0
    """How long to measure."""
    seed: int = 0
    """Seed of the envs."""
    sweep: bool = False
    """Measure from 16 to 65,536 envs and print a table."""
    against: str | None = None
    """A peer measured beside it, in one process on one core: gymnasium (for racing: CarRacing-v3),
    mettagrid (for arena); beside gym:ID: sb3, its SubprocVecEnv and DummyVecEnv."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(BenchEnv, arguments, "bench env", "ludus bench env --game pursuit --json")
    if options.device not in ("cpu", "cuda"):
        raise LudusError(f"device '{options.device}' is not known: use cpu or cuda")
    if options.seconds <= 0:
        raise LudusError(f"--seconds {options.seconds} measures nothing: use more than 0")
    if options.against and options.sweep:
        raise LudusError("--sweep measures Ludus alone: leave --against out")
    if is_foreign(options.game):
        return _foreign(options)
    game, preset = load_game(options.game)
    threads = (
        options.threads
        if options.threads is not None
        else (os.cpu_count() or 1 if options.device == "cpu" else 1)
    )

    def run(num_envs: int) -> dict:
        return measure(
            game,
            preset=preset,
            device=options.device,
            num_envs=num_envs,
            threads=threads,
            seconds=options.seconds,
            seed=options.seed,
        )

    if options.sweep:
        rows = [run(num_envs) for num_envs in SWEEP]
        if options.json:
            print(json.dumps({"sweep": rows}))
        else:
            print(f"{'envs':>8} {'agent-steps/s':>15} {'ns per agent-step':>18}")
            for row in rows:
                print(
                    f"{row['num_envs']:>8,} {row['agent_steps_per_s']:>15,.0f} "
                    f"{1e9 / row['agent_steps_per_s']:>18.1f}"
                )
        return 0
    peers = _peers(options.against, game.name, options.seconds) if options.against else {}
    result = run(options.envs if options.envs is not None else 4096)
    result["peers"] = {name: {"agent_steps_per_s": rate} for name, rate in peers.items()}
    result["ratio"] = {name: result["agent_steps_per_s"] / rate for name, rate in peers.items()}
    if options.json:
        print(json.dumps(result))
    else:
        per_core = f", {result['per_core']:,.0f} per core" if result["per_core"] else ""
        print(
            f"{game.name} on {options.device}: {result['agent_steps_per_s']:,.0f} "
            f"agent-steps/s{per_core} "
            f"({result['num_envs']:,} envs, {result['num_agents']} agents, {threads} threads)"
        )
        for name, rate in peers.items():
            print(
                f"{name}, one process: {rate:,.0f} agent-steps/s; Ludus is "
                f"{result['ratio'][name]:,.1f} times as fast"
            )
    return 0


def _foreign(options: BenchEnv) -> int:
    if options.sweep or options.device != "cpu":
        raise LudusError(
            f"{options.game} runs in Python on the CPU: leave --sweep and --device out"
        )
    result = foreign.measure(
        options.game,
        options.envs if options.envs is not None else 16,
        options.seconds,
        options.against,
        seed=options.seed,
    )
    if options.json:
        print(json.dumps(result))
        return 0
    print(
        f"{options.game}: {result['agent_steps_per_s']:,.0f} agent-steps/s ({result['num_envs']} "
        "envs)"
    )
    for name, peer in result["peers"].items():
        print(
            f"{name}: {peer['agent_steps_per_s']:,.0f} steps/s; Ludus is "
            f"{result['ratio'][name]:,.1f} times as fast"
        )
    return 0


def _peers(name: str, game: str, seconds: float) -> dict[str, float]:
    return measure_env(name, game, seconds)
