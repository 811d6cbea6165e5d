"""What an episode costs the learning-progress curriculum, by the size of its pool: python -m
benchmarks.curriculum_cost"""

from __future__ import annotations

import argparse
import random
import time

from ludus.config import TasksConfig
from ludus.curriculum.buckets import Bucket
from ludus.curriculum.learning_progress import TaskPool

SIZES = (10, 100, 1_000, 10_000)


def microseconds(size: int, episodes: int) -> float:
    """Processor time of an episode: its score noted, the pool reviewed where due, the next task
    drawn."""
    source, scores = random.Random(0), random.Random(1)
    pool = TaskPool(
        TasksConfig(pool=size),
        [Bucket("a", low=0.0, high=1.0), Bucket("b", low=0.0, high=1.0)],
        0.0,
        source,
    )
    for number in range(size):
        pool.complete(number, scores.random(), 2)
    place, begin = 0, time.process_time()
    for _ in range(episodes):
        pool.complete(pool.number[place], scores.random())
        pool.review(source)
        place = pool.draw(source)
    return (time.process_time() - begin) / episodes * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.curriculum_cost", description=__doc__
    )
    parser.add_argument(
        "--episodes", type=int, default=100_000, help="episodes per size (default: 100,000)"
    )
    episodes = parser.parse_args().episodes
    print(f"{'tasks':>7} {'µs per episode':>15}")
    for size in SIZES:
        print(
            f"{size:>7,} {min(microseconds(size, episodes) for _ in range(3)):>15.2f}", flush=True
        )


if __name__ == "__main__":
    main()
