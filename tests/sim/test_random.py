"""Counter-based randomness: known numbers on every backend, and statistics."""

import math

import numpy as np
import pytest
from numba import njit

from ludus.sim import random
from ludus.sim.link import Linker

# The reference: Python integers with explicit 64-bit masks.
M = (1 << 64) - 1


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M
    return x ^ (x >> 31)


def reference(seed, env, episode, step, stream, lane):
    k = mix((seed + 0x9E3779B97F4A7C15) & M)
    for word in (env, episode, step):
        k = mix(((k ^ word) + 0x9E3779B97F4A7C15) & M)
    return mix((k + stream * 0xD1B54A32D192ED03 + lane * 0x8CB92BA72F3D8DD7) & M)


CASES = [(0, 0, 0, 0, 0, 0), (1, 2, 3, 4, 5, 6), (2**40, 65535, 1000, 239, 9003, 4095)]


def test_splitmix_finaliser_has_its_published_values():
    # splitmix64 seeded with 0 gives these first three outputs (the reference implementation's)
    state, out = 0, []
    for _ in range(3):
        state = (state + 0x9E3779B97F4A7C15) & M
        with np.errstate(over="ignore"):
            out.append(int(random.mix(np.uint64(state))))
    assert out == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def draw(seed, env, episode, step, stream, lane):
    return random.bits(random.key(seed, env, episode, step), stream, lane)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("compiled", [True, False])
def test_bits_match_big_integers(case, compiled):
    linker = (
        Linker(njit, njit, compiled=True)
        if compiled
        else Linker(lambda f: f, lambda f: f, compiled=False)
    )
    with np.errstate(over="ignore"):
        assert int(linker.link(draw)(*case)) == reference(*case)


def test_uniform_and_normal_have_the_right_moments():
    with np.errstate(over="ignore"):
        key = random.key(3, 1, 4, 1)
        u = np.array([random.uniform(key, 1, i) for i in range(20_000)])
        n = np.array([random.normal(key, 2, i) for i in range(20_000)])
        k = np.array([random.integer(key, 3, i, 7) for i in range(14_000)])
    assert u.min() >= 0 and u.max() < 1
    assert abs(u.mean() - 0.5) < 0.01 and abs(u.std() - 12**-0.5) < 0.01
    assert abs(n.mean()) < 0.03 and abs(n.std() - 1) < 0.03
    assert (
        np.array_equal(np.unique(k), np.arange(7)) and np.abs(np.bincount(k) / 2000 - 1).max() < 0.1
    )


def test_neighbouring_keys_streams_and_lanes_are_uncorrelated():
    with np.errstate(over="ignore"):

        def column(f):
            return np.array([f(i) for i in range(5000)])

        base = column(lambda i: random.uniform(random.key(0, 0, 0, i), 1, 0))
        others = [
            column(lambda i: random.uniform(random.key(0, 1, 0, i), 1, 0)),
            column(lambda i: random.uniform(random.key(0, 0, 1, i), 1, 0)),
            column(lambda i: random.uniform(random.key(1, 0, 0, i), 1, 0)),
            column(lambda i: random.uniform(random.key(0, 0, 0, i), 2, 0)),
            column(lambda i: random.uniform(random.key(0, 0, 0, i), 1, 1)),
        ]
    for other in others:
        assert abs(np.corrcoef(base, other)[0, 1]) < 0.06


def floor(x):
    """A helper that has the name of something it uses."""
    return math.floor(x + 0.5)


def test_a_helper_may_be_named_like_an_attribute_it_uses():
    assert Linker(njit, njit, compiled=True).link(floor)(np.float32(1.7)) == 2
