"""What train, resume and fork say when a run has ended."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from ludus.config import Config
from ludus.config.schedules import parse
from ludus.doctor.finding import TOO_LITTLE, as_json, verdict_in_words
from ludus.files import understood
from ludus.runs.measured import in_words, lower_is_better, measurements, newest
from ludus.runs.run import BY_CALLBACK, ON_REQUEST
from ludus.training.dashboard import duration
from ludus.training.watching import read_findings

MOST_FINDINGS = 3


def report(run: Any, as_json: bool, full: bool) -> int:
    """Prints it; the exit status: 3 where someone or a callback asked it to stop, 1 where the
    doctor did."""
    with understood(run.path):
        result = summary(run)
        told = json.dumps(result) if as_json else text(run, result, full)
    stopped = result["reason"].startswith((ON_REQUEST, BY_CALLBACK))
    # the terminal may have gone away
    with contextlib.suppress(OSError) if stopped else contextlib.nullcontext():
        print(told, flush=True)
    return (
        3
        if stopped
        else int(result["verdict"] == "critical" and run.settings().doctor.on_critical != "warn")
    )


def summary(run: Any) -> dict[str, Any]:
    """What a run came to: how it ended, its headline, its last measurements, its best checkpoint,
    the doctor's findings."""
    lines = run.metrics()
    last = lines[-1] if lines else {}
    best = run.path / "best.json"
    state, reason = run.state()
    return {
        "run": str(run.path),
        "state": state,
        "reason": reason,
        "agent_steps": last.get("progress/agent_steps", 0),
        "seconds": last.get("progress/seconds", 0.0),
        "agent_steps_per_s": last.get("speed/agent_steps_per_s", 0.0),
        "headline": newest(lines, run.settings().checkpoint.best_metric),
        "evaluation": {k: v for line in lines for k, v in line.items() if k.startswith("eval/")},
        "best": run.read_json("best.json") if best.exists() else None,
        **as_json(r.finding for r in read_findings(run) if r.gone is None),
    }


def text(run: Any, result: Mapping[str, Any], full: bool) -> str:
    config, seconds = run.settings(), result["seconds"]
    rate = f" ({result['agent_steps'] / seconds:,.0f} per second)" if seconds else ""
    lines = [
        f"{result['state']}: {result['agent_steps']:,} agent-steps in {duration(seconds)}{rate}"
    ]
    if result["reason"]:
        lines[0] += f", {result['reason']}"
    lines += _headline(run, result, config)
    lines += _verdict(result, full)
    if full:
        lines += _table(result["evaluation"])
    rows = {
        "report": f"{result['run']}/report.html",
        "look": f"ludus view {result['run']}",
        **_next(result, config),
    }
    if not full:
        rows["all"] = "--full prints everything that was measured"
    lines += [f"{what:<8} {how}" for what, how in rows.items()]
    return "\n".join(lines)


def _headline(run: Any, result: Mapping[str, Any], config: Config) -> list[str]:
    name, now, best = config.checkpoint.best_metric, result["headline"], result["best"]
    if name is None:
        return []
    if now is None:
        return [f"{in_words(name)}: not evaluated yet"]
    interval = "" if now["low"] is None else f" [{now['low']:.3f}, {now['high']:.3f}]"
    lower = (
        ", lower is better" if lower_is_better(name, run.read_json("game.json")["layout"]) else ""
    )
    lines = [
        f"{in_words(name)}: {now['value']:.3f}{interval}, {config.eval.episodes} episodes{lower}"
    ]
    if best:
        lines.append(
            f"best checkpoint: {best['value']:.3f} at step {best['step']:,}   {result['run']}@best"
        )
    return lines


def _verdict(result: Mapping[str, Any], full: bool) -> list[str]:
    """The doctor's word at the end: what is wrong, why, and what to do; the worst findings
    first."""
    found = [f for f in result["findings"] if f["severity"] != "info"]
    shown = found if full else found[:MOST_FINDINGS]
    few = [
        f": {f['evidence']}"
        for f in result["findings"]
        if f["check"] == TOO_LITTLE == result["verdict"]
    ]
    lines = [f"doctor: {verdict_in_words(result['verdict'])}{''.join(few)}"]
    for finding in shown:
        lines.append(f"  {finding['severity']}: {finding['cause']} ({finding['check']})")
        lines += [f"    {finding['evidence']}"] if full else []
        lines.append(f"    fix: {finding['fix']}")
    if len(found) > len(shown):
        lines.append(f"  and {len(found) - len(shown)} more: ludus doctor run {result['run']}")
    return lines


def _table(evaluation: Mapping[str, float]) -> list[str]:
    """Every measurement with its interval, the newest of each."""
    lines = ["measured"]
    for name in measurements(evaluation, [evaluation]):
        low, high = evaluation.get(f"{name}_low"), evaluation.get(f"{name}_high")
        interval = "" if low is None or high is None else f"   [{low:.3f}, {high:.3f}]"
        lines.append(f"  {name.removeprefix('eval/'):<36} {evaluation[name]:>8.3f}{interval}")
    return lines


def _next(result: Mapping[str, Any], config: Config) -> dict[str, str]:
    """How to measure it again, and how to go on."""
    mark = "@best" if result["best"] else ""
    against = (config.checkpoint.best_metric or "eval/self/").split("/")[1]
    go_on = f"ludus resume {result['run']}"
    if result["state"] == "finished":
        (key, rate), *_ = config.learning_rates([]).items()
        steps, seconds = config.train.total_agent_steps, config.train.total_seconds
        # with more budget it would stay at 0: a fork starts its schedules again
        if parse(rate)(1.0) == 0:
            go_on = f'ludus fork {result["run"]}{mark} --{key.replace("_", "-")} "3e-4 -> 0"'
        else:
            go_on += (
                f" --train.total-agent-steps {2 * steps}"
                if steps
                else f" --train.total-seconds {2 * (seconds or 0):.0f}"
            )
    return {"measure": f"ludus eval {result['run']}{mark} --against {against}", "go on": go_on}
