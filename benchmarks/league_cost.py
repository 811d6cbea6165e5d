"""What playing against the past costs: brawl with half of its games against snapshots in 8 slots,
beside the same without them.

python benchmarks/league_cost.py [--device cuda] [--envs 4096] [--slots 8] [--seconds 10]
"""

import argparse
import json

import torch

from ludus.bench.train import measure
from ludus.config import CurriculumConfig, resolve
from ludus.recipes import load_recipe


def rates(device: str, envs: int, mix: str, slots: int, seconds: float) -> dict[str, float]:
    """Both: steps of envs, which tell the cost of an iteration, and steps that were learned from,
    which are fewer with opponents."""
    config = load_recipe("brawl")
    config.device, config.envs, config.curriculum = device, envs, CurriculumConfig()
    config.league.mix, config.league.slots, config.learner.minibatches = mix, slots, 16
    config.train.total_agent_steps, config.train.total_seconds = 10**12, None
    torch.manual_seed(0)
    config = resolve(config)
    found = measure(config, seconds)
    return {
        "env_steps_per_s": envs * config.learner.rollout / found["seconds"],
        "agent_steps_per_s": found["agent_steps_per_s"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    own = parser.parse_args()
    alone = rates(own.device, own.envs, "self 100", own.slots, own.seconds)
    league = rates(own.device, own.envs, "self 50, pool 50", own.slots, own.seconds)
    share = {name: league[name] / alone[name] for name in alone}
    print(
        json.dumps(
            {"without opponents": alone, "with opponents": league, "share kept": share}, indent=2
        )
    )


if __name__ == "__main__":
    main()
