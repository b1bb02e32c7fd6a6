"""Sort keys of records: contig and position, then forward before reverse, then input order.

This is the order of samtools sort. A key is the position in the concatenated contigs, with the
strand in its lowest bit; records without a position come last.
"""

import numpy as np

from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline

NO_POSITION = np.uint64(1 << 62)

_DIGIT_BITS = 11

#: Minimum number of keys per thread that is worth splitting, and keys sampled to split them.
_LEAST_A_PART = 1 << 14
_SAMPLED = 64


def sort_keys(positions: np.ndarray, reverse: np.ndarray) -> np.ndarray:
    """Return the keys of records at genome positions (-1: none), dtype=uint64."""
    keys = positions.astype(np.uint64) << np.uint64(1) | reverse
    return np.where(positions < 0, NO_POSITION, keys)


@on_timeline("sort records")
def sorted_order(keys: np.ndarray, threads: int = 1) -> np.ndarray:
    """Return the numbers of the records in sorted order; the sort is stable.

    With several threads, the keys are split into ranges, and each range is sorted separately.

    Returns
    -------
    order : ndarray, shape=(n,), dtype=uint32
    """
    has_position = keys < NO_POSITION
    largest = int(keys.max(where=has_position, initial=0)) + 1
    # Records without a position sort after all others.
    keys = np.minimum(keys, np.uint64(largest))
    if threads == 1 or keys.size < threads * _LEAST_A_PART:
        return _radix_order(keys, _digits(largest))
    sample = np.sort(keys[:: keys.size // (_SAMPLED * threads)])
    bounds = np.unique(sample[:: sample.size // threads])
    bounds[0] = 0
    edges = [*bounds.tolist(), largest + 1]

    def order_of(first: int, last: int) -> np.ndarray:
        chosen = _between(keys, np.uint64(edges[first]), np.uint64(edges[last]))
        own = keys[chosen] - np.uint64(edges[first])
        return chosen[_radix_order(own, _digits(edges[last] - edges[first]))]

    return np.concatenate(for_each_range(order_of, len(bounds), threads, smallest=1))


def _digits(largest: int) -> int:
    return -(-largest.bit_length() // _DIGIT_BITS)


@compiled
def _between(keys, low, high):
    """Return the indexes of keys in ``[low, high)``, in order, dtype uint32."""
    count = 0
    for key in keys:
        count += low <= key < high
    chosen = np.empty(count, np.uint32)
    at = 0
    for i in range(keys.size):
        if low <= keys[i] < high:
            chosen[at] = i
            at += 1
    return chosen


@compiled
def _radix_order(keys, digits):
    """Sort by the least significant digit first; each pass is stable and reads the output of the
    previous one."""
    n = keys.size
    order = np.arange(n).astype(np.uint32)
    other = np.empty(n, np.uint32)
    waiting = np.empty(n, np.uint64)
    mask = np.uint64((1 << _DIGIT_BITS) - 1)
    for digit in range(digits):
        shift = np.uint64(_DIGIT_BITS * digit)
        offsets = np.zeros((1 << _DIGIT_BITS) + 1, np.int64)
        for i in range(n):
            offsets[np.int64(keys[i] >> shift & mask) + 1] += 1
        for i in range(1 << _DIGIT_BITS):
            offsets[i + 1] += offsets[i]
        for i in range(n):
            bucket = np.int64(keys[i] >> shift & mask)
            waiting[offsets[bucket]] = keys[i]
            other[offsets[bucket]] = order[i]
            offsets[bucket] += 1
        keys, waiting = waiting, keys
        order, other = other, order
    return order
