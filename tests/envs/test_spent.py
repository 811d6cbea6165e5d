"""What envs of other libraries say about the time they take."""

import time

import pytest

from ludus.external.foreign import ForeignBatch
from tests.envs.odd import TENTH, Counter

RESET, STEP = 0.02, 0.01  # seconds


class Slow(Counter):
    """Resets sleep; steps keep the processor busy."""

    def reset(self, **options):
        time.sleep(RESET)
        return super().reset(**options)

    def step(self, action):
        until = time.process_time() + STEP
        while time.process_time() < until:
            pass
        return super().step(action)


def make():
    return Slow()


@pytest.mark.parametrize("workers", [0, 1])
def test_time_of_resets_and_of_workers(workers):
    """Two envs, ten steps and a reset each: 0.04 s of resets; 0.2 s of CPU time, which only a
    worker has to tell of."""
    batch = ForeignBatch(f"env:{__name__}:make", 2, workers=workers)
    batch.read_spent()
    for _ in range(TENTH + 1):
        batch.step()
    resets, waited, used = batch.read_spent()
    assert 2 * RESET <= resets < 2 * RESET + 0.1
    assert (2 * TENTH * STEP <= used < 2 * TENTH * STEP + 0.1) if workers else used == 0.0
    assert waited == 0.0 and batch.read_spent() == (0.0, 0.0, 0.0)
    batch.host.close()
