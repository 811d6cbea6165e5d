"""ludus doctor bisect"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from ludus.commands.doctor_compare import game_differences
from ludus.commands.parsing import ReadsRuns, parse
from ludus.config import unflatten
from ludus.doctor.bisect import Answer, Bisect, Cause, Trial, Verdict
from ludus.doctor.compare import BOOKKEEPING, Comparison, Difference, compare, seeds_of
from ludus.doctor.finding import Finding, as_json
from ludus.doctor.log import read_log
from ludus.doctor.trials import Trials
from ludus.errors import LudusError
from ludus.files import read_json
from ludus.runs.run import Run

# What all trials share with the good run: where and how long they run, what they write.
SHARED = (*BOOKKEEPING, "train.", "device")


@dataclass(kw_only=True)
class BisectRuns(ReadsRuns):
    """Which difference between two runs makes one of them fail? Runs the good one with subsets of
    the differences.

    Results are kept, one file per trial: interrupted, it goes on where it was. Status 1 if the
    failure does not show.
    """

    good: Annotated[str, tyro.conf.Positional]
    """The run that works."""
    bad: Annotated[str, tyro.conf.Positional]
    """The run that does not."""
    seeds: int = 3
    """Seeds that every subset is tried with, at most."""
    jobs: int = 1
    """Trials that run at the same time, one thread each."""
    metric: str | None = None
    """What tells good from bad, such as eval/self/return (default: the curve in which the two runs
    differ most surely)."""
    agent_steps: int | None = None
    """Budget of a trial (default: that of the good run). Long enough for the failure to show."""
    run: str | None = None
    """Folder of the trials (default: runs/bisect-GOOD-BAD)."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(
        BisectRuns,
        arguments,
        "doctor bisect",
        "ludus doctor bisect runs/works runs/fails --seeds 3 --jobs 2",
    )
    from ludus.examine.launch import Launcher

    for name in ("seeds", "jobs"):
        if getattr(options, name) < 1:
            raise LudusError(f"--{name} {getattr(options, name)} cannot work: use 1 or more")
    good, bad = (seeds_of(path)[0] for path in (options.good, options.bad))
    options.believe(str(good), str(bad))
    comparison = compare(good, bad, game_differences(str(good), str(bad)))
    if comparison.different_games:
        raise LudusError(
            f"{good} and {bad} are runs of different games: bisect repeats one game with other "
            "settings"
        )
    differences = bisectable(comparison)
    metric = options.metric or _metric(comparison)
    settings = _settings(good, options.agent_steps), _settings(bad, options.agent_steps)
    for run in (good, bad):
        Run(run).config()  # refuses somebody's code: both are trained again
    unflatten(settings[0])  # a run of an older version may have settings that are gone
    root = Path(options.run) if options.run else Path("runs") / f"bisect-{good.name}-{bad.name}"
    _remember(root, {"good": settings[0], "bad": settings[1]})

    def told(trial: Trial, folder: Path) -> None:
        with_ = ", ".join(sorted(trial.subset)) or "nothing: as good"
        print(f"  seed {trial.seed} with {with_}", file=sys.stderr)

    quiet = options.json or not sys.stderr.isatty()
    launcher = Launcher(*settings, options.jobs, (lambda t, f: None) if quiet else told)
    trials = Trials(root, metric, launcher)
    answer = Bisect(
        [d.key for d in differences], range(options.seeds), trials, options.jobs
    ).search()
    print(
        json.dumps(report(answer, comparison, metric))
        if options.json
        else text(answer, comparison, metric, root)
    )
    return 0 if answer.causes else 1


def bisectable(comparison: Comparison) -> list[Difference]:
    """Settings that someone chose, likeliest culprit first. What is derived follows from them;
    versions cannot be set."""
    chosen = [
        d
        for _, d in comparison.suspects
        if d.kind == "setting"
        and d.origin != ("derived", "derived")
        and not d.key.startswith(SHARED)
    ]
    if not chosen:
        others = ", ".join(d.key for _, d in comparison.suspects) or "nothing"
        raise LudusError(
            f"the runs differ in no setting that can be tried by itself, only in {others}: see "
            "`ludus doctor compare`"
        )
    return chosen


def _metric(comparison: Comparison) -> str:
    if not comparison.partings:
        raise LudusError(
            f"the curves of {comparison.a} and {comparison.b} do not part beyond their noise: give "
            "the one that matters as --metric"
        )
    return comparison.partings[0].curve


def _settings(run: Path, agent_steps: int | None) -> dict[str, Any]:
    """Of a run, with derived values left to be derived anew, one thread, and a budget in
    agent-steps."""
    data = read_json(run / "config.json")
    values = {
        n: None if data["origins"].get(n) == "derived" else v for n, v in data["values"].items()
    }
    budget = agent_steps or values["train.total_agent_steps"] or read_log(run).steps
    shared = {
        "train.threads": 1,
        "train.total_agent_steps": int(budget),
        "train.total_seconds": None,
    }
    quiet = {
        "log.tensorboard": False,
        "log.wandb": None,
        "log.replay_every": 0,
        "log.diagnostics_every": 0,
    }
    seconds = {"eval.every_seconds": None, "eval.every_agent_steps": None, "eval.greedy": False}
    # a trial ends when its budget is spent, however bad it is
    plain = {"checkpoint.best_metric": None, "doctor.on_critical": "warn"}
    # nor stopped by what belongs to the run alone
    return {**values, **shared, **quiet, **seconds, **plain, "callbacks": []}


def _remember(root: Path, settings: dict[str, Any]) -> None:
    """Results of other settings must not be taken for those of these."""
    path, now = root / "settings.json", json.dumps(settings, sort_keys=True)
    if path.exists() and path.read_text() != now:
        raise LudusError(
            f"{root} holds trials of other runs or another budget: choose another --run, or remove "
            "it"
        )
    root.mkdir(parents=True, exist_ok=True)
    path.write_text(now)


# -- words -----------------------------------------------------------------------------------------


def _named(key: str, comparison: Comparison) -> str:
    d = next(d for d in comparison.settings if d.key == key)
    return f"{key} {'unset' if d.b is None else d.b} (good: {'unset' if d.a is None else d.a})"


def _cause(cause: Cause, answer: Answer, comparison: Comparison) -> str:
    names = [_named(key, comparison) for key in cause.keys]
    if len(names) == 1:
        return f"{names[0]} alone makes it fail, in {cause.verdict}"
    alone = "; ".join(
        f"{key} alone does{'' if v.fails else ' not'} ({v})" for key, v in cause.alone.items()
    )
    return f"{' together with '.join(names)} make it fail, in {cause.verdict}; {alone}"


def findings(answer: Answer, comparison: Comparison, metric: str) -> list[Finding]:
    good, bad = (sum(v) / len(v) for v in (answer.good, answer.bad))
    back = {d.key: d.a for d in comparison.settings}
    return [
        Finding(
            check="bisect",
            severity="critical",
            cause=_cause(cause, answer, comparison),
            evidence=f"{metric}: {good:.4g} good, {bad:.4g} bad, over {len(answer.good)} seeds; "
            f"{len(answer.tried)} subsets tried",
            confidence=round(cause.certainty, 3),
            fix=" ".join(f"--{key.replace('_', '-')} {back[key]}" for key in cause.keys),
        )
        for cause in answer.causes
    ]


def report(answer: Answer, comparison: Comparison, metric: str) -> dict[str, Any]:
    def told(v: Verdict) -> dict[str, Any]:
        return {
            "fails": v.fails,
            "failed": v.failed,
            "seeds": v.seeds,
            "certainty": round(v.certainty, 4),
            "possible": v.possible,
        }

    return {
        **as_json(findings(answer, comparison, metric)),
        "metric": metric,
        "differences": list(answer.differences),
        "causes": [
            {"keys": list(c.keys), "certainty": round(c.certainty, 4), **told(c.verdict)}
            for c in answer.causes
        ],
        "tried": [{"keys": sorted(s), **told(v)} for s, v in answer.tried.items()],
        "cost": {
            "runs": answer.runs,
            "agent_steps": answer.agent_steps,
            "seconds": round(answer.seconds, 1),
        },
    }


def text(answer: Answer, comparison: Comparison, metric: str, root: Path) -> str:
    lines = [
        f"Of {len(answer.differences)} differences ({', '.join(answer.differences)}), by {metric}:"
    ]
    lines += [
        f"  {_cause(c, answer, comparison)} (certainty {c.certainty:.0%})" for c in answer.causes
    ]
    if not answer.causes:
        lines.append("  none makes it fail: all together they do not either")
    lines += [
        f"  {key} alone does not ({verdict})"
        for key, verdict in answer.harmless.items()
        if _innocent(key, answer)
    ]
    lines.append(
        f"Cost: {answer.runs} runs, {answer.agent_steps:,} agent-steps, {answer.seconds:.0f} s of "
        f"training; kept in {root}"
    )
    return "\n".join(lines)


def _innocent(key: str, answer: Answer) -> bool:
    return all(key not in cause.keys for cause in answer.causes)
