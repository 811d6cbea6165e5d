"""Noise, angles and rays against answers worked out by hand."""

import math

import numpy as np
import pytest

from ludus.sim import geometry, random

f = np.float32


@pytest.fixture(scope="module")
def noise():
    with np.errstate(over="ignore"):
        key = random.key(5, 0, 0, 0)
        return np.array(
            [
                [geometry.simplex2(key, f(i * 0.1), f(j * 0.17)) for i in range(60)]
                for j in range(60)
            ]
        )


def test_simplex_noise_fills_its_range_and_is_smooth(noise):
    assert -1.0 <= noise.min() < -0.6 and 0.6 < noise.max() <= 1.0
    assert abs(noise.mean()) < 0.1
    assert np.abs(np.diff(noise, axis=1)).max() < 0.9


def test_simplex_noise_is_zero_at_the_corners_and_differs_by_key():
    unskew = (3.0 - math.sqrt(3.0)) / 6.0
    with np.errstate(over="ignore"):
        a, b = random.key(1, 0, 0, 0), random.key(2, 0, 0, 0)
        for i, j in [(0, 0), (3, 1), (2, 7)]:
            x, y = f(i - (i + j) * unskew), f(j - (i + j) * unskew)
            assert geometry.simplex2(a, x, y) == pytest.approx(0.0, abs=1e-4)
        assert geometry.simplex2(a, f(0.3), f(0.4)) != geometry.simplex2(b, f(0.3), f(0.4))


def test_angles_wrap_by_arithmetic():
    for turns in range(-3, 4):
        assert geometry.wrap_angle(f(0.5 + turns * 2 * math.pi)) == pytest.approx(0.5, abs=1e-5)
    assert geometry.wrap_angle(f(1e7)) == pytest.approx(0.0, abs=2 * math.pi)


def test_clamp_never_lets_a_nan_through():
    assert geometry.clamp(f("nan"), -1.0, 1.0) == -1.0
    assert [geometry.clamp(x, -1.0, 1.0) for x in (-2.0, 0.5, 2.0)] == [-1.0, 0.5, 1.0]


@pytest.fixture
def columns():
    """A floor one block thick, a pillar at (5, 2) up to layer 3, floating blocks at (2, 6) and (6,
    4)."""
    blocks = np.full((1, 8, 8), 1, np.int32)
    blocks[0, 5, 2] = 0b1111
    blocks[0, 2, 6] |= 1 << 4
    blocks[0, 6, 4] |= 1 << 3
    return blocks


@pytest.mark.parametrize(
    ("origin", "direction", "expected"),
    [
        ((2.5, 2.5, 2.5), (1, 0, 0), (2.5, 5, 2, 2)),  # into the pillar's side
        ((2.5, 4.5, 2.5), (1, 0, 0), (9.0, -1, -1, -1)),  # over it, out of the world
        ((2.5, 2.5, 2.5), (0, -1, 0), (1.5, 2, 0, 2)),  # straight down to the floor
        ((2.5, 2.5, 6.5), (0, 1, 0), (1.5, 2, 4, 6)),  # straight up to the floating block
        ((2.5, 5.5, 6.5), (0, -1, 0), (0.5, 2, 4, 6)),  # down on it
        # slanting down inside the first column
        ((2.5, 1.5, 2.5), (0.6, -0.8, 0), (0.625, 2, 0, 2)),
        # down on a block two columns on: 3 below, 3 / 0.8 away
        ((4.5, 7.0, 4.5), (0.6, -0.8, 0), (3.75, 6, 3, 4)),
        # enters the next column in the block's layer: its side
        ((1.5, 3.5, 6.5), (0.6, 0.8, 0), (0.5 / 0.6, 2, 4, 6)),
    ],
)
def test_rays_by_hand(columns, origin, direction, expected):
    d = [f(x) for x in direction]
    t, *cell = geometry.cast_columns(columns, 0, 8, 5, *(f(x) for x in origin), *d, f(9.0))
    assert t == pytest.approx(expected[0], abs=1e-5)
    assert tuple(cell) == expected[1:]


def test_boxes_by_hand():
    box = [f(x) for x in (2, 0, -1, 3, 1, 1)]
    zero, half = f(0), f(0.5)
    assert geometry.box_distance(zero, half, zero, f(1), zero, zero, *box) == 2.0
    assert geometry.box_distance(zero, f(1.5), zero, f(1), zero, zero, *box) == geometry.FAR
    assert geometry.box_distance(zero, half, zero, f(-1), zero, zero, *box) == geometry.FAR
    assert geometry.box_distance(f(2.5), half, zero, f(1), zero, zero, *box) == 0.0
