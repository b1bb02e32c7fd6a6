"""Ranges of items: those of owners in order, and of a bounded size, as memory allows."""

from collections.abc import Iterator

import numpy as np

from bwarp.runtime.compiled_code import compiled

__all__ = ["bounded_ranges", "joined_stretches", "offsets_of"]


def bounded_ranges(offsets: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges of items, each as long as its items have at most a size together.

    Parameters
    ----------
    offsets : ndarray, shape=(n_items + 1,)
        Where each item begins when they lie end to end, and where the last one ends.
    most : int
        A larger item is a range of its own.

    Yields
    ------
    start, stop : int
    """
    start = 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
        stop = max(stop, start + 1)
        yield start, stop
        start = stop


def offsets_of(owners: np.ndarray, count: int) -> np.ndarray:
    """Where the items of each of `count` owners begin, and the last one's end.

    Parameters
    ----------
    owners : ndarray, shape=(n_items,), dtype=int32 or int64
        The owner of every item, in order.

    Returns
    -------
    offsets : ndarray, shape=(count + 1,), dtype=int64
    """
    offsets = np.zeros(count + 1, np.int64)
    # Counted in a tenth of the time that searching every owner takes.
    np.cumsum(np.bincount(owners, minlength=count), out=offsets[1:])
    return offsets


@compiled
def joined_stretches(values, starts, offsets):
    """Stretches of bytes (uint8), one after another.

    Parameters
    ----------
    starts : ndarray, shape=(n,), dtype=int64
        Where each begins in `values`.
    offsets : ndarray, shape=(n + 1,), dtype=int64
        Where each is to begin, and the last one ends.
    """
    out = np.empty(offsets[-1], np.uint8)
    for i in range(starts.size):
        # Only unsigned indexes let LLVM copy in vectors.
        to, begin = np.uint64(offsets[i]), np.uint64(starts[i])
        for at in range(np.uint64(offsets[i + 1] - offsets[i])):
            out[to + at] = values[begin + at]
    return out
