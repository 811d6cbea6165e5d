"""Ludus trains agents to play games against each other, fast, and says why when they do not learn.

run = ludus.train("pursuit", total_agent_steps=3_000_000)
agent = ludus.load(run.path, role="chaser")
action, state = agent.act(observation, state)
"""

import os

from ludus import algorithms, networks  # noqa: F401 (they register what can be named)
from ludus.errors import LudusError

if "OMP_WAIT_POLICY" not in os.environ:
    # Threads of torch that wait for each other give up their cores soon. By default they spin on,
    # and where another program has a core, small operations take ten times as long
    # (docs/benchmarks.md). Read when torch is first imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

__version__ = "0.1.0"
__all__ = ["LudusError", "evaluate", "fork", "load", "resume", "train"]


def __getattr__(name: str) -> object:
    """The functions of `ludus.api`, imported when first used: `import ludus` needs no torch."""
    if name in ("train", "resume", "fork", "evaluate", "load"):
        from ludus import api

        return getattr(api, name)
    raise AttributeError(f"module 'ludus' has no attribute '{name}'")
