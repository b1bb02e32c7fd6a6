"""Groups of hits that one k-mer of a query has in the reference, before they are extended."""

from typing import NamedTuple

import numpy as np

from bwarp.mems.kmer_sampling import Samples
from bwarp.mems.query_text import QueryText
from bwarp.runtime.compiled_code import compiled

__all__ = ["HitGroups", "kmer_groups", "merge_groups", "take_groups", "window_positions"]


class HitGroups(NamedTuple):
    """K-mers of a query text, in order, and the rows (or table entries) of their hits.

    Attributes
    ----------
    positions, runs : ndarray, shape=(n,), dtype=int64
        Where each k-mer begins in the query text, and the run that it stands in.
    sizes : ndarray, shape=(n,), dtype=int64
        Bases of each k-mer.
    reaches : ndarray, shape=(n,), dtype=int64
        How far before its k-mer a match of the group may begin: one that begins farther holds an
        earlier k-mer and is found there. 0 where the hits are known to go on no farther.
    starts, stops : ndarray, shape=(n,), dtype=uint32
        First hit and last hit + 1.
    """

    positions: np.ndarray
    runs: np.ndarray
    sizes: np.ndarray
    reaches: np.ndarray
    starts: np.ndarray
    stops: np.ndarray


def kmer_groups(samples: Samples, size: int, reach: int, starts, stops) -> HitGroups:
    """Groups of k-mers of one size and reach."""
    n = samples.positions.size
    return HitGroups(
        samples.positions, samples.runs, np.full(n, size), np.full(n, reach), starts, stops
    )


def take_groups(groups: HitGroups, selected) -> HitGroups:
    """The groups that a slice, a mask or numbers select."""
    return HitGroups(*(array[selected] for array in groups))


def merge_groups(one: HitGroups, other: HitGroups) -> HitGroups:
    """The groups of two in the order of what they answer for.

    A k-mer group at position p answers for matches that begin in (p - step, p], a window group for
    those that begin where it does; no two answer for the same.
    """
    if one.positions.size == 0:
        return other
    if other.positions.size == 0:
        return one
    both = HitGroups(*map(np.concatenate, zip(one, other, strict=True)))
    # Runs are in the order of the queries, but the strands of a query lie far apart in the text.
    # Both parts are sorted already, which is what a stable sort is quick at.
    first = both.positions - np.maximum(both.reaches - 1, 0)
    width = int(first.max()) + 1
    return take_groups(both, np.argsort(both.runs * width + first, kind="stable"))


def window_positions(text: QueryText, samples: Samples, step: int, min_length: int) -> Samples:
    """Where matches may begin that a sample answers for: at it, or up to step - 1 bases before."""
    n = samples.positions.size * step
    windows = Samples(np.empty(n, np.int64), np.empty(n, np.int64))
    n = _fill_windows(samples, text.run_stops, step, min_length, windows)
    return Samples(windows.positions[:n], windows.runs[:n])


@compiled
def _fill_windows(samples, run_stops, step, min_length, windows):
    """Write the windows after which a run has `min_length` bases left; return how many."""
    n = 0
    for i in range(samples.positions.size):
        position, run = samples.positions[i], samples.runs[i]
        last = min(position, run_stops[run] - min_length)
        for start in range(position - step + 1, last + 1):
            windows.positions[n] = start
            windows.runs[n] = run
            n += 1
    return n
