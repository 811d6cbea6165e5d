"""What fusing kernels brings: rollouts and updates of hide_and_seek:original, all agents learning,
without logging.

python benchmarks/fused.py [--lstm] [--device cuda] [--envs 16384] [--seconds 4]
"""

import argparse
import contextlib
import dataclasses
import time

import torch

from ludus.algorithms.ppo.ppo import PPO
from ludus.batches import make_batch
from ludus.config import resolve
from ludus.recipes import load_recipe

MLP = {"hidden": (256, 256)}
LSTM = {"hidden": (128,), "memory": "lstm", "memory_size": 128, "separate_value": False}


def rate(device: str, envs: int, policy: dict, fused: bool, seconds: float) -> float:
    """Agent-steps per second, after two iterations that compile and warm up."""
    config = load_recipe("hide_and_seek:original")
    config.device, config.envs, config.train.compile, config.league.mix = (
        device,
        envs,
        fused,
        "self",
    )
    config.policy = dataclasses.replace(config.policy, **policy)
    config.learn = dataclasses.replace(config.learn, epochs=4, roles={})
    config = resolve(config)
    ppo = PPO(make_batch(config, envs, 0, stagger=True), config)

    def iterate() -> int:
        ppo.collect(lambda phase: contextlib.nullcontext())
        ppo.learn(0.0)
        return ppo.learned_steps()  # reads a number back: the device has finished

    for _ in range(2):
        iterate()
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        steps += iterate()
    return steps / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lstm", action="store_true", help="an LSTM of 128 units instead of 2x256")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--envs", type=int, default=16384)
    parser.add_argument("--seconds", type=float, default=4.0)
    own = parser.parse_args()
    torch.manual_seed(0)
    for fused in (False, True):
        found = rate(own.device, own.envs, LSTM if own.lstm else MLP, fused, own.seconds)
        print(
            f"{'fused' if fused else 'as torch runs them'}: {found:,.0f} agent-steps/s", flush=True
        )


if __name__ == "__main__":
    main()
