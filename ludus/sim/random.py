"""Counter-based randomness: a number is a function of what it is for, never of what was drawn
before.

`key` hashes (seed, env, episode, step) once per step, and the engine hands it to the rules as
`key[env]`. A draw adds a `stream` (what the number is for) and a `lane` (which agent, tree, ray it
is for). There is no state to race on, so the same numbers come out whatever the thread count, the
batch split or the device.
"""

from __future__ import annotations

import math

from numpy import float32, int64, uint64

_GOLDEN = uint64(0x9E3779B97F4A7C15)
_STREAM = uint64(0xD1B54A32D192ED03)
_LANE = uint64(0x8CB92BA72F3D8DD7)
_MIX_1 = uint64(0xBF58476D1CE4E5B9)
_MIX_2 = uint64(0x94D049BB133111EB)
_S27 = uint64(27)
_S30 = uint64(30)
_S31 = uint64(31)
_S32 = uint64(32)
_S40 = uint64(40)
_LOW_24 = uint64(0xFFFFFF)
_UNIT_24 = float32(1.0 / (1 << 24))


def mix(x):
    """The finaliser of splitmix64: every input bit reaches every output bit."""
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


def key(seed, env, episode, step):
    """The key of one step of one env."""
    k = mix(uint64(seed) + _GOLDEN)
    k = mix((k ^ uint64(env)) + _GOLDEN)
    k = mix((k ^ uint64(episode)) + _GOLDEN)
    return mix((k ^ uint64(step)) + _GOLDEN)


def bits(key, stream, lane):
    """64 random bits."""
    return mix(key + uint64(stream) * _STREAM + uint64(lane) * _LANE)


def uniform(key, stream, lane):
    """float32 in [0, 1)."""
    return float32(bits(key, stream, lane) >> _S40) * _UNIT_24


def between(key, stream, lane, low, high):
    """float32 in [low, high)."""
    return low + (high - low) * uniform(key, stream, lane)


def integer(key, stream, lane, count):
    """Integer in [0, count)."""
    return int64(((bits(key, stream, lane) >> _S32) * uint64(count)) >> _S32)


def normal(key, stream, lane):
    """float32 from the standard normal distribution (Box-Muller on the two halves of one draw)."""
    b = bits(key, stream, lane)
    u = (float32(b >> _S40) + float32(1.0)) * _UNIT_24
    v = float32(b & _LOW_24) * _UNIT_24
    return math.sqrt(float32(-2.0) * math.log(u)) * math.cos(float32(2.0 * math.pi) * v)
