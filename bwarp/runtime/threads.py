"""CPU threads: their number, functions called on ranges of items, and the ranges.

The Numba functions of the CPU engine release the GIL and process a range of items, so plain Python
threads suffice: one code path, no second compilation for `parallel=True`, and results that cannot
depend on the number of threads, because each item is computed independently. chunks.py leads
chunks of input through the threads.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from bwarp.runtime.compiled_code import compiled


def available_threads() -> int:
    """Return the number of CPU cores that this process may use, as limited by a scheduler."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def for_each_range(
    function: Callable[[int, int], object], n_items: int, threads: int, smallest: int = 1024
) -> list:
    """Call ``function(start, stop)`` on ranges that cover ``n_items``, in `threads` threads.

    There are several ranges per thread to balance uneven work, each of at least `smallest` items.
    Results are in the order of the ranges.
    """
    if n_items <= 0:
        return []
    n_ranges = max(1, min(threads * 4 if threads > 1 else 1, n_items // max(smallest, 1)))
    edges = [n_items * i // n_ranges for i in range(n_ranges + 1)]
    ranges = list(itertools.pairwise(edges))
    if threads == 1 or n_ranges == 1:
        return [function(start, stop) for start, stop in ranges]
    return run_together([partial(function, *bounds) for bounds in ranges], threads)


def copied(array: np.ndarray, threads: int) -> np.ndarray:
    """Return a copy, made by several threads, because new memory costs time at its first use."""
    copy = np.empty_like(array)

    def copy_range(first: int, last: int) -> None:
        copy[first:last] = array[first:last]

    for_each_range(copy_range, len(array), threads, smallest=1 << 22)
    return copy


def run_together(functions: Sequence[Callable[[], object]], threads: int) -> list:
    """Return the results of functions without arguments, run in up to `threads` threads.

    Even a single function runs in another thread than the main one, which handles Ctrl-C at once.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        results = [future.result() for future in [pool.submit(f) for f in functions]]
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
    return results


# --------------------------------------------------------------------------------------------------
# Ranges of items with a bounded size, and offsets of the items of owners.


def bounded_ranges(offsets: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges of items, each as long as possible within a total size.

    Parameters
    ----------
    offsets : ndarray, shape=(n_items + 1,)
        Start of each item when they are concatenated, and the end of the last one.
    most : int
        Maximum total size; a larger item forms its own range.

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
    """Return where the items of each of `count` owners begin, and where the last ones end.

    Parameters
    ----------
    owners : ndarray, shape=(n_items,), dtype=int32 or int64
        Owner of each item, sorted.

    Returns
    -------
    offsets : ndarray, shape=(count + 1,), dtype=int64
    """
    offsets = np.zeros(count + 1, np.int64)
    # Ten times as fast as a binary search per owner.
    np.cumsum(np.bincount(owners, minlength=count), out=offsets[1:])
    return offsets


@compiled
def joined_stretches(values, starts, offsets):
    """Concatenate stretches of bytes (uint8).

    Parameters
    ----------
    starts : ndarray, shape=(n,), dtype=int64
        Start of each stretch in `values`.
    offsets : ndarray, shape=(n + 1,), dtype=int64
        Start of each stretch in the result, and the end of the last one.
    """
    out = np.empty(offsets[-1], np.uint8)
    for i in range(starts.size):
        # LLVM vectorises the copy only for unsigned indices.
        to, begin = np.uint64(offsets[i]), np.uint64(starts[i])
        for at in range(np.uint64(offsets[i + 1] - offsets[i])):
            out[to + at] = values[begin + at]
    return out


@compiled
def put_stretches(values, offsets, out, starts, step):
    """Copy stretches of bytes, which are concatenated, to ``out[starts[0]:]``,
    ``out[starts[step]:]``, and so on.

    Parameters
    ----------
    offsets : ndarray, shape=(n + 1,), dtype=int64
        Start of each stretch in `values`, and the end of the last one.
    """
    for i in range(offsets.size - 1):
        # LLVM vectorises the copy only for unsigned indices.
        source, to = np.uint64(offsets[i]), np.uint64(starts[step * i])
        for at in range(np.uint64(offsets[i + 1] - offsets[i])):
            out[to + at] = values[source + at]
