"""The clinic's table counts what its result files say."""

import json

import pytest

from benchmarks.clinic import __main__ as clinic
from benchmarks.clinic.cases import CASES, Case

PAIR = {
    "one": Case(
        seed="000", family="x", tells="t", sick=("a",), healthy=("b",), expected=("wanted",)
    ),
    "two": Case(
        seed="001", family="x", tells="u", sick=("c",), healthy=("d",), expected=("wanted", "other")
    ),
}


def put(root, case, twin, seed, options, *checks):
    path = root / case / f"{twin}-{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = [{"check": c, "severity": "warning", "evidence": "because"} for c in checks]
    path.write_text(
        json.dumps(
            {
                "case": case,
                "twin": twin,
                "seed": seed,
                "by": "run",
                "options": [options],
                "findings": found,
            }
        )
    )


def test_recall_and_false_alarms(tmp_path, monkeypatch):
    """Three sick results of which two are named; three healthy ones of which one has an alarm. One
    result is out of date."""
    monkeypatch.setattr(clinic, "RESULTS", tmp_path)
    monkeypatch.setattr(clinic, "CASES", PAIR)
    put(tmp_path, "one", "sick", 0, "a", "unrelated", "wanted")
    put(tmp_path, "one", "sick", 1, "a", "unrelated")
    put(tmp_path, "two", "sick", 0, "c", "other")
    put(tmp_path, "two", "sick", 1, "old options", "other")
    put(tmp_path, "one", "healthy", 0, "b")
    put(tmp_path, "one", "healthy", 1, "b", "alarm", "second")
    put(tmp_path, "two", "healthy", 0, "d")
    lines = clinic.table().splitlines()
    assert "| all | 2 of 3 | 67% | 1 of 3 |" in lines
    one = next(line for line in lines if line.startswith("| one |"))
    assert "| 1 of 2 | `wanted` because | alarm, second (1 of 2) |" in one


def test_results_that_are_there_are_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(clinic, "RESULTS", tmp_path)
    made = []
    monkeypatch.setitem(clinic.WAYS, "run", lambda options, seed: made.append(options) or [])
    for _ in range(2):
        clinic.run_one("one", PAIR["one"], "sick", 0)
    assert (
        made == [("a",)]
        and json.loads((tmp_path / "one" / "sick-0.json").read_text())["findings"] == []
    )


@pytest.mark.parametrize("name", CASES)
def test_every_case_can_be_examined(name):
    case = CASES[name]
    assert case.by in clinic.WAYS and case.expected and case.tells
    assert case.healthy or case.by == "selftest"
