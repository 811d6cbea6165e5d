"""What the bots of the arena collect, alone and against each other: hearts per agent and episode
with 95% intervals.

python benchmarks/arena_bots.py [--preset easy_shaped] [--episodes 32] [--set altar_batteries=3 …]
"""

import argparse

import numpy as np

from ludus.games.arena.spec import GAME
from ludus.games.arena.world import HEART
from ludus.sim import Batch

FIELDS = [
    ("still",),
    ("random",),
    ("gatherer",),
    ("raider",),
    ("gatherer", "random"),
    ("gatherer", "raider"),
]


def play(
    preset: str, bots: tuple[str, ...], episodes: int, overrides: dict[str, float]
) -> dict[str, np.ndarray]:
    """One episode of each env. Agents are handed to the bots in turn; per bot, an array [episode]
    of means over its agents."""
    batch = Batch(GAME, episodes, seed=1, preset=preset, overrides=overrides)
    agents = np.arange(batch.layout.num_agents)
    for agent in agents:
        batch["controller_next"][:, agent] = batch.controller_number(
            "agent", bots[agent % len(bots)]
        )
    batch.reset()
    for _ in range(int(batch.settings.params["max_steps"])):
        batch.step()
    rows = {}
    for i, bot in enumerate(bots):
        own = agents % len(bots) == i
        columns = [
            batch["goal_hearts"][:, own],
            batch["held"][:, own, HEART],
            batch["goal_batteries"][:, own],
            batch["goal_first_heart"][:, own],
            batch["frozen_steps"][:, own],
        ]
        rows[bot] = np.stack([c.mean(1) for c in columns], 1)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="easy_shaped", choices=GAME.presets)
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="sizes and parameters"
    )
    options = parser.parse_args()
    overrides = {name: float(value) for name, value in (pair.split("=") for pair in options.set)}
    print(
        f"preset {options.preset}, {options.episodes} episodes a row, {overrides or 'as declared'}"
    )
    print(
        f"{'bot':9} {'among':18} {'hearts taken':>15} {'hearts held':>15} {'batteries':>10} "
        f"{'first heart':>12} {'frozen':>7}"
    )
    for bots in FIELDS:
        for bot, rows in play(options.preset, bots, options.episodes, overrides).items():
            mean, error = rows.mean(0), 1.96 * rows.std(0, ddof=1) / len(rows) ** 0.5
            print(
                f"{bot:9} {' + '.join(bots):18} {mean[0]:7.2f} ± {error[0]:5.2f} {mean[1]:7.2f} ± "
                f"{error[1]:5.2f} {mean[2]:10.2f} "
                f"{mean[3]:12.0f} {mean[4]:7.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
