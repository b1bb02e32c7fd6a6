"""Search without locating: the intervals of batches of k-mers, for the stages of a staged run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.seeding.find import passes
from bwarp.seeding.hits import SeedOptions, check_options
from bwarp.seeding.intervals import Intervals, concatenate, hits_of_kmers, in_kmer_order
from bwarp.seeding.kmers import KmerBatch, kmer_words

__all__ = ["FoundIntervals", "search_in_passes", "walker"]


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
    index: FMIndex, kmers: KmerBatch, options: SeedOptions, backend: str, threads: int = 1
) -> Iterator[FoundIntervals]:
    """The intervals of a batch of k-mers of any lengths, pass by pass, in order."""
    check_options(options, backend)
    search = _engine(backend)
    for start, stop in passes(index, kmers.lengths, options.mismatches, backend):
        lengths = kmers.lengths[start:stop]
        parts = []
        for k in np.unique(lengths):
            numbers = np.flatnonzero(lengths == k)
            words = np.ascontiguousarray(kmers.words[start + numbers, : kmer_words(k)])
            found = search(index, words, int(k), options, threads)
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


def walker(index: FMIndex, backend: str, threads: int = 1) -> Callable:
    """A function that takes rows to sampled rows and steps, on an engine."""
    if backend == "cuda":
        from bwarp.seeding.find_cuda import walk
    else:
        from bwarp.index.locate_cpu import walk
    return lambda rows: walk(index, rows, threads)


def _engine(backend: str) -> Callable:
    if backend == "cuda":
        from bwarp.seeding.find_cuda import search_seeds

        return search_seeds
    return _search_on_cpu


def _search_on_cpu(index, words, k, options, threads) -> Intervals:
    from bwarp.seeding.backtracking_cpu import search_backtracking
    from bwarp.seeding.exact_cpu import search_exact
    from bwarp.seeding.schemes_cpu import search_schemes

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
