"""Sample the k-mers of a query to look up so that no match of `min_length` bases is missed.

A match of at least L bases contains at least one of the k-mers that are `step` = L - k + 1 apart:

    run      0 1 2 3 4 5 6 7 8 9 ...        L = 6, k = 4, step = 3
    k-mers       |-----| |-----|            at step - 1, 2 step - 1, ...
    windows  |---------|                    the first window of L bases ends with the first k-mer
               |---------|
                 |---------|                the last window that contains it begins with it

A match is identified by its first sampled k-mer, and begins fewer than `step` bases before it.
"""

from typing import NamedTuple

import numpy as np

from bwarp.mems.query_text import QueryText

#: K-mers are 64-bit numbers.
LONGEST_KMER = 32


class Samples(NamedTuple):
    """K-mers of a query text: their text positions and the runs that contain them.

    Attributes
    ----------
    positions : ndarray, shape=(n,), dtype=int64
    runs : ndarray, shape=(n,), dtype=int64
    """

    positions: np.ndarray
    runs: np.ndarray


def choose_kmer_length(n_bases: int, min_length: int, spare: int) -> int:
    """Return a k for which a random k-mer has about 4**-spare hits in `n_bases` bases."""
    k = 1
    while 4**k < n_bases:
        k += 1
    return max(1, min(k + spare, min_length, LONGEST_KMER))


def sample_counts(text: QueryText, min_length: int, k: int) -> np.ndarray:
    """Return the number of samples before each run, and in total (shape=(n_runs + 1,), int64)."""
    step = min_length - k + 1
    counts = np.zeros(text.run_starts.size + 1, np.int64)
    np.cumsum((text.run_stops - text.run_starts - min_length) // step + 1, out=counts[1:])
    return counts


def sample_slice(text: QueryText, counts: np.ndarray, step: int, start: int, stop: int) -> Samples:
    """Return samples number `start` to `stop`; `counts` come from `sample_counts`."""
    first, last = np.searchsorted(counts, [start, stop - 1], side="right")
    of_runs = np.diff(np.clip(counts[first - 1 : last + 1], start, stop))
    runs = np.repeat(np.arange(first - 1, last), of_runs)
    positions = text.run_starts[runs] + (np.arange(start, stop) - counts[runs] + 1) * step - 1
    return Samples(positions, runs)
