"""A check that asks for a metric which nothing writes is blind, and says nothing."""

import random
import re
from dataclasses import dataclass, field

import numpy as np
import pytest

import ludus
from ludus.config import unflatten
from ludus.doctor.log import Curve, Log
from ludus.doctor.watch import checked
from ludus.files import read_lines

MADE_UP = "x7"
STEPS = np.arange(1, 61) * 1000.0
SHAPES = {
    "rises": np.linspace(0.0, 1.0, 60),
    "falls": np.linspace(1.0, 0.0, 60),
    "stands": np.full(60, 0.5),
    "nothing": np.zeros(60),
    "explodes": np.geomspace(1e-6, 1e12, 60),
    "negative": np.linspace(-1.0, -9.0, 60),
    "noise": np.random.default_rng(0).normal(size=60),
    "late": np.repeat([0.0, 1.0], 30),
}
NOT_HERE = {
    "loss": "of other libraries",
    "memory/gpu_allocated_mb": "on a GPU",
    "memory/client_mb": "of remote envs",
    "memory/workers_mb": "of envs in processes of their own",
    "memory/ram_percent": "of other libraries",
    "speed/average": "of other libraries",
    "std": "of other libraries",
    "entropy_coefficient": "of other libraries",
}
"""Read, and not written by the runs below."""
OF_EXPERIMENTS = "intervention/"
"""Written by `ludus eval --analyse`: tests/examine/test_interventions.py."""


@dataclass
class Asked(Log):
    """A log with every curve there could be, each of a random shape or absent. It notes what is
    asked for: whole names, keys of any role and family, and beginnings of names."""

    names: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    beginnings: set[str] = field(default_factory=set)
    seed: int = 0
    usual: str = "stands"
    values: bool = False

    @property
    def by_values(self):
        return self.values

    def make(self, name):
        dice = random.Random(f"{self.seed} {name}")  # whatever else is asked for
        if name not in self.curves and dice.random() < 0.8:
            values = SHAPES[dice.choice((*SHAPES, *[self.usual] * len(SHAPES)))]
            self.curves[name] = Curve(name, STEPS, values * dice.choice((0.01, 1.0, 50.0)))
        return self.curves.get(name)

    def get(self, name):
        if MADE_UP not in name:
            self.names.add(name)
        return self.make(name)

    def of(self, role, key):
        self.keys.add(key)
        return self.make(f"episode/{role}/{key}")

    def starting(self, prefix):
        self.beginnings.add(prefix)
        rest = {
            "module": "/gradient",
            "action": "/pressed",
            "league": "/win_rate",
            "eval": "/return",
        }
        self.make(f"{prefix}{MADE_UP}{rest.get(prefix.split('/')[0], '')}")
        return super().starting(prefix)


def everything_asked():
    """What the checks ask for, over many logs that send them down many paths."""
    names, keys, beginnings = set(), set(), set()
    for seed in range(700):
        dice = random.Random(seed)
        log = Asked(source="log", seed=seed, ours=dice.random() < 0.8)
        log.usual = dice.choice(list(SHAPES))
        log.self_play, log.values = dice.random() < 0.3, dice.random() < 0.3
        log.config = {
            "algorithm": dice.choice(("ppo", "rainbow")),
            "envs": 8,
            "ppo.entropy": 0.01,
            "ppo.normalise_values": True,
            "rainbow.target_every": 100,
            "rainbow.n_step": 3,
            "rainbow.gamma": 0.99,
            "checkpoint.best_metric": "eval/self/chaser/return",
            "train.total_agent_steps": 60_000,
            "curriculum.stages": [{}, {}],
        }
        log.make("episode/chaser/return")
        checked(log)
        names, keys, beginnings = names | log.names, keys | log.keys, beginnings | log.beginnings
    return names, keys, beginnings


def values(game, algorithm="ppo", network="standard", **changes):
    """The configuration of a short run, by dotted names."""
    return {
        "game": game,
        "algorithm": algorithm,
        "policy.network": network,
        "envs": 8,
        "policy.hidden": [16],
        "train.total_agent_steps": 2000,
        "train.threads": 1,
        "eval.episodes": 2,
        "checkpoint.every_agent_steps": 1000,
        "checkpoint.every_seconds": None,
        "log.diagnostics_every": 2,
        "log.tensorboard": False,
        **changes,
    }


SHORT = {"ppo.rollout": 16, "ppo.epochs": 1, "ppo.minibatches": 1}
PURSUIT = {**SHORT, "game.max_steps": 10, "eval.against": ["self", "bot:flee"]}
STRATEGY = {"size": "small", "entries": "other0_", "history": 8, "layers": 1, "heads": 1}
STAGES = [
    {
        "mix": "self 1, pool 2, bot:flee 1",
        "metric": "goal/chaser/catch_rate",
        "threshold": 0.0,
        "least_episodes": 8,
        "least_agent_steps": 1000,
    },
    {"mix": "self 1"},
]
RUNS = {
    "stages": values(
        "pursuit",
        network="strategy",
        **PURSUIT,
        **{f"policy.strategy.{name}": value for name, value in STRATEGY.items()},
        **{
            "policy.strategy.width": 8,
            "policy.strategy.vector": 8,
            "policy.memory": "lstm",
            "policy.memory_size": 8,
            "ppo.bptt": 8,
            "league.snapshot_every": 500,
            "league.slots": 2,
            "curriculum.stages": STAGES,
        },
    ),
    "tasks": values(
        "pursuit",
        **PURSUIT,
        **{
            "game.reach": "0.3 -> 0.5",
            "curriculum.tasks.vary.speed": "0.05 to 0.15",
            "curriculum.tasks.pool": 4,
        },
    ),
    "rainbow": values(
        "racing_lidar", algorithm="rainbow", **{"rainbow.warm_up": 100, "rainbow.replay": 2000}
    ),
    "gym": values("gym:CartPole-v1", **SHORT),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Every name in the logs of runs that use, together, what a recipe may use."""
    found = set()
    for kind, settings in RUNS.items():
        run = ludus.train(
            unflatten(settings), run=tmp_path_factory.mktemp("runs") / kind, quiet=True
        )
        for file in ("metrics.jsonl", "diagnostics.jsonl"):
            for line in read_lines(run.path / file):
                found |= set(line)
    return found


def of_any_role(name):
    """learner/runner/entropy → learner/ROLE/entropy."""
    return re.sub(r"/(agent|chaser|runner|driver)(?=/)", "/ROLE", name)


def test_checks_ask_only_for_what_some_run_writes(written):
    names, keys, beginnings = everything_asked()
    assert len(names) > 20 and len(keys) > 10 and len(beginnings) > 5
    known = {of_any_role(name) for name in written}
    known |= {name.replace("league/ROLE/", "league/") for name in known}  # in games of one role
    last = {name.rsplit("/", 1)[1] for name in written if name.count("/") == 2}
    assert {k for k in keys if k not in last} <= set(NOT_HERE)
    assert {
        p for p in map(of_any_role, beginnings) if not any(n.startswith(p) for n in known)
    } == set()
    asked = {of_any_role(n) for n in names if not n.startswith(OF_EXPERIMENTS)}
    assert {n for n in asked if n not in known} <= set(NOT_HERE)


def test_every_exception_is_still_asked_for():
    names, keys, _ = everything_asked()
    assert set(NOT_HERE) <= names | keys
