"""Recall and false alarms of the reward audit on the described rewards beside this file: python -m benchmarks.rewards [--markdown]"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from ludus.doctor.audit import audit
from ludus.doctor.finding import verdict
from ludus.doctor.rewards import parse_reward

HERE = Path(__file__).parent
SETS = {"first": "written while the rules were", "kept_aside": "written after the rules were frozen"}


def judge(path: Path) -> dict[str, Any]:
    """What a reward should get and what it gets."""
    text = path.read_text()
    data = tomllib.loads(text)
    found = audit(parse_reward(data))
    expected = data["expected"]
    named = [f.check for f in found if f.severity == "critical"]
    sick = expected["verdict"] == "critical"
    got = verdict(found)
    return {
        "name": path.stem,
        "source": text.splitlines()[0].removeprefix("# "),
        "expected": expected["verdict"],
        "mechanism": expected.get("check", ""),
        "got": got,
        "found": [f.check for f in found if f.severity != "info"],
        "right": got == expected["verdict"] and (not sick or expected["check"] in named),
    }


def results(folder: str) -> list[dict[str, Any]]:
    return [judge(path) for path in sorted((HERE / folder).glob("*.toml"))]


def summary(rows: list[dict[str, Any]]) -> dict[str, int]:
    sick = [r for r in rows if r["expected"] == "critical"]
    sound = [r for r in rows if r["expected"] == "ok"]
    return {
        "sick": len(sick),
        "critical": sum(r["got"] == "critical" for r in sick),
        "named": sum(r["right"] for r in sick),
        "sound": len(sound),
        "false_critical": sum(r["got"] == "critical" for r in sound),
        "false_warning": sum(r["got"] == "warning" for r in sound),
    }


def main() -> int:
    wrong = 0
    for folder, meaning in SETS.items():
        rows = results(folder)
        s = summary(rows)
        print(
            f"\n## {folder}: {meaning}\n\n"
            f"{s['critical']} of {s['sick']} sick rewards are critical, {s['named']} with the right mechanism. Of {s['sound']} sound "
            f"ones {s['false_critical']} are called critical and {s['false_warning']} get a warning.\n"
        )
        if "--markdown" in sys.argv:
            print("| reward | source | should be | is | mechanisms found |\n| --- | --- | --- | --- | --- |")
        for r in rows:
            wrong += not r["right"]
            if "--markdown" in sys.argv:
                should = f"{r['expected']} {r['mechanism']}".strip()
                print(f"| {r['name']} | {r['source']} | {should} | {r['got']} | {', '.join(r['found'])} |")
            elif not r["right"]:
                print(f"  {r['name']}: should be {r['expected']} {r['mechanism']}, is {r['got']} {r['found']}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
