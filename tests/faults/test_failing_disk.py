"""A disk that is full or broken ends a training with one sentence, damages nothing, and the run
goes on later."""

from __future__ import annotations

import errno
import random
from collections import Counter

import pytest

from tests.faults.operations import Fault
from tests.faults.points import broken_disk_points, full_disk_points
from tests.faults.trial import KINDS


def check(shelf, kind: str, points: list[Fault]) -> Counter[str]:
    """A training meets each of these faults, then goes on without. Fails with everything that went
    wrong."""
    found: Counter[str] = Counter()
    wrong = []
    for fault in points:
        ended, path = shelf.disturbed(kind, fault)
        found[f"training {ended.how}"] += 1
        problem = ""
        if ended.how == "refused" and "\n" in ended.what:
            problem = f"not one sentence: {ended.what}"
        elif ended.how not in ("done", "refused"):
            problem = f"training {ended.how}: {ended.what[-1500:]}"
        problem = problem or shelf.check_resumed(kind, path, found)
        if problem:
            wrong.append(f"{fault} {shelf.trace(kind)[fault.at - 1][:2]}: {problem}")
    assert not wrong, f"{len(wrong)} of {len(points)}:\n" + "\n".join(wrong)
    return found


def all_points(shelf, kind: str) -> list[Fault]:
    """Full once, full from there on, and broken once, at every operation."""
    trace = shelf.trace(kind)
    full = [full_disk_points(trace, errno.ENOSPC, lasting) for lasting in (False, True)]
    return [*full[0], *full[1], *broken_disk_points(trace, errno.EIO, lasting=False)]


def test_a_sample_of_the_failing_points_of_a_league(shelf):
    check(shelf, "league", random.Random(0).sample(all_points(shelf, "league"), 4))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_failing_point(shelf, kind):
    """Of the league all of them, of the others every third: they write in the same places."""
    points = all_points(shelf, kind)[:: 1 if kind == "league" else 3]
    print(kind, len(points), dict(check(shelf, kind, points)))
