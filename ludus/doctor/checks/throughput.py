"""Does training keep its pace and its memory?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ludus.doctor.checks import check
from ludus.doctor.finding import Finding
from ludus.doctor.log import SECONDS, STEPS, Curve, Log
from ludus.doctor.names import LEARNERS
from ludus.doctor.statistics import medians, tail

FEWEST_ROWS = 20
SLOWER = 0.6
SLOWER_UNSPLIT = 0.4
MUCH_SLOWER = 0.25
"""Share of the early speed. Other work on the machine costs up to a third and comes and goes; a
leak only comes."""
LESS_WORK = 0.5
"""Share of what a second of processor time did early. Programs that take turns push each other out
of the caches: ten of them on one core cost a third of it."""
WAITING = ("save", "log", "wait_env")
"""Phases that wait for something else than the processor."""
STILL_GROWING = 0.2
"""Share of all growth in seconds per step that falls into the second half, more or less: it would
be a third or more for a leak, and nothing after a single step."""
LIKE_THE_LAST = 0.5
"""Share of the updates per row late in the run; with fewer a row is of another kind."""
ENV_STEPS = "progress/env_steps"
WINDOW = 20
"""Rows over which our logs measure a speed."""
SHORTEST = 2.0
"""Seconds between two rows that tell a speed: clocks count whole seconds, and averages are
rounded."""
NO_AVERAGE = 0.1
"""Share of rows between which time would run backwards if the speed were an average since the
start."""
RESETS = 0.3
"""Share of all time. Starting a game is usually worth a few of its steps."""
GROWTH = 1.5
STEADY = 0.8
"""Share of windows in which memory grows: allocation at the start grows once, a leak always."""


@dataclass(frozen=True)
class Decline:
    """A speed that falls and keeps falling."""

    early: float
    late: float
    falling: float
    """Share of windows that are slower than the one before."""

    @property
    def left(self) -> float:
        return self.late / self.early

    @property
    def severity(self) -> str:
        return "critical" if self.left < MUCH_SLOWER and self.falling >= 0.75 else "warning"


@check(family="throughput", figure=("speed/agent_steps_per_s", "speed/average"), by_clock=True)
def slowing_down(log: Log) -> Iterator[Finding]:
    """Steps of envs per second fall and keep falling (not those of agents: where agents die there
    are fewer of them, and nothing is slower). What counts is how many a second of processor time
    makes, where the log says so: it does not depend on what else runs on the machine. Where only
    the clock's steps per second fall, or all phases slow down alike, it is other work on the
    machine, and only noted.

    Something grows with time: a list that is appended to and searched, figures or meshes that are
    never freed, replay or a pool that is scanned as a whole, memory that starts to swap.

    See which phase's share of the time grows, and what it keeps between iterations.
    """
    speed, work = _wall(log), _per_processor_second(log)
    wall, own = decline(speed), decline(work)
    phase = grown_phase(log)
    source = speed or work
    if source is None:
        return
    if own is not None and own.left <= (SLOWER if phase else LESS_WORK):
        yield _slower(source, own, phase, "steps a second of processor time")
    elif wall is None:
        return
    elif work is not None:
        if phase in WAITING:
            yield _slower(source, wall, phase, "steps a second")
        else:
            done = medians(work.values[len(work) // 10 :])
            yield _crowded(
                source,
                wall,
                f"; a second of processor time still does {done[-1] / done[0]:.0%} of what it did "
                "early",
            )
    elif phase or (wall.left <= SLOWER_UNSPLIT and not log.starting("speed/share/")):
        yield _slower(source, wall, phase, "steps a second")
    elif log.starting("speed/share/"):
        yield _crowded(source, wall, "; all phases alike")


def _slower(curve: Curve, found: Decline, phase: str, unit: str) -> Finding:
    return Finding(
        check="slowing_down",
        severity=found.severity,
        cause="training gets slower and slower"
        + (f": '{phase}' takes a growing share of the time" if phase else ""),
        evidence=_told(found, unit),
        confidence=0.7,
        fix=f"look at what '{phase}' keeps between iterations"
        if phase
        else "profile an early and a late iteration, and compare",
        first_step=curve.first_step,
        last_step=curve.last_step,
    )


def _crowded(curve: Curve, found: Decline, why: str) -> Finding:
    return Finding(
        check="slowing_down",
        severity="info",
        cause="training gets slower and slower",
        evidence=f"{_told(found, 'steps a second')}{why}: other work on the machine",
        confidence=0.3,
        fix="see what else runs on the machine",
        first_step=curve.first_step,
        last_step=curve.last_step,
    )


def _told(found: Decline, unit: str) -> str:
    return (
        f"{found.early:,.0f} {unit} early, {found.late:,.0f} now ({found.left:.0%}), falling in "
        f"{found.falling:.0%} of the windows"
    )


def decline(curve: Curve | None) -> Decline | None:
    """None where a speed holds, or fell once and settled: a step down, as when learning starts
    after a warm-up, is no decline."""
    if curve is None or len(curve) < FEWEST_ROWS:
        return None
    middle = medians(curve.values[len(curve) // 10 :])  # the start compiles and warms up
    early, late = float(middle[: len(middle) // 3].max()), float(middle[-1])
    falling = float((np.diff(middle) < 0).mean())
    if early <= 0 or late <= 0 or late / early > SLOWER or falling < 0.6:
        return None
    between = float(np.median(middle[len(middle) // 3 : -1]))
    # in seconds per step, to which a leak adds evenly
    grown, lately = 1 / late - 1 / early, 1 / late - 1 / max(between, 1e-9)
    return Decline(early, late, falling) if lately > STILL_GROWING * grown else None


def _wall(log: Log) -> Curve | None:
    """Steps per second of the clock."""
    named = _env_steps_per_second(log) or log.get("speed/agent_steps_per_s")
    if named is not None:
        return _same_kind(log, named)
    found = _from_clock(log) or _since_the_start(log)
    return _once_it_learns(log, found) if found is not None else None


def _env_steps_per_second(log: Log) -> Curve | None:
    """Over as many rows as our logs take for their agent-steps per second. None where steps of envs
    are not counted."""
    steps, clock = log.get(ENV_STEPS), log.get(SECONDS)
    if (
        steps is None
        or clock is None
        or len(steps) != len(clock)
        or log.get("speed/agent_steps_per_s") is None
    ):
        return None
    before = np.maximum(np.arange(len(steps)) - WINDOW, 0)
    made, took = steps.values - steps.values[before], clock.values - clock.values[before]
    return Curve(ENV_STEPS, steps.steps, np.where(took > 0, made / np.maximum(took, 1e-9), 0.0))


def _once_it_learns(log: Log, curve: Curve) -> Curve:
    """Without the steps before the first update: playing alone is faster than playing and
    learning."""
    learner = [
        c.first_step
        for key in LEARNERS
        for role in log.roles()
        if (c := log.of(role, key)) is not None
    ]
    late = curve.steps > min(learner, default=0)
    return Curve(curve.name, curve.steps[late], curve.values[late])


def _since_the_start(log: Log) -> Curve | None:
    """Where the log has an average since the start, which hides a fall and draws out a step: the
    speed between its rows."""
    average = log.get("speed/average")
    if average is None or len(average) < FEWEST_ROWS:
        return average
    rows = slice(None, None, max(1, len(average) // 40))
    steps, until = average.steps[rows], average.steps[rows] / np.maximum(average.values[rows], 1e-9)
    took = np.diff(until)
    if (took <= 0).mean() > NO_AVERAGE:
        return average  # time would run backwards: it is the speed of the moment
    usable = took > SHORTEST
    if usable.sum() < FEWEST_ROWS:
        return None
    return Curve(average.name, steps[1:][usable], np.diff(steps)[usable] / took[usable])


def _per_processor_second(log: Log) -> Curve | None:
    """Steps per second of processor time; None where nobody says how much of it there was. Older
    runs have only rates over a window of iterations, without what worker processes used; of remote
    envs nothing is known. Where a GPU computes, the processor spends its time waiting for it."""
    used, steps = log.get("speed/cpu_seconds"), log.get(ENV_STEPS) or log.get(STEPS)
    if log.get("memory/client_mb") or log.get("memory/gpu_allocated_mb"):
        return None
    if used is not None and steps is not None and len(used) == len(steps):
        made = np.diff(steps.values, prepend=0.0)
        return _same_kind(log, Curve("work", used.steps, made / np.maximum(used.values, 1e-6)))
    rate, speed = (
        log.get("speed/cpu_per_s"),
        _env_steps_per_second(log) or log.get("speed/agent_steps_per_s"),
    )
    if rate is None or speed is None or len(rate) != len(speed) or log.get("memory/workers_mb"):
        return None
    return _same_kind(log, Curve("work", speed.steps, speed.values / np.maximum(rate.values, 1e-3)))


def _same_kind(log: Log, curve: Curve) -> Curve:
    """Only rows that learn as much as those at the end do: filling a replay without learning from
    it is faster, and so are updates that end early because the policy has moved far enough. And
    only the stage of a curriculum it is in: opponents of an earlier one may have cost less."""
    updates = log.get("progress/updates")
    if updates is None or len(updates) != len(curve):
        return log.in_this_stage(curve)
    made = np.diff(updates.values, prepend=0.0)
    alike = made >= LIKE_THE_LAST * float(np.median(tail(made, 0.3)))
    return log.in_this_stage(Curve(curve.name, curve.steps[alike], curve.values[alike]))


def _from_clock(log: Log) -> Curve | None:
    """Windowed speed from steps and seconds. A library's own figure is often an average since the
    start, which hides a fall."""
    clock = log.get(SECONDS)
    if clock is None or len(clock) < 40:
        return None
    stride = max(1, len(clock) // 40)
    steps, seconds = clock.steps[::stride], clock.values[::stride]
    took = np.diff(seconds)
    usable = took > SHORTEST
    if usable.sum() < FEWEST_ROWS:
        return None
    return Curve("speed", steps[1:][usable], np.diff(steps)[usable] / took[usable])


def grown_phase(log: Log) -> str:
    """The phase whose share of the time has grown by a tenth of it. Evaluations and checkpoints
    come now and then and would drown the rest: shares are those among phases that come in every
    iteration, and theirs among the rows they come in."""
    curves = {c.name.removeprefix("speed/share/"): c for c in log.starting("speed/share/")}
    rows = max((len(c) for c in curves.values()), default=0)
    always = {name: c for name, c in curves.items() if len(c) == rows >= 12}
    total = np.maximum(sum((c.values for c in always.values()), np.zeros(rows)), 1e-9)
    shares = {name: c.values / total for name, c in always.items()}
    shares |= {name: c.values for name, c in curves.items() if name not in always and len(c) >= 12}
    grown = {
        name: float(medians(values)[-1] - medians(values)[0]) for name, values in shares.items()
    }
    phase = max(grown, key=grown.__getitem__, default="")
    return phase if phase and grown[phase] > 0.1 else ""


@check(family="throughput", figure="speed/share/reset", by_clock=True)
def resets_dominate(log: Log) -> Iterator[Finding]:
    """Much of the time goes into resets: worlds are built more than they are played in.

    Every reset makes again what is always the same (terrain, meshes, a physics model, a
    connection), or episodes end almost as soon as they begin.

    Build once and keep it; in a reset change only what differs between episodes.
    """
    resets, steps = log.get("speed/share/reset"), log.get(STEPS)
    if resets is None or steps is None or len(steps) < FEWEST_ROWS:
        return
    since = steps.steps[len(steps) // 2]
    # rows without a reset count as 0
    share = float(resets.values[resets.steps >= since].sum() / (steps.steps >= since).sum())
    if share < RESETS:
        return
    lengths = [
        float(np.median(tail(c.values)))
        for c in log.starting("episode/")
        if c.name.endswith("/length")
    ]
    yield Finding(
        check="resets_dominate",
        severity="warning",
        cause=f"resets of the env take {share:.0%} of the time",
        evidence=f"speed/share/reset is {share:.2f} over the last half"
        + (f"; an episode has {min(lengths):.3g} steps" if lengths else ""),
        confidence=0.8,
        fix="build once what is the same in every episode, and reset only what differs",
        first_step=resets.first_step,
        last_step=resets.last_step,
    )


@check(family="throughput", figure=("memory/resident_mb", "memory/ram_percent"))
def memory_grows(log: Log) -> Iterator[Finding]:
    """Resident or GPU memory grows in almost every window and is half as large again as at the
    start.

    Something is kept that should be let go: tensors with their graph in a list of losses, histories
    without a limit, figures, environments that are made anew and not closed.

    Store numbers, not tensors; bound every history; close what is made. The finding says when
    memory will run out.
    """
    names = (
        "memory/resident_mb",
        "memory/workers_mb",
        "memory/client_mb",
        "memory/gpu_allocated_mb",
        "memory/ram_percent",
    )
    for name in names:
        curve = log.get(name)
        if curve is None or len(curve) < FEWEST_ROWS:
            continue
        rest = curve.values[len(curve) // 10 :]
        middle = medians(rest)
        rising = float((np.diff(middle) > 0.002 * middle[:-1]).mean())
        if middle[0] <= 0 or middle[-1] / middle[0] < GROWTH or rising < STEADY:
            continue
        per_step = float(middle[-1] - middle[0]) / max(
            1.0, float(curve.steps[-1] - curve.steps[len(curve) // 10])
        )
        doubled = curve.last_step + middle[-1] / per_step
        yield Finding(
            check="memory_grows",
            severity="critical" if middle[-1] / middle[0] > 2 * GROWTH else "warning",
            cause=f"{name.split('/')[1]} grows with every iteration: something is never let go",
            evidence=f"{middle[0]:,.0f} early, {middle[-1]:,.0f} now, growing in {rising:.0%} of "
            f"the windows; twice that at step {doubled:,.0f}",
            confidence=0.75,
            fix="keep numbers instead of tensors, bound histories, close envs and figures",
            first_step=curve.first_step,
            last_step=curve.last_step,
        )
