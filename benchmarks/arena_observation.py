"""Tokens or byte planes? The arena's view written both ways: simulation speed, and bytes a rollout
keeps per agent-step.

python benchmarks/arena_observation.py [--envs 256]

The planes carry the same information: one of kind (with facing, frozen, group, busy) and one per
item, 11×11 bytes each.
"""

import argparse
import dataclasses
import time

import numpy as np

from ludus.games.arena.actions import is_frozen
from ludus.games.arena.observation import SEE_AGENT, SEE_BLOCK, SEE_CONVERTER, SEE_WALL
from ludus.games.arena.spec import GAME
from ludus.games.arena.world import (
    FIRST_CONVERTER,
    ITEMS,
    LOWEST,
    OUTPUT,
    RADIUS,
    SIGHT,
    WALL,
    agent_in,
    converter_in,
    shown,
)
from ludus.sim import Batch, Game, phase, u8

PLANES = 1 + ITEMS


@phase(lanes="agents", writes="seen_planes")
def look_at_planes(
    env,
    agent,
    step,
    groups,
    grid,
    filled,
    row,
    column,
    facing,
    held,
    frozen_until,
    converter_kind,
    stock,
    inside,
    timer,
    seen_planes,
):
    for plane in range(PLANES):
        for i in range(SIGHT):
            for j in range(SIGHT):
                seen_planes[env, agent, plane, i, j] = 0
    left = column[env, agent] - RADIUS
    for i in range(SIGHT):
        r = row[env, agent] + i - RADIUS
        waiting = shown(filled, env, r, column[env, agent])
        while waiting != 0:
            j = LOWEST[waiting]
            waiting &= waiting - 1
            occupant = grid[env, r, left + j]
            kind = SEE_WALL if occupant == WALL else SEE_BLOCK
            if occupant < 0:
                other = agent_in(occupant)
                kind = SEE_AGENT + facing[env, other]
                kind += 4 if is_frozen(frozen_until, env, other, step[env] + 1) else 0
                kind += 8 if other % groups[env] != agent % groups[env] else 0
                for item in range(ITEMS):
                    seen_planes[env, agent, 1 + item, i, j] = held[env, other, item]
            elif occupant >= FIRST_CONVERTER:
                c = converter_in(occupant)
                kind = SEE_CONVERTER + 2 * converter_kind[env, c] + (1 if timer[env, c] > 0 else 0)
                for item in range(ITEMS):
                    seen_planes[env, agent, 1 + item, i, j] = inside[env, c, item]
                seen_planes[env, agent, 1 + OUTPUT[converter_kind[env, c]], i, j] = stock[env, c]
            seen_planes[env, agent, 0, i, j] = 1 + kind


def with_planes() -> Game:
    """The arena with its view as planes instead of tokens."""
    state = {
        name: field
        for name, field in GAME.state.items()
        if name not in ("seen_tokens", "token_count")
    }
    state["seen_planes"] = u8("agents", PLANES, SIGHT, SIGHT)
    step, reset = (
        [look_at_planes if p.name == "look" else p for p in phases]
        for phases in (GAME.step, GAME.reset)
    )
    return dataclasses.replace(GAME, state=state, step=step, reset=reset)


def nanoseconds(batch: Batch, steps: int = 32) -> float:
    """Per agent-step, with random actions; the time of this process, so that a busy machine
    disturbs it little."""
    shape = batch["choices"].shape
    batch["choices"][...] = np.random.default_rng(0).integers(0, 10, shape)
    start = time.process_time()
    for _ in range(steps):
        batch.step()
    return 1e9 * (time.process_time() - start) / (steps * shape[0] * shape[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--envs", type=int, default=256)
    options = parser.parse_args()
    batches = {"tokens": Batch(GAME, options.envs), "planes": Batch(with_planes(), options.envs)}
    best = dict.fromkeys(batches, float("inf"))
    for _ in range(12):  # in turn, so that a busy machine slows both
        for name, batch in batches.items():
            best[name] = min(best[name], nanoseconds(batch))
    for name, batch in batches.items():
        size = batch[f"seen_{name}"][0, 0].nbytes
        print(f"{name}: {best[name]:6.0f} ns per agent-step, {size:4} bytes kept per agent-step")
    batch = batches["tokens"]
    for bot in ("random", "gatherer"):
        print(f"tokens told to {bot}: " + told(batch, bot))


def told(batch: Batch, bot: str, steps: int = 500) -> str:
    """How many tokens an agent gets in the first half of an episode, and how often the list is
    full."""
    batch.set_controller("agent", bot)
    batch.reset()
    counts = []
    for i in range(steps):
        batch.step()
        if i % 10 == 0:
            counts.append(batch["token_count"].copy())
    full = np.mean(np.array(counts) == batch.settings.sizes["tokens"])
    return (
        f"{np.mean(counts):.1f} on average, {np.percentile(counts, 99):.0f} at the 99th "
        f"percentile, full in {full:.2%}"
    )


if __name__ == "__main__":
    main()
