"""Find seeds on the CPU: search, count, locate, in order."""

from collections.abc import Iterator

import numba
import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import locate
from bwarp.runtime.threads import for_each_range
from bwarp.seeding.algorithms.backtracking_cpu import search_backtracking
from bwarp.seeding.algorithms.exact_cpu import search_exact
from bwarp.seeding.algorithms.search_schemes_cpu import search_schemes
from bwarp.seeding.hits import FoundSeeds, SeedHits, SeedOptions
from bwarp.seeding.intervals import Intervals, hits_of_kmers, in_kmer_order, whole_kmers

__all__ = ["find_seeds"]

#: Hits located and sorted at a time: tens of megabytes. One k-mer's hits are never divided.
HITS_AT_ONCE = 2_000_000


def find_seeds(
    index: FMIndex, words: np.ndarray, k: int, options: SeedOptions, threads: int = 1
) -> FoundSeeds:
    """All hits of k-mers of one length, both strands.

    Parameters
    ----------
    words : ndarray, shape=(n, 1 or 2), dtype=uint64
        K-mers as `bwarp.seeding.kmers` packs them.
    """
    if options.mismatches == 0:
        intervals = search_exact(index, words, k, threads)
    elif options.algorithm == "backtracking":
        intervals = search_backtracking(index, words, k, options.mismatches, threads)
    else:
        intervals = search_schemes(index, words, k, options.mismatches, threads)
    counts = hits_of_kmers(intervals, len(words))
    over = np.flatnonzero(counts > options.max_hits) if options.max_hits else np.empty(0, int)
    if over.size:
        intervals = intervals.take(counts[intervals.kmers] <= options.max_hits)
    return FoundSeeds(
        over_kmers=over.astype(np.uint32),
        over_counts=counts[over],
        hits=_located(index, in_kmer_order(intervals, len(words)), threads),
    )


def _located(index: FMIndex, intervals: Intervals, threads: int) -> Iterator[SeedHits]:
    """The hits of intervals in k-mer order, in parts of whole k-mers."""
    for part in whole_kmers(intervals, HITS_AT_ONCE):
        yield _locate_part(index, part, threads)


def _locate_part(index: FMIndex, part: Intervals, threads: int) -> SeedHits:
    offsets = np.concatenate([[0], np.cumsum(part.n_rows, dtype=np.int64)])
    rows = np.empty(offsets[-1], np.uint32)
    for_each_range(
        lambda first, last: _list_rows(part.first_rows, offsets, first, last, rows),
        part.count,
        threads,
    )
    positions = locate(index, rows, threads)
    kmers = np.empty(rows.size, np.uint32)
    strands = np.empty(rows.size, np.uint8)
    mismatches = np.empty(rows.size, np.uint8)
    # Ranges end between k-mers, so that each sorts its own.
    edges = np.flatnonzero(np.diff(part.kmers, prepend=part.kmers[:1] + 1))
    edges = np.append(edges, part.count)
    reference = index.reference

    def order(first: int, last: int) -> None:
        start, stop = edges[first], edges[last]
        hits = slice(offsets[start], offsets[stop])
        keys = np.empty(offsets[stop] - offsets[start], np.uint64)
        _make_keys(
            part.kmers[start:stop],
            part.strands[start:stop],
            part.mismatches[start:stop],
            offsets[start : stop + 1],
            positions[hits],
            reference.segment_text,
            reference.segment_genome,
            keys,
        )
        keys.sort()
        _read_keys(
            keys, part.kmers[start], kmers[hits], strands[hits], positions[hits], mismatches[hits]
        )

    for_each_range(order, len(edges) - 1, threads, smallest=256)
    return SeedHits(kmers, strands, positions, mismatches)


@numba.njit(cache=True, nogil=True)
def _list_rows(first_rows, offsets, first, last, rows):
    for i in range(first, last):
        row = first_rows[i]
        for at in range(offsets[i], offsets[i + 1]):
            rows[at] = row
            row += np.uint32(1)


# One number a hit, so that sorting numbers sorts hits:
#
#     bits  63 ... 36        35       34 ... 3      2 1 0
#           k-mer - first    strand   position      mismatches


@numba.njit(cache=True, nogil=True)
def _make_keys(kmers, strands, mismatches, offsets, positions, segment_text, segment_genome, keys):
    """Sort keys of hits from the text positions of intervals; positions become the genome's."""
    n_segments = segment_genome.size
    segment = 0
    for i in range(kmers.size):
        head = np.uint64(kmers[i] - kmers[0]) << np.uint64(1) | np.uint64(strands[i])
        for at in range(offsets[i] - offsets[0], offsets[i + 1] - offsets[0]):
            position = np.int64(positions[at])
            if position < segment_text[segment] or position >= segment_text[segment + 1]:
                segment = np.searchsorted(segment_text[:n_segments], position, side="right") - 1
            genome = np.uint64(segment_genome[segment] + position - segment_text[segment])
            keys[at] = head << np.uint64(35) | genome << np.uint64(3) | np.uint64(mismatches[i])


@numba.njit(cache=True, nogil=True)
def _read_keys(keys, first_kmer, kmers, strands, positions, mismatches):
    for i in range(keys.size):
        key = keys[i]
        kmers[i] = np.uint64(first_kmer) + (key >> np.uint64(36))
        strands[i] = (key >> np.uint64(35)) & np.uint64(1)
        positions[i] = (key >> np.uint64(3)) & np.uint64(0xFFFFFFFF)
        mismatches[i] = key & np.uint64(7)
