"""Runs a program in plain Python, for debuggers and as the reference the compiled backends are
compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from ludus.sim.link import Linker
from ludus.sim.program import Program

FORWARD, REVERSED, SHUFFLED = 0, 1, 2


def lane_at(order, env, k, count):
    """The lane that runs as the k-th of `count`, in one of three orders."""
    if order == 1:
        return count - 1 - k
    if order == 2:
        return (k * 1000003 + env * 17 + 5) % count
    return k


def interpreter(
    program: Program, order: int = FORWARD
) -> Callable[[int, int, Mapping[str, Any]], None]:
    """A function (first env, last env, arrays and sizes by name) that runs one step."""
    linker = Linker(lambda f: f, lambda f: f, compiled=False)
    linked = {phase: linker.link(phase.function) for phase in program.phases}

    def run(first: int, last: int, values: Mapping[str, Any]) -> None:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            for env in range(first, last):
                run_env(env, values)

    def run_env(env: int, values: Mapping[str, Any]) -> None:
        for call in program.calls:
            if call.when != "always" and bool(values["resetting"][env]) != (call.when == "reset"):
                continue
            arguments = [values[name] for name in call.phase.fields]
            lanes = list(product(*(range(values[lane]) for lane in call.phase.lanes)))
            for k in range(len(lanes)):
                lane = lanes[lane_at(order, env, k, len(lanes))]
                if call.controller is not None and not (
                    values["controller"][env, lane[0]] == call.controller
                    and values["alive"][env, lane[0]]
                ):
                    continue
                linked[call.phase](env, *lane, *arguments)

    return run
