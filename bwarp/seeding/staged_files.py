"""What the stages of a staged run write and read: k-mers, then intervals or (j, t), then hits.

    batch_reads     chunks  kmers                           k-mers of some queries, with their names
    seed_reads      chunks  kmers, over, intervals          for every pass: rows of the index,
                    or      kmers, over, walked ...         a sampled row and steps for each hit,
                    or      kmers, over, hits ...           or positions, from a GPU
    locate_seeds    hits, as `bwarp.seeding.find` gives them

Rows mean something in one index only, so a file of seeds says in which it was searched.
"""

from collections.abc import Iterator

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import locate, look_up, step_to_sampled
from bwarp.io.chunk_files import ChunkFileReader, ChunkFileWriter
from bwarp.reference import Reference
from bwarp.seeding.find_intervals_cpu import FoundIntervals
from bwarp.seeding.hits import FoundSeeds, SeedHits
from bwarp.seeding.intervals import Intervals, whole_kmers
from bwarp.seeding.kmers import KmerBatch
from bwarp.seeding.output.seed_text import Names

__all__ = [
    "hits_in_order",
    "kmers_of_chunk",
    "read_found",
    "rows_of",
    "write_intervals",
    "write_kmers",
    "write_located",
    "write_sampled",
]

#: Hits in memory at a time.
HITS_AT_ONCE = 1 << 20


def write_kmers(writer: ChunkFileWriter, kmers: KmerBatch, queries: Names) -> None:
    """A chunk of k-mers, with the names of those queries only that they come from."""
    numbers = np.concatenate([kmers.queries, kmers.skipped[:, 0]])
    first, last = (int(numbers.min()), int(numbers.max()) + 1) if numbers.size else (0, 0)
    names = queries.part(first, last)
    writer.write(
        "kmers",
        words=kmers.words,
        lengths=kmers.lengths,
        queries=kmers.queries - first,
        starts=kmers.starts,
        skipped=kmers.skipped - [first, 0, 0],
        names=names.text,
        name_bounds=names.bounds,
    )


def kmers_of_chunk(arrays: dict[str, np.ndarray]) -> tuple[KmerBatch, Names]:
    """The k-mers of a chunk and the names of their queries."""
    columns = ("words", "lengths", "queries", "starts", "skipped")
    batch = KmerBatch(*(arrays[column] for column in columns))
    return batch, Names(arrays["names"], arrays["name_bounds"])


def write_intervals(writer: ChunkFileWriter, found: FoundIntervals) -> int:
    """The chunks of a pass, rows as they are; returns the number of hits, as the next two do."""
    _write_over(writer, found)
    writer.write("intervals", **vars(found.intervals))
    return int(found.intervals.n_rows.sum(dtype=np.int64))


def write_sampled(
    writer: ChunkFileWriter, found: FoundIntervals, index: FMIndex, threads: int = 1
) -> int:
    """The chunks of a pass, every row walked to a sampled one."""
    _write_over(writer, found)
    n_hits = 0
    for part in whole_kmers(found.intervals, HITS_AT_ONCE):
        sampled, steps = step_to_sampled(index, rows_of(part), threads)
        writer.write("walked", **vars(part), sampled=sampled, steps=steps)
        n_hits += steps.size
    return n_hits


def write_located(writer: ChunkFileWriter, found: FoundSeeds) -> int:
    """The chunks of a pass that is located already, as a GPU's engine gives it."""
    _write_over(writer, found)
    n_hits = 0
    for hits in found.hits:
        writer.write("hits", **vars(hits))
        n_hits += hits.count
    return n_hits


def _write_over(writer: ChunkFileWriter, found: FoundIntervals | FoundSeeds) -> None:
    writer.write("over", over_kmers=found.over_kmers, over_counts=found.over_counts)


def read_found(
    reader: ChunkFileReader, index: FMIndex, threads: int = 1
) -> Iterator[tuple[KmerBatch, Names, FoundSeeds | None]]:
    """The k-mers of a file of seeds, and after them what was found of them, located.

    Yields
    ------
    kmers, queries, found : KmerBatch, Names, FoundSeeds or None
        First without, then with what each chunk adds.
    """
    none = np.zeros(0, np.uint32), np.zeros(0, np.int64)
    for kind, arrays in reader:
        if kind == "kmers":
            kmers, queries = kmers_of_chunk(arrays)
            yield kmers, queries, None
        elif kind == "over":
            found = FoundSeeds(arrays["over_kmers"], arrays["over_counts"], iter(()))
            yield kmers, queries, found
        elif kind == "hits":
            yield kmers, queries, FoundSeeds(*none, iter([SeedHits(**arrays)]))
        else:
            columns = ("kmers", "strands", "first_rows", "n_rows", "mismatches")
            intervals = Intervals(*(arrays[column] for column in columns))
            if kind == "walked":
                positions = look_up(index, arrays["sampled"], arrays["steps"], threads)
                hits = iter([hits_in_order(intervals, positions, index.reference)])
            else:
                hits = _located(index, intervals, threads)
            yield kmers, queries, FoundSeeds(*none, hits)


def _located(index: FMIndex, intervals: Intervals, threads: int) -> Iterator[SeedHits]:
    for part in whole_kmers(intervals, HITS_AT_ONCE):
        yield hits_in_order(part, locate(index, rows_of(part), threads), index.reference)


def rows_of(intervals: Intervals) -> np.ndarray:
    """All rows of intervals, one after another, dtype uint32."""
    n_rows = intervals.n_rows.astype(np.int64)
    before = np.cumsum(n_rows) - n_rows
    within = np.arange(n_rows.sum()) - np.repeat(before, n_rows)
    return (np.repeat(intervals.first_rows, n_rows) + within).astype(np.uint32)


def hits_in_order(intervals: Intervals, positions: np.ndarray, reference: Reference) -> SeedHits:
    """The hits of intervals of less than 2**28 k-mers, whose rows have these text positions."""
    n_rows = intervals.n_rows
    # One number a hit, so that sorting numbers sorts hits:
    #     bits  63 ... 36        35       34 ... 3      2 1 0
    #           k-mer - first    strand   position      mismatches
    first = intervals.kmers[:1].astype(np.uint64)
    head = (intervals.kmers - first) << np.uint64(1) | intervals.strands
    keys = np.repeat(head << np.uint64(35) | intervals.mismatches, n_rows)
    keys |= reference.genome_position(positions).astype(np.uint64) << np.uint64(3)
    keys.sort()
    return SeedHits(
        kmers=((keys >> np.uint64(36)) + first).astype(np.uint32),
        strands=(keys >> np.uint64(35) & np.uint64(1)).astype(np.uint8),
        positions=(keys >> np.uint64(3) & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        mismatches=(keys & np.uint64(7)).astype(np.uint8),
    )
