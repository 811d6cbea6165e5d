"""How the bots of brawl fare against each other.

python benchmarks/brawl_bots.py [--matches 400] [--bots based aggressive …] [--seed 1000] [--set
knockback=0.12 …]

Two tables: the share of matches in which the row's bot beats the column's, and that of draws (which
are no wins), in percent with half the width of a 95% interval.
"""

import argparse

import numpy as np

from ludus.games import load_game
from ludus.games.brawl.bots import HELD_OUT_BOTS, TRAINING_BOTS
from ludus.sim import Batch

BOTS = ["random", *(bot.name for bot in (*TRAINING_BOTS, *HELD_OUT_BOTS))]


def play(
    first: str,
    second: str,
    matches: int,
    overrides: dict[str, float] | None = None,
    seed: int = 1000,
) -> np.ndarray:
    """[matches, (won, drawn, stocks, damage, steps)] of the first bot, over the first match of each
    env."""
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
        for i, name in enumerate(
            ("goal_win", "goal_draw", "goal_stock_difference", "goal_damage_difference")
        ):
            rows[ended, i] = batch[name][ended, 0]
        rows[ended, 4] = batch["step"][ended]
    return rows


def interval(successes: float, count: int) -> float:
    """Half the width of a 95% Wilson interval."""
    p, z2 = successes / count, 1.96**2
    return 1.96 * ((p * (1 - p) + z2 / (4 * count)) / count) ** 0.5 / (1 + z2 / count)


def table(title: str, bots: list[str], rates: np.ndarray, matches: int) -> None:
    print(f"\n{title:11}" + "".join(f"{name[:7]:>8}" for name in bots))
    for name, row in zip(bots, rates, strict=True):
        cells = [f"{100 * rate:.0f}±{100 * interval(rate * matches, matches):.0f}" for rate in row]
        print(f"{name:11}" + "".join(f"{cell:>8}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--matches", type=int, default=400)
    parser.add_argument("--bots", nargs="*", default=BOTS)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="parameters")
    options = parser.parse_args()
    overrides = {name: float(value) for name, value in (pair.split("=") for pair in options.set)}
    bots = options.bots
    rows = [
        [play(a, b, options.matches, overrides, options.seed).mean(0) for b in bots] for a in bots
    ]
    results = np.array(rows)
    print(
        f"{options.matches} matches a cell, seed {options.seed}, {results[..., 4].mean():.0f} "
        f"steps a match {overrides or ''}"
    )
    table("% won", bots, results[..., 0], options.matches)
    table("% drawn", bots, results[..., 1], options.matches)


if __name__ == "__main__":
    main()
