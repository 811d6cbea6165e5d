"""Ludus trains agents to play games against each other, fast, and says why when they do not learn.

run = ludus.train("pursuit", total_agent_steps=3_000_000)
agent = ludus.load(run.path, role="chaser")
action, state = agent.act(observation, state)
"""

from ludus.errors import LudusError

__version__ = "0.1.0"
__all__ = ["LudusError", "evaluate", "load", "resume", "train"]


def __getattr__(name: str) -> object:
    """train, resume, load and evaluate, imported when first used: `import ludus` needs no torch."""
    if name in ("train", "resume", "load", "evaluate", "fork"):
        from ludus import api

        return getattr(api, name)
    raise AttributeError(f"module 'ludus' has no attribute '{name}'")
