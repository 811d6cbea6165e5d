"""ludus doctor selftest"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass

from ludus.commands.parsing import parse
from ludus.doctor.finding import as_json, as_text
from ludus.machine import require


@dataclass(kw_only=True)
class SelfTest:
    """Is the learning code itself sound, as installed here? Known answers of PPO and Rainbow, part
    by part, in about a minute.

    Where this is ok and a run still does not learn, look at the game, its reward and the settings.
    Status 1 if a part is wrong.
    """

    device: str = "cpu"
    """cpu or cuda: where formulas and updates are tried (probe envs always run on the CPU)."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(SelfTest, arguments, "doctor selftest", "ludus doctor selftest")
    from ludus.examine.selftest.core import Result, all_checks, run

    require(options.device)
    begin = time.perf_counter()
    show = sys.stderr.isatty() and not options.json

    def told(result: Result) -> None:
        print(
            f"{'ok   ' if result.ok else 'WRONG'} {result.part}: {result.name.replace('_', ' ')}",
            file=sys.stderr,
        )

    results = run(all_checks(), options.device, told if show else None)
    findings = [r.finding for r in results if r.finding is not None]
    if options.json:
        checks = [
            {"check": r.name, "part": r.part, "ok": r.ok, "seconds": round(r.seconds, 3)}
            for r in results
        ]
        print(
            json.dumps(
                {**as_json(findings), "seconds": time.perf_counter() - begin, "checks": checks}
            )
        )
    else:
        print(as_text(findings))
        print(
            f"\n{len(results) - len(findings)} of {len(results)} checks passed in "
            f"{time.perf_counter() - begin:.0f} s"
        )
    return 1 if findings else 0
