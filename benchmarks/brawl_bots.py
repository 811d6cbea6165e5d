"""How the bots of brawl fare against each other.

python benchmarks/brawl_bots.py [--matches 400] [--bots based aggressive …] [--seed 1000] [--set knockback=0.12 …]

Every cell is the win rate of the row's bot over the column's, in percent with a 95% interval; draws are apart, and no wins.
"""

import argparse

import numpy as np

from ludus.games import load_game
from ludus.games.brawl.bots import HELD_OUT_BOTS, TRAINING_BOTS
from ludus.sim import Batch

BOTS = ["random", *(bot.name for bot in (*TRAINING_BOTS, *HELD_OUT_BOTS))]


def play(first: str, second: str, matches: int, overrides: dict[str, float] | None = None, seed: int = 1000) -> np.ndarray:
    """[matches, (won, drawn, stocks, damage, steps)] of the first bot, over the first match of each env."""
    batch = Batch(load_game("brawl")[0], matches, seed=seed, overrides=overrides)
    batch.set_controller("fighter", first, team=0)
    batch.set_controller("fighter", second, team=1)
    batch.reset()
    going = np.ones(matches, bool)
    rows = np.zeros((matches, 5))
    while going.any():
        batch.step()
        ended = going & batch["finished"]
        going &= ~ended
        for i, name in enumerate(("goal_win", "goal_draw", "goal_stock_difference", "goal_damage_difference")):
            rows[ended, i] = batch[name][ended, 0]
        rows[ended, 4] = batch["step"][ended]
    return rows


def interval(successes: float, count: int) -> float:
    """Half the width of a 95% Wilson interval."""
    p, z2 = successes / count, 1.96**2
    return 1.96 * ((p * (1 - p) + z2 / (4 * count)) / count) ** 0.5 / (1 + z2 / count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matches", type=int, default=400)
    parser.add_argument("--bots", nargs="*", default=BOTS)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--draws", action="store_true", help="print draws instead of wins")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="parameters")
    options = parser.parse_args()
    overrides = {name: float(value) for name, value in (pair.split("=") for pair in options.set)}
    print(
        f"{options.matches} matches a cell, seed {options.seed}, % {'drawn' if options.draws else 'won'} by the row {overrides or ''}"
    )
    print(f"{'':12}" + "".join(f"{name[:9]:>11}" for name in options.bots) + f"{'steps':>8}")
    for first in options.bots:
        cells, steps = [], []
        for second in options.bots:
            rows = play(first, second, options.matches, overrides, options.seed)
            count = float(rows[:, 1 if options.draws else 0].sum())
            cells.append(f"{100 * count / len(rows):6.1f} ±{100 * interval(count, len(rows)):3.0f}")
            steps.append(rows[:, 4].mean())
        print(f"{first:12}" + "".join(f"{cell:>11}" for cell in cells) + f"{np.mean(steps):8.0f}", flush=True)


if __name__ == "__main__":
    main()
