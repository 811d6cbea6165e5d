"""How the bots of mechs fare against each other, on maps that are not trained on, and whether both
sides are equal.

python benchmarks/mechs_bots.py [--preset small] [--matches 512] [--bots objective hunter …] [--set
maps=64 …]

A row is `matches` matches of the first bot (half of them from each side) against the second. Where
both are the same bot, the row says how often the team from the low corner wins: the sides are equal
if the interval holds a half.
"""

import argparse
from itertools import product

import numpy as np

from ludus.games import load_game
from ludus.sim import Batch

BOTS = ["objective", "hunter", "defender", "random", "still"]
COLUMNS = ("won", "drawn", "zone share", "survival", "length")


def play(
    preset: str | None,
    first: str,
    second: str,
    matches: int,
    overrides: dict[str, float],
    seed: int = 0,
) -> np.ndarray:
    """One row per match, seen from the first bot: the first match of each env, so that short ones
    do not count more often."""
    game = load_game("mechs")[0]
    batch = Batch(
        game,
        matches,
        seed=seed,
        preset=preset,
        overrides={**game.held_out, "maps": 64, **overrides},
    )
    per_team = batch.settings.sizes["per_team"]
    swapped = np.arange(matches) % 2 == 1 if first != second else np.zeros(matches, bool)
    for team, straight, turned in ((0, first, second), (1, second, first)):
        batch.set_controller("mech", straight, ~swapped, team)
        batch.set_controller("mech", turned, swapped, team)
    batch.reset()
    rows, open_ = np.zeros((matches, len(COLUMNS))), np.ones(matches, bool)
    for _ in range(int(batch.settings.params["max_steps"])):
        batch.step()
        for env in np.flatnonzero(open_ & batch["finished"]):
            own = slice(per_team, None) if swapped[env] else slice(0, per_team)
            goals = [
                batch[f"goal_{name}"][env, own].mean()
                for name in ("win", "draw", "zone_share", "survival")
            ]
            rows[env] = *goals, batch["step"][env]
        open_ &= ~batch["finished"]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", help="a preset of the game (default: the game as shipped)")
    parser.add_argument("--matches", type=int, default=512)
    parser.add_argument("--bots", nargs="*", default=BOTS, choices=BOTS)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="sizes and parameters"
    )
    options = parser.parse_args()
    overrides = {name: float(value) for name, value in (pair.split("=") for pair in options.set)}
    print(
        f"preset {options.preset or 'none'}, {options.matches} matches a row, held-out maps, "
        f"{overrides or ''}"
    )
    print(
        f"{'first':10} {'second':10} {'won':>16}" + "".join(f"{name:>12}" for name in COLUMNS[1:])
    )
    for first, second in product(options.bots, options.bots):
        if options.bots.index(first) > options.bots.index(second):
            continue
        rows = play(options.preset, first, second, options.matches, overrides)
        mean, error = rows.mean(0), 1.96 * rows[:, 0].std() / len(rows) ** 0.5
        print(
            f"{first:10} {second:10} {mean[0]:7.3f} ± {error:.3f} "
            + "".join(f"{value:12.3f}" for value in mean[1:]),
            flush=True,
        )


if __name__ == "__main__":
    main()
