"""Backward searches that take their steps in turn: how one begins, and one step of it.

A search is an interval of SA rows and where in the reads it has come to. Before its first step it
is an entry of the prefix table instead, which is asked for, and read when its turn comes: it is
known from an interval by its end before its start.
"""

import numba
import numpy as np

from bwarp.index.rank_cpu import block_start, extend_left
from bwarp.runtime.simd import prefetch

__all__ = ["TOGETHER", "begin_search", "prefetch_rows", "step_left"]

#: Searches that take turns, so that their cache misses overlap.
TOGETHER = 64


@numba.njit(nogil=True, inline="always")
def begin_search(table, table_k, both, at, room, all_rows):
    """The search of up to `room` bases before `at`: by the table if there are bases enough for it,
    none of them ambiguous."""
    if room >= table_k > 0:
        kmer, worst = np.uint64(0), np.uint8(0)
        for i in range(at - table_k, at):
            worst = max(worst, both[i])
            kmer = kmer << np.uint64(2) | np.uint64(both[i] & 3)
        if worst < 4:
            prefetch(table, np.int64(kmer << np.uint64(1)))
            return kmer + np.uint64(1), np.uint64(0)
    return np.uint64(0), np.uint64(all_rows)


@numba.njit(nogil=True, inline="always")
def step_left(words, separator_rows, groups, row_starts, table, table_k, both, at, low, high):
    """Where a search comes to by its next step, and its interval there; none over an ambiguous
    base."""
    if low > high:
        entry = low - np.uint64(1) << np.uint64(1)
        low = np.uint64(table[entry])
        return at - table_k, low, low + np.uint64(table[entry + np.uint64(1)])
    code = both[at - 1]
    if code > 3:
        return at - 1, low, low
    low, high = extend_left(words, separator_rows, groups, row_starts, np.uint64(code), low, high)
    return at - 1, low, high


@numba.njit(nogil=True, inline="always")
def prefetch_rows(words, groups, low, high):
    """Ask for what the next step of a search reads."""
    prefetch(words, np.int64(block_start(groups, low)))
    prefetch(words, np.int64(block_start(groups, high)))
