"""python -m benchmarks.clinic run [CASE …] [--seeds N] | table

`run` trains both twins of every case, or tries what the case tries, and writes one result file per
case, twin and seed: it skips what is there, so that it can be interrupted. `table` prints which
failures were named and which healthy twins were not left alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.clinic.cases import CASES, NOT_RUN, Case
from ludus.doctor.log import read_log
from ludus.doctor.watch import examine

RESULTS = Path(__file__).parent / "results"
TWINS = ("sick", "healthy")
FEW = (
    "--train.threads",
    "1",
    "--eval.greedy",
    "False",
    "--eval.episodes",
    "32",
    "--log.replay-every",
    "0",
)
"""For both twins, unless a case says otherwise: one thread, and evaluations that take little of a
short run."""


def ludus(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One thread on one core: the clinic is a guest on the machine, and envs that are spread over
    processes do not share what makes them sick."""
    core = max(os.sched_getaffinity(0))
    return subprocess.run(
        [sys.executable, "-m", "ludus", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )


def findings(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.strip()[-400:])
    return [f for f in json.loads(done.stdout)["findings"] if f["severity"] != "info"]


# -- ways to examine; each returns what was found as {"check", "severity", "evidence"} -------------


def by_run(options: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        seeds = () if "--seed" in options else ("--seed", str(seed))
        done = ludus(
            "train",
            *options[:1],
            *FEW,
            *options[1:],
            *seeds,
            "--run",
            f"{folder}/run",
            "--quiet",
            "--json",
        )
        if done.returncode and not Path(folder, "run", "metrics.jsonl").exists():
            raise RuntimeError(done.stderr.strip()[-400:])
        found = [dataclasses.asdict(f) for f in examine(read_log(f"{folder}/run"))]
        return [f for f in found if f["severity"] != "info"]


def by_check(options: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    return findings(ludus("doctor", "check", *options, "--json"))


def by_start(options: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    """Refused before the first step?"""
    with tempfile.TemporaryDirectory() as folder:
        done = ludus(
            "train", *options, "--train.threads", "1", "--run", f"{folder}/run", "--quiet", "--json"
        )
    if done.returncode == 0:
        return []
    said = done.stderr.strip().splitlines()[-1]
    return [
        {
            "check": "no update" if "no update" in said else "refused",
            "severity": "critical",
            "evidence": said,
        }
    ]


def by_compare(options: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    told = json.loads(ludus("games", "diff", *options, "--json").stdout)["differences"]
    return [{"check": "difference", "severity": "warning", "evidence": d["text"]} for d in told]


def by_selftest(options: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    """The selftest with a fault planted; without options on the code as it is."""
    import pytest

    from ludus.examine.selftest import core
    from tests.examine.faults import NAMED, wrap

    with pytest.MonkeyPatch.context() as patch:
        for name in options:
            wrap(patch, *NAMED[name])
        results = core.run(core.all_checks(core.FAMILIES[:-1]))
    found = [(r.part, r.finding) for r in results if r.finding is not None]
    return [{"check": part, "severity": f.severity, "evidence": f.evidence} for part, f in found]


WAYS = {
    "run": by_run,
    "check": by_check,
    "start": by_start,
    "compare": by_compare,
    "selftest": by_selftest,
}


def run_one(name: str, case: Case, twin: str, seed: int) -> None:
    path = RESULTS / name / f"{twin}-{seed}.json"
    options = case.sick if twin == "sick" else case.healthy
    if path.exists() and json.loads(path.read_text())["options"] == list(options):
        return
    print(f"{time.strftime('%H:%M:%S')} {name} {twin} seed {seed}", flush=True)
    begin = time.perf_counter()
    found = known(case.by, options, seed)
    if found is None:
        found = WAYS[case.by](options, seed)
    result = {
        "case": name,
        "twin": twin,
        "seed": seed,
        "by": case.by,
        "options": list(options),
        "findings": found,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(
        json.dumps({**result, "seconds": round(time.perf_counter() - begin, 1)}, indent=1) + "\n"
    )
    partial.replace(path)


def known(by: str, options: tuple[str, ...], seed: int) -> list[dict[str, Any]] | None:
    """What another case found in the very same run: healthy twins are often the same."""
    for path in RESULTS.glob(f"*/*-{seed}.json"):
        result = json.loads(path.read_text())
        if result["by"] == by and result["options"] == list(options) and by in ("run", "selftest"):
            return list(result["findings"])
    return None


# -- the table -------------------------------------------------------------------------------------


def results(name: str, twin: str) -> list[dict[str, Any]]:
    wanted = list(CASES[name].sick if twin == "sick" else CASES[name].healthy)
    read = [json.loads(p.read_text()) for p in sorted((RESULTS / name).glob(f"{twin}-*.json"))]
    return [r for r in read if r["options"] == wanted]


def named(name: str, result: dict[str, Any]) -> bool:
    return any(f["check"] in CASES[name].expected for f in result["findings"])


def table() -> str:
    lines = [
        "| case | from | what is wrong | examined by | named in | first finding | alarms on the "
        "healthy twin |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    families: dict[str, list[int]] = {}
    counted: set[tuple[Any, ...]] = set()  # a healthy run that several cases share counts once
    for name, case in CASES.items():
        sick, healthy = results(name, "sick"), results(name, "healthy")
        hits, alarms = (
            sum(named(name, r) for r in sick),
            [f["check"] for r in healthy for f in r["findings"]],
        )
        tally = families.setdefault(case.family, [0, 0, 0, 0])
        new = [r for r in healthy if (case.by, case.healthy, r["seed"]) not in counted]
        counted |= {(case.by, case.healthy, r["seed"]) for r in healthy}
        for i, n in enumerate((hits, len(sick), sum(bool(r["findings"]) for r in new), len(new))):
            tally[i] += n
        first = next((_said(name, r) for r in sick if r["findings"]), "none") if sick else "not run"
        told = (
            f"{', '.join(sorted(set(alarms)))} ({sum(bool(r['findings']) for r in healthy)} of "
            f"{len(healthy)})"
            if alarms
            else f"none of {len(healthy)}"
        )
        lines.append(
            f"| {name} | {case.seed} | {case.tells} | {case.by} | {hits} of {len(sick)} | {first} "
            f"| {told} |"
        )
    lines += [
        "",
        "| family | failures named | recall | healthy twins alarmed |",
        "| --- | --- | --- | --- |",
    ]
    for family, (hits, sick, alarmed, healthy) in [
        *families.items(),
        ("all", [sum(x) for x in zip(*families.values(), strict=True)]),
    ]:
        lines.append(
            f"| {family} | {hits} of {sick} | {hits / sick if sick else float('nan'):.0%} | "
            f"{alarmed} of {healthy} |"
        )
    lines += [
        "",
        "Failures without a pair:",
        "",
        *(f"- {what}: {why}" for what, why in NOT_RUN.items()),
    ]
    return "\n".join(lines)


def _said(name: str, result: dict[str, Any]) -> str:
    """The finding that names the failure, or else the first one."""
    found = sorted(result["findings"], key=lambda f: f["check"] not in CASES[name].expected)[0]
    return f"`{found['check']}` {found['evidence'][:110].replace('|', '/')}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.clinic",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("names", nargs="*", help="cases (default: all)")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    unknown = [n for n in options.names if n not in CASES]
    if unknown:
        raise SystemExit(f"unknown case {unknown[0]}: there is {', '.join(CASES)}")
    if options.what == "table":
        print(table())
        return
    for seed in range(options.seeds):
        for name in options.names or CASES:
            case = CASES[name]
            for twin in TWINS:
                if seed and (case.by != "run"):
                    continue  # nothing random in it
                try:
                    run_one(name, case, twin, seed)
                except (RuntimeError, ValueError) as error:
                    print(f"{name} {twin} seed {seed} failed: {error}", flush=True)


if __name__ == "__main__":
    main()
