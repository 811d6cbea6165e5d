"""What is counted beside a measured speed, by hand."""

import torch

from ludus.bench import limits
from ludus.training.clock import DeviceClock


def test_operations_and_bytes_of_a_matrix_product():
    a, b = torch.zeros(8, 4), torch.zeros(4, 2)
    work = limits.count(lambda: torch.mm(a, b))
    assert work.operations == 2 * 8 * 4 * 2
    assert work.traffic == 4 * (8 * 4 + 4 * 2 + 8 * 2)


def test_views_move_nothing_and_changes_in_place_do():
    a = torch.zeros(10)
    assert limits.count(lambda: a.view(2, 5).t()).traffic == 0
    assert limits.count(lambda: a.add_(1.0)).traffic == 4 * (10 + 10)  # read and written


def test_shares_of_the_limits():
    work = limits.Work(operations=1e6, traffic=2e6)
    found = limits.shares(work, 0.5, "cpu", torch.float32)
    assert found["matrix"]["share"] == 2e6 / found["matrix"]["operations_per_s"]
    assert found["bandwidth"]["share"] == 4e6 / found["bandwidth"]["bytes_per_s"]


def test_a_device_clock_takes_inner_phases_off_and_reads_once():
    now = iter([0.0, 1.0, 3.0, 10.0, 20.0, 21.0])
    clock = DeviceClock(lambda: next(now), lambda a, b: b - a)
    with clock("outer"), clock("inner"):
        pass
    assert clock.take() == {"inner": 2.0, "outer": 8.0}
    with clock("outer"):
        pass
    assert clock.take() == {"outer": 1.0} and clock.take() == {}
