"""ludus eval"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import tyro

from ludus.commands.parsing import ReadsRuns, parse
from ludus.errors import LudusError

SILENCED = "silenced/"


@dataclass(kw_only=True)
class Eval(ReadsRuns):
    """Plays a trained run on held-out seeds and prints its goal metrics with 95% intervals."""

    run: Annotated[str, tyro.conf.Positional]
    """RUN, RUN@STEP or RUN@best."""
    against: tuple[str, ...] = ("self",)
    """self, bot:NAME, bots (all of them), snapshot:STEP, snapshots (some, evenly over the run's
    pool), or another RUN, RUN@STEP, RUN@best. Several may be given."""
    on: str | None = None
    """Another game, preset or gym:ID with the same layout to play on (default: the run's own)."""
    episodes: int | None = None
    """Number of episodes (default: 256; with --analyse 64 against each bot)."""
    seed: int | None = None
    """Seed of the envs (default: neither that of training nor that which chose the best
    checkpoint)."""
    analyse: bool = False
    """What a strategy encoder tells about its opponents (all bots, or those in --against), and
    whether the policy uses it:
    accuracy of a linear probe, wins with shuffled vectors, attention over the history, a picture.
    Written into the run."""
    silence: bool = False
    """Play everything once more, in the same worlds, with policies that hear no messages, and print
    the difference. An opponent hears its own: --against RUN, the run itself, is those who hear
    against those who do not."""
    greedy: bool = False
    """The most likely action instead of sampled ones."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(
        Eval,
        arguments,
        "eval",
        "ludus eval runs/pursuit-1@best --against bot:flee snapshots runs/pursuit-2 --episodes 500 "
        "--json",
    )
    if options.analyse:
        options.believe(options.run)
        return analyse(options)
    from ludus.api import evaluate

    episodes = 256 if options.episodes is None else options.episodes
    result = evaluate(
        options.run,
        options.against,
        episodes,
        on=options.on,
        seed=options.seed,
        greedy=options.greedy,
        silence=options.silence,
        trust=options.trust,
    )
    if options.json:
        # one episode knows no interval, and JSON no infinity
        for value in result["metrics"].values():
            value.update({k: None for k in ("low", "high") if not math.isfinite(value[k])})
        print(json.dumps(result))
    else:
        how = "greedy" if options.greedy else "sampled"
        each = " each" if "opponents" in result else ""
        print(
            f"{result['run']}@{result['step']} against {' '.join(options.against)}, "
            f"{result['episodes']} episodes{each}, {how} actions"
        )
        print(
            "\n".join(compared(result["metrics"]) if options.silence else table(result["metrics"]))
        )
    return 0


def table(metrics: Mapping[str, Mapping[str, float]]) -> list[str]:
    width = max(28, *(len(name) for name in metrics))
    return [
        f"  {name:<{width}} {value['mean']:>9.3f}   {_interval(value)}"
        for name, value in metrics.items()
    ]


def compared(metrics: Mapping[str, Mapping[str, float]]) -> list[str]:
    """With messages, without, and the difference with its interval."""
    names = [name.removeprefix(SILENCED) for name in metrics if name.startswith(SILENCED)]
    width = max(28, *map(len, names))
    lines = [f"  {'':<{width}} {'heard':>9} {'silenced':>9} {'difference':>11}"]
    for name in names:
        heard, silenced, worth = (
            metrics[name],
            metrics[SILENCED + name],
            metrics[f"heard_minus_silenced/{name}"],
        )
        lines.append(
            f"  {name:<{width}} {heard['mean']:>9.3f} {silenced['mean']:>9.3f} "
            f"{worth['mean']:>+11.3f}   {_interval(worth)}"
        )
    return lines


def _interval(value: Mapping[str, float]) -> str:
    return f"[{value['low']:.3f}, {value['high']:.3f}]"


def analyse(options: Eval) -> int:
    from ludus.examine.strategy_report import analyse_run, lines

    for name, given in (
        ("--on", options.on is not None),
        ("--greedy", options.greedy),
        ("--silence", options.silence),
    ):
        if given:
            raise LudusError(
                f"--analyse plays the run's own game with sampled actions as it is: leave {name} "
                "out"
            )
    report = analyse_run(
        options.run,
        options.against,
        64 if options.episodes is None else options.episodes,
        options.seed,
    )
    print(json.dumps(report) if options.json else "\n".join(lines(report)))
    return 0
