"""What one env of a recipe takes of a GPU's memory, by the size of its game, and how many envs fit.

python benchmarks/memory_per_env.py [mechs] [--size per_team 1 2 10 20] [--envs 4096] [--gpu-gb 141]

The numbers are those by which `ludus train --device cuda` refuses what does not fit
(`ludus/training/memory.py`): state is what the simulator holds, rollout what PPO keeps of an
iteration's steps, memory what recurrent policies carry from step to step. Nothing is allocated, so
no GPU is needed.
"""

import argparse

from ludus.batches import game_info
from ludus.config import resolve
from ludus.recipes import load_recipe
from ludus.training.memory import SPARE, parts_per_env


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", nargs="?", default="mechs")
    parser.add_argument(
        "--size", nargs="+", default=["per_team", "1", "2", "10", "20"], metavar=("NAME", "VALUE")
    )
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument(
        "--gpu-gb", type=float, default=141.0, help="memory of the GPU (default: an H200's)"
    )
    options = parser.parse_args()
    name, *values = options.size
    room = SPARE * options.gpu_gb * 1e9
    print(f"{options.recipe}; of {options.gpu_gb:.0f} GB, {SPARE:.0%} are for envs")
    print(
        f"{name:>10} {'state':>9} {'rollout':>10} {'memory':>9} {'an env':>10} "
        f"{f'{options.envs:,} envs':>13} {'fit':>9}"
    )
    for value in values:
        config = load_recipe(options.recipe)
        config.game_values = {**config.game_values, name: int(value)}
        config = resolve(config)
        parts = parts_per_env(config, game_info(config))
        each = sum(parts.values())
        shown = "".join(
            f" {parts.get(part, 0) / 1e3:>{width}.0f} kB"
            for part, width in (("state", 6), ("rollout", 7), ("memory", 6))
        )
        print(
            f"{value:>10}{shown} {each / 1e3:>7.0f} kB {options.envs * each / 1e9:>10.2f} GB "
            f"{int(room // each):>9,}"
        )


if __name__ == "__main__":
    main()
