"""Search without locating, on the CPU: the intervals of batches of k-mers, pass by pass."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.seeding.algorithms.backtracking_cpu import search_backtracking
from bwarp.seeding.algorithms.exact_cpu import search_exact
from bwarp.seeding.algorithms.search_schemes_cpu import search_schemes
from bwarp.seeding.find import passes
from bwarp.seeding.hits import SeedOptions, check_options
from bwarp.seeding.intervals import Intervals, concatenate, hits_of_kmers, in_kmer_order
from bwarp.seeding.kmers import KmerBatch, kmer_words

__all__ = ["FoundIntervals", "search_in_passes"]


@dataclass(frozen=True)
class FoundIntervals:
    """What one pass found; k-mers are numbered within their batch.

    Attributes
    ----------
    over_kmers : ndarray, dtype=uint32
        The k-mers over the limit, in order.
    over_counts : ndarray, dtype=int64
        How many hits each of them has.
    intervals : Intervals
        Of all the others, in the order of their k-mers.
    """

    over_kmers: np.ndarray
    over_counts: np.ndarray
    intervals: Intervals


def search_in_passes(
    index: FMIndex, kmers: KmerBatch, options: SeedOptions, threads: int = 1
) -> Iterator[FoundIntervals]:
    """The intervals of a batch of k-mers of any lengths, pass by pass, in order."""
    check_options(options, "cpu")
    text_length = index.forward.n_rows
    for start, stop in passes(text_length, kmers.lengths, options.mismatches, "cpu"):
        lengths = kmers.lengths[start:stop]
        parts = []
        for k in np.unique(lengths):
            numbers = np.flatnonzero(lengths == k)
            words = np.ascontiguousarray(kmers.words[start + numbers, : kmer_words(k)])
            found = _search(index, words, int(k), options, threads)
            parts.append(_renumbered(found, numbers.astype(np.uint32)))
        intervals = concatenate(parts)
        counts = hits_of_kmers(intervals, stop - start)
        over = np.flatnonzero(counts > options.max_hits) if options.max_hits else np.empty(0, int)
        if over.size:
            intervals = intervals.take(counts[intervals.kmers] <= options.max_hits)
        yield FoundIntervals(
            over_kmers=(start + over).astype(np.uint32),
            over_counts=counts[over],
            intervals=_renumbered(
                in_kmer_order(intervals, stop - start), np.arange(start, stop, dtype=np.uint32)
            ),
        )


def _search(
    index: FMIndex, words: np.ndarray, k: int, options: SeedOptions, threads: int
) -> Intervals:
    if options.mismatches == 0:
        return search_exact(index, words, k, threads)
    search = search_backtracking if options.algorithm == "backtracking" else search_schemes
    return search(index, words, k, options.mismatches, threads)


def _renumbered(intervals: Intervals, numbers: np.ndarray) -> Intervals:
    """The same with k-mer i called numbers[i]."""
    return Intervals(
        numbers[intervals.kmers],
        intervals.strands,
        intervals.first_rows,
        intervals.n_rows,
        intervals.mismatches,
    )
