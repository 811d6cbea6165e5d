"""What an agent-step of the arena costs, by number of agents and envs, as a plot.

python benchmarks/arena_scaling.py [--output docs/images/arena_scaling.png] [--repeats 9]

One thread, random actions, observations included. Rooms grow with the number of agents: six agents
to a room, as in the game. Times are the process's own, the best of several, so that a busy machine
disturbs them little.
"""

import argparse
import time

import matplotlib
import numpy as np

from ludus.games.arena.spec import GAME
from ludus.games.arena.world import BORDER, NUM_ACTS
from ludus.sim import Batch

AGENTS = {6: 1, 24: 2, 54: 3, 96: 4}  # agents → rooms along a side
ENVS = (16, 64, 256, 1024, 4096)
AGENT_STEPS = 200_000  # timed at a stretch, at least


def cost(agents: int, rooms: int, envs: int, repeats: int) -> float:
    """Nanoseconds per agent-step."""
    sizes = dict(
        population=agents, rooms=rooms, side=rooms * 25 + 2 * BORDER, converters=20 * rooms * rooms
    )
    batch = Batch(GAME, envs, overrides=sizes)
    batch["choices"][...] = np.random.default_rng(0).integers(0, NUM_ACTS, batch["choices"].shape)
    steps = max(AGENT_STEPS // (agents * envs), 2)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(steps):
            batch["choices"][...] = np.roll(batch["choices"], 1, axis=1)
            batch.step()
        times.append(time.process_time() - start)
    return 1e9 * min(times) / (steps * agents * envs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="docs/images/arena_scaling.png")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.6), dpi=90)
    print(f"{'agents':>7} {'envs':>6} {'ns per agent-step':>18}")
    for agents, rooms in AGENTS.items():
        line = [cost(agents, rooms, envs, options.repeats) for envs in ENVS]
        for envs, nanoseconds in zip(ENVS, line, strict=True):
            print(f"{agents:>7} {envs:>6} {nanoseconds:>18.0f}", flush=True)
        axes.plot(ENVS, line, marker="o", label=f"{agents} agents")
    axes.set(xscale="log", ylim=(0, None), xlabel="envs", ylabel="ns per agent-step (one thread)")
    axes.set_xticks(ENVS, [f"{envs:,}" for envs in ENVS])
    axes.minorticks_off()
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(options.output)


if __name__ == "__main__":
    main()
