"""Find seeds on the CPU: search, count and locate, in order."""

from collections.abc import Iterator

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import check_hit, locate, rows_of_intervals
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline
from bwarp.seeding.backtracking_cpu import search_backtracking
from bwarp.seeding.exact_cpu import search_exact
from bwarp.seeding.find import kmers_by_length
from bwarp.seeding.hits import (
    FoundSeeds,
    Intervals,
    SeedHits,
    SeedOptions,
    hits_of_kmers,
    in_kmer_order,
    joined,
    over_limit,
    taken,
    whole_kmers,
    with_kmers,
)
from bwarp.seeding.kmers import KmerBatch
from bwarp.seeding.search_schemes_cpu import search_schemes

#: Hits located and sorted at a time: tens of megabytes. The hits of one k-mer are never split.
HITS_AT_ONCE = 2_000_000


@on_timeline("search k-mers")
def find_pass(
    index: FMIndex,
    kmers: KmerBatch,
    start: int,
    stop: int,
    options: SeedOptions,
    threads: int = 1,
) -> FoundSeeds:
    """Find all hits of the k-mers of a pass, from `start` to `stop`, of any lengths."""
    intervals = joined(
        [
            with_kmers(_search(index, packed, k, options, threads), numbers - start)
            for numbers, packed, k in kmers_by_length(kmers, start, stop)
        ]
    )
    counts = hits_of_kmers(intervals, stop - start)
    over, over_counts = over_limit(counts, options)
    if over.size:
        intervals = taken(intervals, counts[intervals.kmers] <= options.max_hits)
    intervals = in_kmer_order(intervals, stop - start)
    intervals = with_kmers(intervals, np.arange(start, stop))
    return FoundSeeds(
        (start + over).astype(np.uint32), over_counts, located(index, intervals, threads)
    )


def _search(
    index: FMIndex, kmers: np.ndarray, k: int, options: SeedOptions, threads: int
) -> Intervals:
    if options.mismatches == 0:
        return search_exact(index, kmers, k, threads)
    if options.algorithm == "backtracking":
        return search_backtracking(
            index, kmers, k, options.mismatches, options.stops_after, threads
        )
    return search_schemes(index, kmers, k, options.mismatches, threads)


@on_timeline("locate hits")
def located(index: FMIndex, intervals: Intervals, threads: int = 1) -> Iterator[SeedHits]:
    """Yield the hits of intervals in k-mer order, in parts of whole k-mers."""
    for part in whole_kmers(intervals, HITS_AT_ONCE):
        rows, offsets = rows_of_intervals(part.first_rows, part.n_rows, threads)
        positions = locate(index, rows, threads)
        yield hits_in_order(part, offsets, positions, index.reference, threads)


def hits_in_order(
    part: Intervals,
    offsets: np.ndarray,
    positions: np.ndarray,
    reference: Reference,
    threads: int = 1,
) -> SeedHits:
    """Return the hits of intervals in k-mer order; overwrites `positions`, those of their rows."""
    kmers = np.empty(positions.size, np.uint32)
    strands = np.empty(positions.size, np.uint8)
    mismatches = np.empty(positions.size, np.uint8)
    # Ranges end between k-mers, so that each can be sorted on its own.
    edges = np.flatnonzero(np.diff(part.kmers, prepend=part.kmers[:1] + 1))
    edges = np.append(edges, part.count)

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


# One number per hit, so that sorting numbers sorts hits:
#
#     bits  63 ... 36        35       34 ... 3      2 1 0
#           k-mer - first    strand   position      mismatches


@compiled
def _make_keys(kmers, strands, mismatches, offsets, positions, segment_text, segment_genome, keys):
    """Make sorted keys of hits from the text positions of intervals; positions become genome
    positions.
    """
    n_segments = segment_genome.size
    segment = 0
    for i in range(kmers.size):
        head = np.uint64(kmers[i] - kmers[0]) << np.uint64(1) | np.uint64(strands[i])
        for at in range(offsets[i] - offsets[0], offsets[i + 1] - offsets[0]):
            position = np.int64(positions[at])
            if position < segment_text[segment] or position >= segment_text[segment + 1]:
                segment = np.searchsorted(segment_text[:n_segments], position, side="right") - 1
            check_hit(position, 1, segment_text[segment + 1])
            genome = np.uint64(segment_genome[segment] + position - segment_text[segment])
            keys[at] = head << np.uint64(35) | genome << np.uint64(3) | np.uint64(mismatches[i])


@compiled
def _read_keys(keys, first_kmer, kmers, strands, positions, mismatches):
    for i in range(keys.size):
        key = keys[i]
        kmers[i] = np.uint64(first_kmer) + (key >> np.uint64(36))
        strands[i] = (key >> np.uint64(35)) & np.uint64(1)
        positions[i] = (key >> np.uint64(3)) & np.uint64(0xFFFFFFFF)
        mismatches[i] = key & np.uint64(7)
