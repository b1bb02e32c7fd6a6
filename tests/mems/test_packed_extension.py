"""The common length of packed sequences, against loops over their bases."""

import numba
import numpy as np

from bwarp.mems.packed_extension import equal_after, equal_before, segment_of
from bwarp.sequence import pack


@numba.njit
def _after(a, i, b, j, limit):
    return equal_after(a, i, b, j, limit)


@numba.njit
def _before(a, i, b, j, limit):
    return equal_before(a, i, b, j, limit)


def test_agreement():
    rng = np.random.default_rng(1)
    base = rng.integers(0, 4, 400).astype(np.uint8)
    for _ in range(3000):
        a, b = base.copy(), np.concatenate([rng.integers(0, 4, rng.integers(0, 70)), base])
        shift = len(b) - len(a)
        b[rng.integers(0, len(b), rng.integers(0, 4))] = rng.integers(0, 4)
        i = int(rng.integers(0, 401))
        j = min(max(i + shift - int(rng.integers(0, 2)), 0), len(b))
        most_after, most_before = min(400 - i, len(b) - j), min(i, j)
        after, before = (int(rng.integers(0, most + 1)) for most in (most_after, most_before))
        n = 0
        while n < after and a[i + n] == b[j + n]:
            n += 1
        numbers = [np.uint64(i), np.uint64(j)]
        words = pack(a), pack(b.astype(np.uint8))
        assert _after(words[0], numbers[0], words[1], numbers[1], np.uint64(after)) == n
        n = 0
        while n < before and a[i - n - 1] == b[j - n - 1]:
            n += 1
        assert _before(words[0], numbers[0], words[1], numbers[1], np.uint64(before)) == n


def test_segment():
    starts = np.array([0, 3, 4, 10, 12])
    for position in range(12):
        expected = np.searchsorted(starts, position, side="right") - 1
        assert segment_of.py_func(starts, np.uint64(position)) == expected
