"""Ludus trains agents to play games against each other, fast, and says why when they do not learn.

run = ludus.train("pursuit", total_agent_steps=3_000_000)
agent = ludus.load(run.path, role="chaser")
action, state = agent.act(observation, state)
"""

import importlib
import os
from typing import TYPE_CHECKING

from ludus import algorithms, networks  # noqa: F401 (they register what can be named)
from ludus.errors import LudusError

if TYPE_CHECKING:
    from ludus.algorithms.algorithm import Learner
    from ludus.algorithms.on_policy import OnPolicy
    from ludus.api import evaluate, fork, load, resume, train
    from ludus.config import AlgorithmConfig, NetworkConfig
    from ludus.networks.network import Auxiliary, Network
    from ludus.training.callbacks import Callback

if "OMP_WAIT_POLICY" not in os.environ:
    # Threads of torch that wait for each other give up their cores soon. By default they spin on,
    # and where another program has a core, small operations take ten times as long
    # (docs/benchmarks.md). Read when torch is first imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

__version__ = "0.1.0"
EXPORTED = {
    "train": "ludus.api",
    "resume": "ludus.api",
    "fork": "ludus.api",
    "evaluate": "ludus.api",
    "load": "ludus.api",
    # what a user's own code inherits
    "AlgorithmConfig": "ludus.config",
    "NetworkConfig": "ludus.config",
    "Learner": "ludus.algorithms.algorithm",
    "OnPolicy": "ludus.algorithms.on_policy",
    "Network": "ludus.networks.network",
    "Auxiliary": "ludus.networks.network",
    "Callback": "ludus.training.callbacks",
}
"""Imported when first used: `import ludus` needs no torch."""
__all__ = [
    "AlgorithmConfig",
    "Auxiliary",
    "Callback",
    "Learner",
    "LudusError",
    "Network",
    "NetworkConfig",
    "OnPolicy",
    "evaluate",
    "fork",
    "load",
    "resume",
    "train",
]


def __getattr__(name: str) -> object:
    if name not in EXPORTED:
        raise AttributeError(f"module 'ludus' has no attribute '{name}'")
    return getattr(importlib.import_module(EXPORTED[name]), name)
