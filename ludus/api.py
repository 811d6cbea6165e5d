"""What a Python program calls: train, resume, fork, evaluate, load.

A run is named by its folder, or by RUN@STEP or RUN@best for one of its checkpoints. `changes` are
values of the config: by their last name where that is unique (`total_agent_steps=5_000_000`,
`seed=3`), else by their dotted name in a dict (`**{"ppo.gamma": 0.995}`). `quiet` leaves the
dashboard out. `trust` loads the code that a run names although the run was not made on this
machine. `env` is what a run was trained on, where a program handed over an object that no other
process finds by itself. `callbacks` is a list of objects, classes or import paths
(docs/callbacks.md).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ludus.config import Config, apply_preset, check_types, origins, set_by_name
from ludus.config.handed_over import hand_over
from ludus.errors import LudusError, nearest
from ludus.imports import path_of
from ludus.play.agent import Agent
from ludus.play.external_agent import ExternalAgent
from ludus.play.measure_run import measure_run
from ludus.recipes import recipe_of
from ludus.runs.load import external_layout, load_policies
from ludus.runs.run import Run, split_reference
from ludus.runs.trust import believe
from ludus.training import callbacks as of_user
from ludus.training import start
from ludus.training.resume import resume as resume_run


def train(
    recipe: Any,
    *,
    run: str | Path | None = None,
    preset: str | None = None,
    init_from: str | Path | None = None,
    init_modules: Sequence[str] = (),
    callbacks: Sequence[Any] | None = None,
    quiet: bool = False,
    trust: bool = False,
    **changes: Any,
) -> Run:
    """Trains a recipe and returns its run: a name, a Config (or a function that returns one), or an
    env of another library (the env, a class or a function that makes one).

    `run`: the new folder (default: runs/RECIPE-DATE). `init_from`: another run whose weights to
    start from, or those of its modules whose name contains one of `init_modules`. `trust` is for
    runs of `league.opponents`.
    """
    base = recipe_of(recipe)
    config = copy.deepcopy(base)
    _change(config, changes, preset)
    own = _take_over(config, callbacks)
    _prepare(*config.league.opponents, trust=trust)
    return start.train(
        config,
        origins(config, base, preset),
        run,
        name=recipe if isinstance(recipe, str) else "",
        quiet=quiet,
        init_from=init_from,
        init_modules=init_modules,
        callbacks=own,
    )


def resume(
    run: str | Path,
    *,
    env: Any = None,
    callbacks: Sequence[Any] = (),
    quiet: bool = False,
    trust: bool = False,
    **budgets: Any,
) -> Run:
    """Goes on where a run stopped, bit for bit, and returns it. Only budgets may change
    (`total_agent_steps`, `total_seconds`); schedules go on from where they stood. `callbacks`:
    those that the run was started with and that no other process finds by itself."""
    _prepare(run, env=env, trust=trust)
    return resume_run(run, budgets, quiet=quiet, callbacks=callbacks)


def fork(
    source: str | Path,
    *,
    run: str | Path | None = None,
    env: Any = None,
    callbacks: Sequence[Any] | None = None,
    quiet: bool = False,
    trust: bool = False,
    **changes: Any,
) -> Run:
    """A new run (in the folder `run`) that starts with the weights and optimizers of another's
    checkpoint: new episodes, a budget of its own, schedules from their start. Any setting may
    change."""
    _prepare(source, env=env, trust=trust)
    base = start.forkable(source)
    config = copy.deepcopy(base)
    _change(config, changes)
    own = _take_over(config, callbacks)
    _prepare(*config.league.opponents, trust=trust)
    return start.fork(source, config, origins(config, base), run, quiet=quiet, callbacks=own)


def evaluate(
    run: str | Path,
    against: str | Sequence[str] = "self",
    episodes: int = 256,
    *,
    on: str | None = None,
    seed: int | None = None,
    greedy: bool = False,
    silence: bool = False,
    env: Any = None,
    trust: bool = False,
) -> dict[str, Any]:
    """How a trained run plays on held-out seeds (`on`: in another game of the same layout): the
    JSON of `ludus eval`.

    `against`: self, bot:NAME, bots, snapshot:STEP, snapshots (an even sample of the pool),
    RUN[@step], or several of these. With several opponents metrics are named OPPONENT/METRIC, and
    those of bots, snapshots and older_snapshots (the older half of the pool) also count together.
    Where nobody opposes, a bot plays the same worlds in the policy's place: with `self` and bots,
    self/GOAL_better_than/BOT is the share of episodes in which the policy did better. `silence`:
    everything is played once more in the same worlds by policies that hear no messages (opponents
    still hear theirs): silenced/METRIC, and heard_minus_silenced/METRIC for what messages are
    worth. With `trust`, opponents that are runs are trusted too.
    """
    opponents = (against,) if isinstance(against, str) else tuple(against)
    _prepare(run, *opponents, env=env, trust=trust)
    return measure_run(run, opponents, episodes, on=on, seed=seed, greedy=greedy, silence=silence)


def load(run: str | Path, role: str | None = None, *, trust: bool = False) -> Agent:
    """The trained agent of a run: policy and normaliser, ready to act (default: of the first role).

    Of a run in an env of another library, it takes that env's observations and returns that env's
    actions (no env is made).
    """
    _prepare(run, trust=trust)
    external = external_layout(str(run))
    policies, layout = load_policies(str(run), external)
    if role is None:
        role = next(iter(policies))
    if role not in policies:
        raise LudusError(f"{run} has no role '{role}': {nearest(role, policies)}")
    if external is not None:
        return ExternalAgent(policies[role], layout, role, external.codec_of(role))
    return Agent(policies[role], layout, role)


def _take_over(config: Config, callbacks: Sequence[Any] | None) -> dict[str, Any]:
    """Puts their names into the config; returns what no other process finds."""
    if callbacks is None:
        return {}
    given = of_user.named(callbacks)
    config.callbacks = tuple(given)
    return of_user.handed_over(given)


def _change(config: Config, changes: Mapping[str, Any], preset: str | None = None) -> None:
    """Sets what is given by name: first the algorithm and the network, which say what other names
    mean."""
    first = {n: v for n, v in changes.items() if n in ("algorithm", "network", "policy.network")}
    for name, value in first.items():  # a name, an import path or a class
        set_by_name(config, name, path_of(value))
    if preset:
        apply_preset(config, preset)
    for name, value in changes.items():
        if name not in first:
            set_by_name(config, name, value)
    check_types(config)


def _prepare(*runs: str | Path, env: Any = None, trust: bool = False) -> None:
    """Before runs are read: whose code may be loaded, and what only this program has (of the first
    one)."""
    for reference in runs if trust else ():
        believe(split_reference(str(reference))[0])
    if env is not None:
        hand_over(Run(split_reference(str(runs[0]))[0]).settings().game, env)
