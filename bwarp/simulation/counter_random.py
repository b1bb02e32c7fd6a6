"""Stateless random numbers: functions of a key and a counter.

The n-th draw of a stream is `bits_at(key, n)`, the n-th output of SplitMix64 started at `key`.
Draws can be computed in any order and in any thread, so that results depend only on the seed. Only
integer operations and exact float products are used, so results are the same on every machine.
"""

import numpy as np

from bwarp.errors import UsageError
from bwarp.runtime.compiled_code import inner

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def _bits(key, counter):
    z = key + (counter + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


#: bits_at(key, counter): 64 random bits; both arguments uint64, callable from Numba functions.
bits_at = inner(_bits)


def draws(key: np.uint64, count: int) -> np.ndarray:
    """Return the first `count` draws of a stream, dtype uint64."""
    return _bits(np.full(1, key, np.uint64), np.arange(count, dtype=np.uint64))


def unit_draws(key: np.uint64, count: int) -> np.ndarray:
    """Return the first `count` draws of a stream as float64 from 0 (included) to 1 (excluded)."""
    return (draws(key, count) >> np.uint64(11)) * 2.0**-53


def index_draws(key: np.uint64, count: int, bound: int) -> np.ndarray:
    """Return the first `count` draws of a stream as int64 from 0 up to, but excluding, `bound`."""
    return (unit_draws(key, count) * bound).astype(np.int64)


def stream_key(seed: int | np.uint64, *path: int) -> np.uint64:
    """Return the key of a stream from a seed and numbers that identify its purpose."""
    key = np.full(1, int(seed) % 2**64, np.uint64)
    for step in path:
        key = _bits(key, np.full(1, step, np.uint64))
    return key[0]


def threshold(rate: float | np.ndarray) -> np.ndarray:
    """Return the uint64 that 32 random bits are below with probability `rate` (0 to 1)."""
    return np.uint64(np.round(np.asarray(rate, np.float64) * 2.0**32))


def check_share(what: str, value: float) -> None:
    """Raise an error if a rate or share is not from 0 to 1."""
    if not 0 <= value <= 1:
        raise UsageError(f"{what} {value} is not from 0 to 1")
