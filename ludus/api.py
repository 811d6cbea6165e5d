"""What a Python program calls: train, resume, fork, load, evaluate."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ludus.batches import make_batch, role_rows
from ludus.config import (
    Config,
    apply_preset,
    check,
    check_types,
    flatten,
    origins,
    refuse_preset,
    refuse_unused,
    set_value,
    unflatten,
)
from ludus.config.handed_over import hand_over
from ludus.config.schedules import parse
from ludus.errors import LudusError, disk_in_one_sentence, nearest
from ludus.intervals import difference
from ludus.machine import set_threads
from ludus.play.agent import Agent
from ludus.play.evaluate import better_than, intervals
from ludus.play.external_agent import ExternalAgent
from ludus.play.lineups import sides
from ludus.play.opponents import Rivals, measure_each
from ludus.play.silence import silenced
from ludus.recipes import recipe_of
from ludus.runs import budget, checkpoint, weights
from ludus.runs.budget import BUDGETS
from ludus.runs.load import check_same_layout, external_layout, load_policies
from ludus.runs.run import ON_REQUEST, Run, default_name, remove, split_reference, versions
from ludus.runs.sinks import open_sinks
from ludus.runs.snapshots import remove_unreferenced
from ludus.runs.trust import believe
from ludus.training import rollback
from ludus.training.dashboard import Dashboard
from ludus.training.loop import Trainer
from ludus.training.report import write_report
from ludus.training.start import create, prepare

if TYPE_CHECKING:
    from ludus.runs.run import Run
    from ludus.training.loop import Trainer


def train(
    recipe: Any,
    *,
    run: str | Path | None = None,
    preset: str | None = None,
    quiet: bool = False,
    **changes: Any,
) -> Run:
    """Trains a recipe and returns its run: a name, a Config (or a function that returns one), or an
    env of another library (the env, a class or a function that makes one).

    `changes` are config values by their last name where that is unique
    (`total_agent_steps=5_000_000`, `seed=3`), or by their dotted name in a dict: `train("pursuit",
    **{"learn.gamma": 0.995})`.
    """

    base = recipe_of(recipe)
    config = copy.deepcopy(base)
    config.algorithm = changes.get(
        "algorithm", config.algorithm
    )  # first: it says what the other names mean
    if preset:
        refuse_preset(config, preset)
        apply_preset(config, preset)
    for name, value in changes.items():
        full = _full_name(config, name)
        refuse_unused(config, full)
        set_value(config, full, value)
    return start(config, origins(config, base, preset), run, quiet=quiet)


def _full_name(config: Config, name: str) -> str:
    """The dotted name that a last name means; of the algorithms' settings, only those of the one in
    use are meant."""
    if "." in name:
        return name
    unused = "rainbow." if config.algorithm == "ppo" else "learn."
    named = [n for n in flatten(config) if n == name or n.endswith("." + name)]
    matches = [n for n in named if not n.startswith(unused)] or named[:1]
    exact = [n for n in matches if n == name]
    if len(exact or matches) > 1:
        raise LudusError(f"'{name}' could be {' or '.join(matches)}: give the dotted name")
    return (exact or matches or [name])[0]


@disk_in_one_sentence()
def start(
    config: Config,
    sources: Mapping[str, str],
    path: str | Path | None,
    *,
    quiet: bool = False,
    init_from: str | None = None,
    init_modules: tuple[str, ...] = (),
) -> Run:
    """Creates a run and trains it."""

    folder = Path(path) if path is not None else Path("runs") / default_name(config.game)
    Run.refuse_existing(folder)
    config, sources = prepare(config, sources)
    extra = {"init_from": init_from, "init_modules": list(init_modules)} if init_from else None

    def begin(trainer: Trainer) -> None:
        if init_from:
            source, mark = split_reference(init_from)
            origin = Run(source)
            step = checkpoint.find(origin, mark)
            manifest = checkpoint.read_manifest(origin, step)
            tensors = checkpoint.read(origin, step, manifest, "policy.safetensors")
            where = f"{source}@{step}"
            loaded = weights.load_policies(
                trainer.algorithm, trainer.batch.layout, tensors, manifest, where, init_modules
            )
            weights.refuse_other_meaning(origin.settings().policy, config.policy, loaded, where)

    with Dashboard(config, quiet) as dashboard:
        trainer = create(folder, config, sources, extra=extra, begin=begin, display=dashboard)
        finish(trainer)
    return _after_doctor(trainer, quiet)


def finish(trainer: Trainer) -> None:
    """Trains to the end, notes how it ended, asks the doctor and writes the report, whatever
    happens on the way. The first error is the one that is told."""

    trainer.run.forget_end()
    try:
        trainer.run.sinks = open_sinks(trainer.run.path, trainer.config)
        trainer.train()
    except KeyboardInterrupt:  # at once: no report either
        with contextlib.suppress(OSError):
            trainer.run.note_end(
                "stopped", "interrupted: what came after the last checkpoint is lost"
            )
            trainer.run.close()
        raise
    except BaseException as error:
        for_doctor = isinstance(error, LudusError) and trainer.doctor.acts_on is not None
        with contextlib.suppress(OSError, LudusError):
            trainer.run.note_end(
                "stopped" if for_doctor else "crashed", str(error) or type(error).__name__
            )
            _conclude(trainer)
        if not for_doctor:
            raise
        return
    finding = trainer.doctor.acts_on
    if finding is not None:
        trainer.run.note_end("stopped", f"by the doctor: {finding.cause}")
    elif trainer.share < 1.0:
        trainer.run.note_end("stopped", ON_REQUEST)
    else:
        trainer.run.note_end("finished")
    _conclude(trainer)


def _conclude(trainer: Trainer) -> None:

    trainer.run.close()
    trainer.display.status("asking the doctor about the whole run, and writing the report")
    trainer.doctor.conclude(trainer.progress.agent_steps)
    write_report(trainer.run)


def _after_doctor(trainer: Trainer, quiet: bool) -> Run:
    """The run that training ended with: where the doctor asked to go back, that of the rollback."""

    run: Run = trainer.run
    finding = trainer.doctor.acts_on
    if finding is None or trainer.doctor.on_critical != "rollback":
        return run
    chosen = rollback.plan(run, finding, trainer.config)
    if chosen is None:
        print(
            f"ludus: {finding.check}: no change is suggested that could be tried, so training "
            "stops here",
            file=sys.stderr,
        )
        return run
    reference = f"{run.path}@{chosen.step}"
    print(
        f"ludus: {finding.cause}: going on from {reference} with {chosen.changes} in {chosen.path}",
        file=sys.stderr,
    )
    config = forkable(reference)
    rollback.apply(config, chosen)
    sources = dict.fromkeys(chosen.changes, "doctor")
    sources = {**run.stored()["origins"], **sources}
    return fork(
        reference, config, sources, chosen.path, quiet=quiet, schedules_at=chosen.schedule_share
    )


@disk_in_one_sentence()
def resume(
    reference: str | Path,
    *,
    quiet: bool = False,
    env: Any = None,
    trust: bool = False,
    **budgets: Any,
) -> Run:
    """Goes on where a run stopped, bit for bit. Only budgets may change; schedules go on from where
    they stood. `env`: what a run was trained on that a program handed over and no other process
    finds by itself. `trust`: load the game of a run that was not made here, although that executes
    its code."""

    folder, mark = split_reference(str(reference))
    run = Run(folder)
    if trust:
        believe(run.path)
    data, config = run.stored(), run.config()
    if env is not None:
        hand_over(config.game, env)
    for name, value in budgets.items():
        full = _full_name(config, name)
        if full not in BUDGETS:
            raise LudusError(
                f"resume may change only {' and '.join(BUDGETS)}, not {full}: `ludus fork {folder} "
                f"--{full} …` makes a new run"
            )
        set_value(config, full, value)
        data["origins"][full] = "command line"
    check_types(config)
    check(config, role_rows(config))
    step, state = checkpoint.find(run, mark), run.state()[0]
    run.lock()
    progress = checkpoint.verify(run, step)["progress"]
    if budget.spent(config.train, progress["agent_steps"], progress["seconds"]) >= 1.0:
        if state == "crashed" and mark is None:  # killed between its last checkpoint and its report
            _finish_late(run)
            return run
        run.close()
        raise LudusError(
            f"{folder} has spent its budget ({progress['agent_steps']:,} agent-steps, "
            f"{progress['seconds']:.0f} s): "
            f"raise it with --train.total-agent-steps or --train.total-seconds"
        )
    with Dashboard(config, quiet) as dashboard:
        trainer = Trainer(run, config, display=dashboard)
        trainer.restore(run, step)
        # until here nothing on disk was changed: what cannot be resumed stays as it was
        if mark is not None:
            _drop_newer(run, step)
        remove_unfinished(run)
        trainer.cut_back(step)
        _say_what_changed(checkpoint.read_manifest(run, step))
        _say_if_nothing_is_learned(trainer, folder)
        run.write_config(
            config,
            data["origins"],
            {k: v for k, v in data.items() if k not in ("values", "origins", "versions")},
        )
        finish(trainer)
    return _after_doctor(trainer, quiet)


def _finish_late(run: Run) -> None:

    remove_unfinished(run)
    run.note_end("finished")
    write_report(run)
    run.close()


def _say_what_changed(manifest: Mapping[str, Any]) -> None:

    now = versions()
    changed = [
        f"{name} {old} → {now.get(name)}"
        for name, old in manifest["versions"].items()
        if now.get(name) != old
    ]
    if changed:
        print(
            f"ludus: going on with other versions ({', '.join(changed)}): not bit for bit",
            file=sys.stderr,
        )


def _say_if_nothing_is_learned(trainer: Trainer, folder: Path) -> None:
    """A learning rate that came down to 0 stays there when a finished run is given more budget."""
    rates = trainer.config.learning_rates(list(trainer.algorithm.policies))
    share = trainer.schedule_share
    if all(parse(rate)(share) == 0 and parse(rate)(1.0) == 0 for rate in rates.values()):
        key = next(iter(rates))
        print(
            f"ludus: the learning rate ended at 0 ({key}={rates[key]}): this run plays on and "
            "learns nothing more; to train on: "
            f'ludus fork {folder} --{key.replace("_", "-")} "3e-4 -> 0"',
            file=sys.stderr,
        )


def _drop_newer(run: Run, step: int) -> None:
    """Going on from an older checkpoint on request: the newer ones make way, into discarded/."""

    for newer in [s for s in checkpoint.steps(run) if s > step]:
        target = run.path / "discarded" / f"checkpoint-{newer}"
        target.parent.mkdir(exist_ok=True)
        checkpoint.folder(run, newer).rename(target)


def remove_unfinished(run: Run) -> None:
    """What was being written or removed when the process died: folders of checkpoints, files under
    the name they have until they are complete, snapshots that no checkpoint refers to."""

    remove(p for p in run.path.glob("checkpoints/*") if not (p / "manifest.json").exists())
    for folder in (run.path, run.path / "snapshots", run.path / "replays"):
        for path in (*folder.glob("*.tmp"), *folder.glob(".tmp*")):  # the latter by safetensors
            path.unlink(missing_ok=True)
    remove_unreferenced(run)


def forkable(reference: str | Path, *, trust: bool = False) -> Config:
    """The config of a run as a starting point for another: what was derived for it is derived anew.
    `trust`: as in `resume`."""

    run = Run(split_reference(str(reference))[0])
    if trust:
        believe(run.path)
    run.config()  # refuses somebody's code
    data = run.stored()
    return unflatten(
        {n: None if data["origins"].get(n) == "derived" else v for n, v in data["values"].items()}
    )


@disk_in_one_sentence()
def fork(
    reference: str | Path,
    config: Config,
    sources: Mapping[str, str],
    path: str | Path | None,
    *,
    quiet: bool = False,
    schedules_at: float = 0.0,
) -> Run:
    """A new run that starts with the weights and optimizers of another's checkpoint: new episodes,
    a budget of its own, and schedules from their start (or from `schedules_at`, a share from 0 to
    1)."""

    source, mark = split_reference(str(reference))
    origin = Run(source)
    step = checkpoint.find(origin, mark)
    folder = Path(path) if path is not None else Path("runs") / default_name(config.game + "-fork")
    Run.refuse_existing(folder)
    config, sources = prepare(config, sources)

    def begin(trainer: Trainer) -> None:
        loaded = weights.load_all(trainer.algorithm, trainer.batch.layout, origin, step)
        weights.refuse_other_meaning(
            origin.settings().policy, config.policy, loaded, f"{source}@{step}"
        )

    with Dashboard(config, quiet) as dashboard:
        trainer = create(
            folder,
            config,
            sources,
            extra={"forked_from": f"{source}@{step}"},
            begin=begin,
            display=dashboard,
            schedules_at=schedules_at,
        )
        finish(trainer)
    return _after_doctor(trainer, quiet)


def load(reference: str | Path, role: str | None = None, *, trust: bool = False) -> Agent:
    """The trained agent of a run (RUN, RUN@STEP, RUN@best): policy and normaliser, ready to act.
    `trust`: as in `resume`.

    Of a run in an env of another library, it takes that env's observations and returns that env's
    actions (no env is made).
    """

    if trust:
        believe(split_reference(str(reference))[0])
    external = external_layout(str(reference))
    policies, layout = load_policies(str(reference), external)
    if role is None:
        role = next(iter(policies))
    if role not in policies:
        raise LudusError(f"{reference} has no role '{role}': {nearest(role, policies)}")
    if external is not None:
        return ExternalAgent(policies[role], layout, role, external.codec_of(role))
    return Agent(policies[role], layout, role)


def evaluate(
    reference: str | Path,
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
    still hear theirs):
    silenced/METRIC, and heard_minus_silenced/METRIC for what messages are worth.
    `env`: as in `resume`. `trust`: as in `resume`; opponents that are runs are trusted too.
    """

    set_threads(1)  # batches are small: threads cost more than they give
    folder, _ = split_reference(str(reference))
    run = Run(folder)
    wanted = (against,) if isinstance(against, str) else tuple(against)
    for named in (str(reference), *wanted) if trust else ():
        believe(split_reference(named)[0])
    config = replace(run.config(), device="cpu")
    if env is not None:
        hand_over(config.game, env)
    policies, layout = load_policies(str(reference))
    if episodes < 1:
        raise LudusError(f"{episodes} episodes measure nothing: use at least 1")
    if on is not None:
        config = replace(config, game=on, game_values={})
    chosen = (
        config.eval.seed + 1 if seed is None else seed
    )  # not the seed that chose the best checkpoint
    first = make_batch(config, 1, 0)
    if on is not None:
        check_same_layout(layout, first.layout.describe(), f"{folder} and {on}")
    quiet = silenced(policies, layout, config) if silence else {}
    rivals = Rivals(run).find(wanted, first.layout, first.controllers)
    single = len(rivals) == 1 and wanted == (rivals[0].name,)

    def measured(playing: Mapping[str, Any]) -> dict[str, np.ndarray]:
        values = measure_each(
            lambda n: make_batch(config, n, chosen, held_out=True),
            playing,
            rivals,
            episodes,
            chosen,
            greedy,
        )
        if single:
            return {name.removeprefix(f"{rivals[0].name}/"): v for name, v in values.items()}
        if not sides(first.layout):
            values |= better_than(
                first.game, values, [rival.name for rival in rivals if rival.name != "self"]
            )
        return values

    values = measured(policies)
    if not values:
        raise LudusError(f"{config.game} has nobody to play {' or '.join(wanted)} against")
    metrics = intervals(values, first.game.goal_metrics)
    if quiet:
        without = measured(quiet)
        metrics |= {
            f"silenced/{name}": value
            for name, value in intervals(without, first.game.goal_metrics).items()
        }
        metrics |= {
            f"heard_minus_silenced/{name}": difference(v, without[name])
            for name, v in values.items()
        }
    return {
        "run": str(folder),
        "step": layout["step"],
        "against": wanted[0] if len(wanted) == 1 else list(wanted),
        "episodes": episodes,
        "greedy": greedy,
        "metrics": metrics,
        **({} if single else {"opponents": {rival.name: list(rival.groups) for rival in rivals}}),
    }
