"""The order of a sorted BAM: by contig and position, forward before reverse, then as they came.

That is the order of samtools sort. A key is a place in the contigs end to end, with the strand in
its lowest bit; what has no place comes last.
"""

import numba
import numpy as np

__all__ = ["NO_PLACE", "sort_keys", "sorted_order"]

NO_PLACE = np.uint64(1 << 62)

_DIGIT_BITS = 11


def sort_keys(positions: np.ndarray, reverse: np.ndarray) -> np.ndarray:
    """Keys of records at genome positions (-1: none), dtype=uint64."""
    keys = positions.astype(np.uint64) << np.uint64(1) | reverse
    return np.where(positions < 0, NO_PLACE, keys)


def sorted_order(keys: np.ndarray) -> np.ndarray:
    """The numbers of the records in order; equal keys keep the order they have.

    Returns
    -------
    order : ndarray, shape=(n,), dtype=uint32
    """
    placed = keys < NO_PLACE
    largest = int(keys.max(where=placed, initial=0)) + 1
    # What has no place sorts like one place more.
    digits = -(-largest.bit_length() // _DIGIT_BITS)
    return _radix_order(np.minimum(keys, np.uint64(largest)), digits)


@numba.njit(cache=True, nogil=True)
def _radix_order(keys, digits):
    """Least digit first: every pass is stable and reads keys in the order of the last one."""
    n = keys.size
    order = np.arange(n).astype(np.uint32)
    other = np.empty(n, np.uint32)
    waiting = np.empty(n, np.uint64)
    mask = np.uint64((1 << _DIGIT_BITS) - 1)
    for digit in range(digits):
        shift = np.uint64(_DIGIT_BITS * digit)
        places = np.zeros((1 << _DIGIT_BITS) + 1, np.int64)
        for i in range(n):
            places[np.int64(keys[i] >> shift & mask) + 1] += 1
        for i in range(1 << _DIGIT_BITS):
            places[i + 1] += places[i]
        for i in range(n):
            bucket = np.int64(keys[i] >> shift & mask)
            waiting[places[bucket]] = keys[i]
            other[places[bucket]] = order[i]
            places[bucket] += 1
        keys, waiting = waiting, keys
        order, other = other, order
    return order
