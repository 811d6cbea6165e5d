"""What a described reward should get and what it gets."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ludus.doctor.audit import audit
from ludus.doctor.finding import verdict
from ludus.doctor.rewards import parse_reward


def judge(path: Path) -> dict[str, Any]:
    text = path.read_text()
    return judge_data(path.stem, text.splitlines()[0].removeprefix("# "), tomllib.loads(text))


def judge_data(name: str, source: str, data: dict[str, Any]) -> dict[str, Any]:
    """What a reward should get and what it gets."""
    found = audit(parse_reward(data))
    expected = data["expected"]
    named = [f.check for f in found if f.severity == "critical"]
    sick = expected["verdict"] == "critical"
    # the sums can be told in two ways
    accepted = {expected.get("check"), *expected.get("also_right", ())}
    got = verdict(found)
    return {
        "name": name,
        "source": source,
        "expected": expected["verdict"],
        "mechanism": expected.get("check", ""),
        "got": got,
        "found": [f.check for f in found if f.severity != "info"],
        "right": got == expected["verdict"] and (not sick or not accepted.isdisjoint(named)),
    }


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
