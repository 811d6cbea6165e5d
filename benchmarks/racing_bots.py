"""How the scripted drivers of racing fare, on tracks that are not trained on.

python benchmarks/racing_bots.py [--preset oval] [--episodes 512] [--set walls=1 …]
"""

import argparse

import numpy as np

from ludus.games import load_game
from ludus.sim import Batch

HELD_OUT = 500_000  # first track of evaluation
BOTS = ["driver", "full_gas", "random", "still"]


def play(
    preset: str | None, bot: str, episodes: int, overrides: dict[str, float], seed: int = 0
) -> np.ndarray:
    """[episode, (finish, time, progress, return, length)] of the first episode of each of
    `episodes` envs."""
    game = load_game("racing_lidar")[0]
    spread = {} if preset == "oval" else {"first_track": HELD_OUT, "tracks": 256}
    batch = Batch(game, episodes, seed=seed, preset=preset, overrides={**spread, **overrides})
    batch.set_controller("driver", bot)
    batch.reset()
    open_, rows = np.ones(episodes, bool), []
    for _ in range(int(batch.settings.params["max_steps"])):
        batch.step()
        ended = open_ & batch["finished"]
        open_ &= ~ended
        names = ("goal_finish", "goal_time", "goal_progress", "episode_return", "episode_length")
        rows.append(np.stack([batch[name][ended, 0] for name in names], 1))
    return np.concatenate(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", help="a preset of the game (default: the game as shipped)")
    parser.add_argument("--episodes", type=int, default=512)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="sizes and parameters"
    )
    options = parser.parse_args()
    overrides = {name: float(value) for name, value in (pair.split("=") for pair in options.set)}
    print(
        f"preset {options.preset or 'none'}, {options.episodes} episodes a row, tracks from "
        f"{HELD_OUT}, {overrides or ''}"
    )
    print(
        f"{'driver':9} {'finished':>16} {'seconds':>14} {'progress':>14} {'return':>16} "
        f"{'steps':>7}"
    )
    for bot in BOTS:
        rows = play(options.preset, bot, options.episodes, overrides)
        mean, error = rows.mean(0), 1.96 * rows.std(0) / len(rows) ** 0.5
        print(
            f"{bot:9} {mean[0]:8.3f} ± {error[0]:.3f} {mean[1]:7.2f} ± {error[1]:.2f} "
            f"{mean[2]:6.3f} ± {error[2]:.3f} "
            f"{mean[3]:8.1f} ± {error[3]:.1f} {mean[4]:7.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
