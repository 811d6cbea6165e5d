"""A training that is killed at any moment goes on as if nothing had happened."""

from __future__ import annotations

import random
import time
from collections import Counter
from functools import partial

import pytest

from tests.faults.operations import Fault
from tests.faults.points import crash_points
from tests.faults.trial import KINDS, config, differences, in_child, resume, train


def check(shelf, kind: str, points: list[Fault]) -> Counter[str]:
    """Kills a training at each of these points and resumes it. Fails with everything that went
    wrong."""
    found: Counter[str] = Counter()
    wrong = []
    for fault in points:
        ended, path = shelf.disturbed(kind, fault)
        assert ended.how == "killed", (fault, ended)
        problem = shelf.check_resumed(kind, path, found)
        if problem:
            wrong.append(f"{fault} {shelf.trace(kind)[fault.at - 1][:2]}: {problem}")
    assert not wrong, f"{len(wrong)} of {len(points)}:\n" + "\n".join(wrong[:50])
    return found


def test_a_sample_of_the_crash_points_of_a_league(shelf):
    points = crash_points(shelf.trace("league"))
    found = check(shelf, "league", random.Random(0).sample(points, 5))
    assert found["resumed"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_crash_point(shelf, kind):
    points = crash_points(shelf.trace(kind))
    print(kind, len(points), dict(check(shelf, kind, points)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_random_times(shelf, kind, tmp_path):
    """With SIGKILL from outside, again and again until the run has ended; TensorBoard writes in a
    thread of its own."""
    rng, whole = random.Random(kind), shelf.whole(kind)
    began = time.monotonic()
    ended = in_child(lambda: train(config(kind, tensorboard=True), tmp_path / "undisturbed"))
    longest = time.monotonic() - began
    assert ended.how == "done", ended
    kills = number = 0
    while kills < 30:
        number += 1
        path = tmp_path / str(number)
        while ended.how == "killed" or not path.exists():
            goes_on = path.exists()
            step = (
                partial(resume, path)
                if goes_on
                else partial(train, config(kind, tensorboard=True), path)
            )
            ended = in_child(step, kill_after=rng.uniform(0, longest))
            assert ended.how in ("done", "killed"), ended
            kills += ended.how == "killed"
        assert not differences(path, whole, ended.what == "resumed")
    print(kind, kills, "kills in", number, "runs")
