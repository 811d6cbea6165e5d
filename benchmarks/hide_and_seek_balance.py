"""How the bots of hide_and_seek fare against each other, on terrains that are not trained on.

python benchmarks/hide_and_seek_balance.py [--preset original] [--episodes 2048] [--set
seeker_speed=4.6 …]
"""

import argparse

import numpy as np

from ludus.games import load_game
from ludus.sim import Batch

HELD_OUT = 500_000  # first terrain seed of evaluation
PAIRS = [
    ("seeker", "hider"),
    ("seeker", "random"),
    ("seeker", "still"),
    ("random", "random"),
    ("random", "hider"),
]


def play(
    preset: str | None,
    seeker: str,
    hider: str,
    episodes: int,
    overrides: dict[str, float],
    seed: int = 0,
):
    """Means over the first episode of each of `episodes` envs (so that short ones do not count more
    often)."""
    game = load_game("hide_and_seek")[0]
    values = {"first_terrain": HELD_OUT, "terrains": 256, **overrides}
    batch = Batch(game, episodes, seed=seed, preset=preset, overrides=values)
    batch.set_controller("seeker", seeker)
    batch.set_controller("hider", hider)
    batch.reset()
    seekers = batch.settings.sizes["seekers"]
    open_, rows = np.ones(episodes, bool), []
    for _ in range(int(batch.settings.params["max_steps"])):
        batch.step()
        ended = open_ & batch["finished"]
        open_ &= ~ended
        columns = [
            batch["goal_catch_rate"][ended, 0],
            batch["goal_survival"][ended, seekers:].mean(1),
            batch["goal_lasted"][ended, seekers:].mean(1),
            batch["outcome"][ended, 0] > 0,
            batch["step"][ended],
        ]
        rows.append(np.stack(columns, 1))
    return np.concatenate(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", help="a preset of the game (default: the game as shipped)")
    parser.add_argument("--episodes", type=int, default=2048)
    parser.add_argument("--pairs", type=int, default=len(PAIRS), help="how many rows of the table")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="sizes and parameters"
    )
    options = parser.parse_args()
    overrides = {name: float(value) for name, value in (pair.split("=") for pair in options.set)}
    print(
        f"preset {options.preset or 'none'}, {options.episodes} episodes a row, terrain seeds from "
        f"{HELD_OUT}, {overrides or ''}"
    )
    print(
        f"{'seeker':8} {'hider':8} {'caught':>8} {'survived':>16} {'lasted':>8} {'won':>6} "
        f"{'length':>7}"
    )
    for seeker, hider in PAIRS[: options.pairs]:
        rows = play(options.preset, seeker, hider, options.episodes, overrides)
        mean, error = rows.mean(0), 1.96 * rows.std(0) / len(rows) ** 0.5
        print(
            f"{seeker:8} {hider:8} {mean[0]:8.3f} {mean[1]:8.3f} ± {error[1]:.3f} {mean[2]:8.3f} "
            f"{mean[3]:6.3f} {mean[4]:7.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
