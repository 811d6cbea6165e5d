"""Takes something away from a trained policy and sees what it does without: memory, messages, its
picture of the opponent.

The evidence is one line of examined.jsonl in the run's folder, under intervention/ROLE/KIND: how
much of the output changes on the same inputs, and what the role earns, with an interval, beside
what it earns untouched ('none'). The doctor's checks of memory read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ludus.batches import make_batch, of_game
from ludus.errors import LudusError
from ludus.evidence.diagnostics import Diagnostics
from ludus.examine.next_keys import bots_of, foretold, predictors
from ludus.machine import set_threads
from ludus.networks.history import HISTORY
from ludus.networks.policy import Policy
from ludus.play.evaluate import intervals, measure
from ludus.play.silence import messages_of, without_messages
from ludus.protocols import ActingPolicy, Batch
from ludus.runs.load import load_policies
from ludus.runs.run import Run, split_reference

FILE = "examined.jsonl"
EPISODES = 64
LOOKS_EVERY = 7
"""Steps between comparisons of outputs, which cost another forward pass. A prime: short episodes
must not hide a step from it."""


class Intervened:
    """A policy that acts without something. Everything else it does is the policy's own."""

    def __init__(self, policy: ActingPolicy, kind: str, messages: list[int]) -> None:
        self.policy, self.kind, self.messages = policy, kind, messages
        self.changes: list[float] = []
        self._calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def __call__(
        self, observation: Any, state: Any, starts: Any, mask: Any = None, seen: Any = None
    ) -> Any:
        order = torch.roll(torch.arange(observation.shape[1]), 1 + observation.shape[1] // 2)
        changed = self._without(observation, state, seen or {}, order)
        output = self.policy(changed[0], changed[1], starts, mask, changed[2])
        self._calls += 1
        if self._calls % LOOKS_EVERY == 2:  # not the first step, when there is no memory yet
            usual = self.policy(observation, state, starts, mask, seen)
            self.changes.append(Diagnostics.distance(usual.distribution, output.distribution))
        # the memory it would have had goes on, so that outputs are compared on it
        if self.kind == "memory_reset":
            output = output._replace(
                state=self.policy(observation, state, starts, mask, seen).state
            )
        return output

    def _without(
        self, observation: Any, state: Any, seen: Mapping[str, Any], order: Any
    ) -> tuple[Any, Any, Mapping[str, Any]]:
        if self.kind == "memory_reset":
            return observation, torch.zeros_like(state), seen
        if self.kind == "messages_silenced":
            return without_messages(observation, self.messages), state, seen
        if self.kind == "strategy_shuffled":
            return observation, state, {**seen, HISTORY: seen[HISTORY][:, order]}
        # the yardstick for the others: everything it sees is another's
        if self.kind == "observation_shuffled":
            return (
                observation[:, order],
                state,
                {name: part[:, order] for name, part in seen.items()},
            )
        return observation, state, seen


def kinds(policy: ActingPolicy, messages: list[int]) -> list[str]:
    """What can be taken away from a policy."""
    found = ["memory_reset"] * bool(policy.state_size) + ["messages_silenced"] * bool(messages)
    found += ["strategy_shuffled"] * (HISTORY in policy.seen)
    return [*found, "observation_shuffled"] if found else []


def examine_run(reference: str, episodes: int = EPISODES) -> dict[str, Any]:
    """Writes a line of evidence and returns it; refuses a run whose policies have nothing that
    could be taken away."""
    set_threads(1)
    folder, _ = split_reference(reference)
    run = Run(folder)
    config = replace(run.config(), device="cpu")
    policies, layout = load_policies(reference)
    messages = messages_of(layout, config)
    line: dict[str, Any] = {"progress/agent_steps": layout["step"]}
    wanted = {role: kinds(policy, messages) for role, policy in policies.items()}
    if not any(wanted.values()):
        raise LudusError(
            f"{folder} has no memory, no messages and no strategy vector: there is nothing to take "
            "away from it (leave --examine out)"
        )
    first = make_batch(config, 1, 0)
    against = opponent(first)

    def make(num_envs: int) -> Batch:
        return make_batch(config, num_envs, config.eval.seed + 1, held_out=True)

    for role, todo in wanted.items():
        for kind in ["none", *todo] if todo else []:
            touched = Intervened(policies[role], kind, messages)
            playing: dict[str, Any] = {**policies, role: touched}
            values = measure(make, playing, against, episodes, config.eval.seed + 1)
            told = intervals(values, first.game.goal_metrics)
            line |= _told(
                role, kind, touched, told, main_goal(first, role), alone=len(policies) == 1
            )
    for role, predictor in predictors(reference, first.layout.observation).items():
        policy = policies[role]
        assert isinstance(policy, Policy)  # what predicts keys was learned with one
        keys = foretold(make, policy, predictor, bots_of(of_game(first)), config.eval.seed + 1)
        line |= {f"intervention/{role}/none/{name}": value for name, value in keys.items()}
    with open(run.path / FILE, "a") as file:
        file.write(json.dumps(line) + "\n")
    return line


def opponent(batch: Batch) -> str:
    """A fixed one: the first bot that is more than random or still; else itself, alone."""
    single = len(batch.layout.seats) == 1 and batch.layout.seats[0].teams == 1
    bots = [
        n for table in batch.controllers.values() for n in table if n not in ("random", "still")
    ]
    return "self" if single else f"bot:{bots[0]}" if bots else "bot:random"


def main_goal(batch: Batch, role: str) -> str | None:
    """What the role is to achieve, where the game says so."""
    for name, goal in batch.game.goal_metrics.items():
        if goal.concerns(role) and goal.higher_is_better:
            return str(name)
    return None


def _told(
    role: str,
    kind: str,
    touched: Intervened,
    values: Mapping[str, Mapping[str, float]],
    goal: str | None,
    alone: bool,
) -> dict[str, float]:
    prefix = f"intervention/{role}/{kind}"
    out = {f"{prefix}/change": float(np.mean(touched.changes))} if touched.changes else {}
    names = {
        "return": ["return"] if alone else [f"{role}/return"],
        "goal": [goal, f"{role}/{goal}"] if goal else [],
    }
    for told, candidates in names.items():
        found = next((values[n] for n in candidates if n in values), None)
        if found is not None:
            out |= {
                f"{prefix}/{told}": found["mean"],
                f"{prefix}/{told}_low": found["low"],
                f"{prefix}/{told}_high": found["high"],
            }
    return out
