"""Does training keep its pace and its memory?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ludus.doctor.finding import Finding
from ludus.doctor.log import SECONDS, Curve, Log
from ludus.doctor.statistics import medians

SLOWER = 0.6
SLOWER_UNSPLIT = 0.4
MUCH_SLOWER = 0.25
"""Share of the early speed. Other work on the machine costs up to a third and comes and goes; a leak only comes."""
LESS_TIME = 0.7
"""Of the CPU time it got early."""
WAITING = ("save", "log", "wait_env")
"""Phases that wait for something else than the processor."""
STILL_FALLING = 0.8
GROWTH = 1.5
STEADY = 0.8
"""Share of windows in which memory grows: allocation at the start grows once, a leak always."""


def slowing_down(log: Log) -> Iterator[Finding]:
    """Steps per second, over a window, fall and keep falling. Where the process gets less CPU time and does nearly as much
    with it as before, or where all phases slow down alike, it is other work on the machine, and only noted.

    Something grows with time: a list that is appended to and searched, figures or meshes that are never freed, replay or a
    pool that is scanned as a whole, memory that starts to swap.

    See which phase's share of the time grows, and what it keeps between iterations.
    """
    speed = log.get("speed/agent_steps_per_s") or _from_clock(log) or log.get("speed/average")
    if speed is None or len(speed) < 20:
        return
    middle = medians(speed.values[len(speed) // 10 :])  # the start compiles and warms up
    early, late = float(middle[: len(middle) // 3].max()), float(middle[-1])
    falling = float((np.diff(middle) < 0).mean())
    settled = late > STILL_FALLING * float(np.median(middle[len(middle) // 3 : -1]))
    if early <= 0 or late / early > SLOWER or falling < 0.6 or settled:
        return  # one step down, as when learning starts after a warm-up, is no decline
    phase, starved = _grown_phase(log), _starved(log, speed)
    if starved and phase not in WAITING:
        phase = ""
    alike = bool(log.starting("speed/share/")) and log.get("speed/cpu_per_s") is None
    machine = not phase and (bool(starved) or alike)
    if not phase and not machine and late / early > SLOWER_UNSPLIT:
        return
    yield Finding(
        check="slowing_down",
        severity="info" if machine else "critical" if late / early < MUCH_SLOWER and falling >= 0.75 else "warning",
        cause="training gets slower and slower" + (f": '{phase}' takes a growing share of the time" if phase else ""),
        evidence=f"{early:,.0f} steps a second early, {late:,.0f} now ({late / early:.0%}), falling in {falling:.0%} of the windows"
        + (starved or "; all phases alike, so it may be other work on the machine" if machine else ""),
        confidence=0.3 if machine else 0.7,
        fix=f"look at what '{phase}' keeps between iterations"
        if phase
        else "see what else runs on the machine"
        if machine
        else "profile an early and a late iteration, and compare",
        first_step=speed.first_step,
        last_step=speed.last_step,
    )


def _starved(log: Log, speed: Curve) -> str:
    """Says so where the process gets clearly less CPU time than before, and what it does with each second of it has not fallen
    as far as a leak makes it. (It falls somewhat: programs that take turns push each other out of the caches.) What worker
    processes do is not in that time, so with them it says nothing."""
    cpu = log.get("speed/cpu_per_s")
    if cpu is None or len(cpu) != len(speed) or log.get("memory/workers_mb") or log.get("memory/client_mb"):
        return ""
    start = len(cpu) // 10
    given, done = medians(cpu.values[start:]), medians((speed.values / np.maximum(cpu.values, 1e-3))[start:])
    third = max(1, len(done) // 3)
    early, before = float(given[:third].max()), float(done[:third].max())
    if given[-1] > LESS_TIME * early or done[-1] < MUCH_SLOWER * before:
        return ""
    return (
        f"; the process gets {given[-1]:.2f} s of CPU time a second, {early:.2f} early, and does {done[-1] / before:.0%} as much with "
        f"each as before: other work on the machine"
    )


def _from_clock(log: Log) -> Curve | None:
    """Windowed speed from steps and seconds. A library's own figure is often an average since the start, which hides a fall."""
    clock = log.get(SECONDS)
    if clock is None or len(clock) < 40:
        return None
    stride = max(1, len(clock) // 40)
    steps, seconds = clock.steps[::stride], clock.values[::stride]
    took = np.diff(seconds)
    usable = took > 2.0  # clocks of whole seconds
    if usable.sum() < 20:
        return None
    return Curve("speed", steps[1:][usable], np.diff(steps)[usable] / took[usable])


def _grown_phase(log: Log) -> str:
    """The phase whose share of the time has grown by a tenth of it. Evaluations and checkpoints come now and then and would
    drown the rest: shares are those among phases that come in every iteration, and theirs among the rows they come in."""
    curves = {c.name.removeprefix("speed/share/"): c for c in log.starting("speed/share/")}
    rows = max((len(c) for c in curves.values()), default=0)
    always = {name: c for name, c in curves.items() if len(c) == rows >= 12}
    total = np.maximum(sum((c.values for c in always.values()), np.zeros(rows)), 1e-9)
    shares = {name: c.values / total for name, c in always.items()}
    shares |= {name: c.values for name, c in curves.items() if name not in always and len(c) >= 12}
    grown = {name: float(medians(values)[-1] - medians(values)[0]) for name, values in shares.items()}
    phase = max(grown, key=grown.__getitem__, default="")
    return phase if phase and grown[phase] > 0.1 else ""


def memory_grows(log: Log) -> Iterator[Finding]:
    """Resident or GPU memory grows in almost every window and is half as large again as at the start.

    Something is kept that should be let go: tensors with their graph in a list of losses, histories without a limit, figures,
    environments that are made anew and not closed.

    Store numbers, not tensors; bound every history; close what is made. The finding says when memory will run out.
    """
    names = ("memory/resident_mb", "memory/workers_mb", "memory/client_mb", "memory/gpu_allocated_mb", "memory/ram_percent")
    for name in names:
        curve = log.get(name)
        if curve is None or len(curve) < 20:
            continue
        rest = curve.values[len(curve) // 10 :]
        middle = medians(rest)
        rising = float((np.diff(middle) > 0.002 * middle[:-1]).mean())
        if middle[0] <= 0 or middle[-1] / middle[0] < GROWTH or rising < STEADY:
            continue
        per_step = float(middle[-1] - middle[0]) / max(1.0, float(curve.steps[-1] - curve.steps[len(curve) // 10]))
        doubled = curve.last_step + middle[-1] / per_step
        yield Finding(
            check="memory_grows",
            severity="critical" if middle[-1] / middle[0] > 2 * GROWTH else "warning",
            cause=f"{name.split('/')[1]} grows with every iteration: something is never let go",
            evidence=f"{middle[0]:,.0f} early, {middle[-1]:,.0f} now, growing in {rising:.0%} of the windows; twice that at step {doubled:,.0f}",
            confidence=0.75,
            fix="keep numbers instead of tensors, bound histories, close envs and figures",
            first_step=curve.first_step,
            last_step=curve.last_step,
        )


CHECKS = (slowing_down, memory_grows)
