"""What an agent-step of the arena costs, by number of agents and envs, as a plot.

python benchmarks/arena_scaling.py [--output docs/images/arena_scaling.png] [--seconds 1]

One thread. Rooms grow with the number of agents: six agents to a room, as in the game.
"""

import argparse

import matplotlib

from ludus.bench.env import measure
from ludus.games.arena.spec import GAME
from ludus.games.arena.world import BORDER
from ludus.sim.game import Game

AGENTS = {6: 1, 24: 2, 54: 3, 96: 4}  # agents → rooms along a side
ENVS = (16, 64, 256, 1024, 4096)
MOST_AGENTS_IN_ALL = 110_000  # a larger batch is left out: its state would not fit small machines


def sized(agents: int, rooms: int) -> Game:
    """The arena as a game whose defaults have these sizes."""
    from dataclasses import replace

    side = rooms * 25 + 2 * BORDER
    sizes = {**GAME.sizes, "population": agents, "side": side, "converters": 20 * rooms * rooms}
    return replace(GAME, sizes=sizes, params={**GAME.params, "rooms": replace(GAME.params["rooms"], default=rooms)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="docs/images/arena_scaling.png")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many is taken")
    options = parser.parse_args()
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.6), dpi=90)
    print(f"{'agents':>7} {'envs':>6} {'ns per agent-step':>18}")
    for agents, rooms in AGENTS.items():
        line = []
        for envs in ENVS:
            if agents * envs > MOST_AGENTS_IN_ALL:
                break
            runs = [
                measure(sized(agents, rooms), preset=None, device="cpu", num_envs=envs, threads=1, seconds=options.seconds)
                for _ in range(options.repeats)
            ]
            line.append(1e9 / max(run["agent_steps_per_s"] for run in runs))
            print(f"{agents:>7} {envs:>6} {line[-1]:>18.0f}", flush=True)
        axes.plot(ENVS[: len(line)], line, marker="o", label=f"{agents} agents")
    axes.set(xscale="log", ylim=(0, None), xlabel="envs", ylabel="ns per agent-step (one thread)")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(options.output)


if __name__ == "__main__":
    main()
