"""Starting a run: everything that cannot work is refused, then the folder appears complete, or not
at all."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ludus import machine
from ludus.batches import find_game, is_foreign, layout_of, role_rows, values_at
from ludus.config import OF_ACTIONS, Config, check, check_types, flatten, resolve
from ludus.config.rainbow import check_game
from ludus.curriculum.check_stages import check_stages
from ludus.curriculum.tasks import check_tasks
from ludus.errors import LudusError, nearest
from ludus.files import sync_folder, write_atomically
from ludus.league.league import mixes
from ludus.league.matchmaking import check_sampler
from ludus.networks.sets import check_sets
from ludus.play.lineups import make_lineups
from ludus.play.opponents import spelled_out
from ludus.runs import sinks
from ludus.runs.run import Run
from ludus.runs.trust import believe
from ludus.sim.conformance import try_rules
from ludus.sim.episode import RANDOM
from ludus.sim.layout import Layout
from ludus.sim.program import controllers
from ludus.training.display import Display
from ludus.training.headline import check_stage_metrics, headline
from ludus.training.loop import Trainer
from ludus.training.memory import check_memory
from ludus.training.threads import choose_threads
from ludus.who import POOL, SNAPSHOTS, read_mix

ABANDONED_AFTER = (
    60.0  # seconds without a change; a run that is just being made has its lock a moment later
)


def prepare(
    config: Config, origins: Mapping[str, str] | None = None
) -> tuple[Config, dict[str, str]]:
    """The config with everything derived, and where each value came from; or an error before
    anything is written."""
    check_types(config)
    asked = flatten(config)
    config = resolve(config)
    machine.require(config.device)
    sinks.require(config.log)
    check(config, role_rows(config))
    check_names(config)
    config.checkpoint.best_metric = headline(config)
    check_held_out(config)
    check_rules(config)
    check_memory(config)
    if config.train.threads is None:
        config.train.threads = choose_threads(config)
    derived = {
        name: "derived"
        for name, value in flatten(config).items()
        if asked.get(name) is None and value is not None
    }
    return config, {**(origins or {}), **derived}


def check_names(config: Config) -> None:
    """Opponents and action entries that the config names must exist: not an error for later, when a
    tenth is trained."""
    batch_layout, game = layout_of(config)
    bots = controllers(game) if game is not None else {"agent": {"random": RANDOM}}
    for against in config.eval.against:
        taken = config.league.snapshot_every and any(POOL in read_mix(m) for m in mixes(config))
        if against == SNAPSHOTS and not taken:
            raise LudusError(
                "eval.against has snapshots, but none are taken: add pool to league.mix, and set "
                "league.snapshot_every"
            )
    spelled_out(config.eval.against, batch_layout, bots)
    for key in OF_ACTIONS:
        for entry in getattr(config.policy, key):
            if entry not in batch_layout.continuous:
                raise LudusError(f"policy.{key}.{entry}: {nearest(entry, batch_layout.continuous)}")
    for prefix in config.policy.quiet_inputs:
        if not any(name.startswith(prefix) for name in batch_layout.observation):
            raise LudusError(
                f"policy.quiet_inputs names '{prefix}', but no observation entry begins so: "
                f"{nearest(prefix, batch_layout.observation)}"
            )
    check_sets(config, batch_layout.observation)
    strategy = config.policy.strategy
    if strategy.size != "none" and not any(
        name.startswith(strategy.entries) for name in batch_layout.observation
    ):
        raise LudusError(
            f"policy.strategy.entries is '{strategy.entries}', but no observation entry begins so: "
            f"{nearest(strategy.entries, batch_layout.observation)}"
        )
    duel = [(seats.count, seats.teams) for seats in batch_layout.seats] == [(1, 2)] and len(
        batch_layout.binary
    ) > 0
    if (
        any(config.learn.for_role(seats.role).next_keys for seats in batch_layout.seats)
        and not duel
    ):
        raise LudusError(
            f"learn.next_keys needs a game of one against one with keys, and {config.game} is "
            "none: set it to 0"
        )
    if (batch_layout.seen or strategy.size != "none") and not config.policy.hidden:
        raise LudusError(
            f"{config.game} has pictures, tokens or a strategy vector, which join in the first "
            "hidden layer: "
            f"give policy.hidden a layer"
        )
    if config.algorithm == "rainbow":
        settings = (
            game.resolve(values_at(config, 0.0), find_game(config.game)[1])
            if game is not None
            else None
        )
        longest = settings.params.get("max_steps") if settings is not None else None
        check_game(config.rainbow, config.game, batch_layout, longest, config.envs)
    check_sampler(config.league.sampler)
    for mix in mixes(config):
        if mix and game is None:
            raise LudusError(f"league.mix '{mix}': {config.game} has no opponents; leave it empty")
        make_lineups(batch_layout, bots, read_mix(mix))
    check_stages(config.curriculum.stages, config.curriculum.first_stage, batch_layout, bots, game)
    check_stage_values(config)
    check_stage_metrics(config)
    check_tasks(config, game)


def check_stage_values(config: Config) -> None:
    """Game values of stages must fit the game, and other sizes must leave the policy as it is."""
    stages = config.curriculum.stages
    if is_foreign(config.game):
        if stages:
            raise LudusError(
                f"{config.game} has no opponents and no parameters that stages could change: leave "
                "curriculum.stages empty"
            )
        return
    game, preset = find_game(config.game)
    own = values_at(config, 0.0)
    first = Layout(game, game.resolve(own, preset)).describe()
    for i, stage in enumerate(stages):
        layout = Layout(game, game.resolve({**own, **stage.game}, preset))
        other = layout.describe()
        different = [
            part for part in ("observation", "seen", "action") if other.get(part) != first.get(part)
        ]
        sizes = {n: v for n, v in stage.game.items() if n in game.sizes}
        if different:
            named = ", ".join(f"{n}={v:g}" for n, v in sizes.items())
            raise LudusError(
                f"stage {i + 1} of {len(stages)} has {named}, with which agents have another "
                f"{different[0]}: a policy cannot carry "
                f"over; use sizes that leave it alone"
            )
        if sizes:
            check(config, {s.role: s.count * s.teams * config.envs for s in layout.seats})


def check_held_out(config: Config) -> None:
    """Worlds that evaluation plays are not for training: what begins with first_ numbers them, and
    those above are held out."""
    if is_foreign(config.game):
        return
    game, preset = find_game(config.game)
    settings = game.resolve(values_at(config, 0.0), preset)
    for name in (n for n in game.held_out if n.startswith("first_")):
        chosen, limit = (
            {**settings.sizes, **settings.params}[name],
            min(game.held_out[name], game.validation.get(name, math.inf)),
        )
        if chosen >= limit:
            raise LudusError(
                f"game.{name}={chosen:.0f} is held out for evaluation, like everything from "
                f"{limit:,} on: train below {limit:,}"
            )


def check_rules(config: Config) -> None:
    """A game of the user's own plays some steps with every index checked. Those of Ludus have tests
    for it."""
    if is_foreign(config.game):
        return
    game, preset = find_game(config.game)
    if any(
        not phase.function.__module__.startswith("ludus.")
        for phase in (*game.step, *game.reset, *game.setup)
    ):
        try_rules(game, values_at(config, 0.0), preset)


def remove_abandoned(parent: Path) -> None:
    """Folders of runs whose process was killed while it made them: nobody holds their lock."""
    for partial in parent.glob(".*.partial"):
        with contextlib.suppress(LudusError, OSError):
            if time.time() - partial.stat().st_mtime > ABANDONED_AFTER and not Run(partial).locked:
                shutil.rmtree(partial, ignore_errors=True)


def create(
    path: Path,
    config: Config,
    origins: Mapping[str, str],
    *,
    extra: Mapping[str, Any] | None = None,
    begin: Callable[[Trainer], None] | None = None,
    display: Display | None = None,
    schedules_at: float = 0.0,
) -> Trainer:
    """A new run folder with its checkpoint 0: it appears complete, or not at all. `begin` may load
    weights first. `schedules_at`:
    where its schedules start, for a run that continues another."""
    Run.refuse_existing(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    remove_abandoned(path.parent)
    shutil.rmtree(partial, ignore_errors=True)
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        partial.mkdir(parents=True)
        (partial / "config.json").write_text("{}")
        run = Run(partial)
        run.lock()  # it goes with the folder: whoever sees the run sees that it is being trained
        run.write_config(config, origins, extra)
        trainer = Trainer(run, config, display=display)
        if begin is not None:
            begin(trainer)
        trainer.begin(schedules_at)
        game = {
            **trainer.batch.received(),
            "preset": config.game.partition(":")[2] or None,
            "layout": trainer.batch.layout.describe(),
            "fingerprint": trainer.batch.fingerprint(),
        }
        write_atomically(partial / "game.json", json.dumps(game, indent=1))
        trainer.save()
        if path.exists():
            path.rmdir()
        partial.rename(path)
        for folder in (
            path,
            *made,
        ):  # a folder that was made for the run is lost with it unless it is safe itself
            sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
    run.path = path
    believe(path)
    return trainer
