"""What the stages of a staged run write and read: k-mers, then intervals or (j, t), then hits.

    batch_reads     chunks  kmers                           k-mers of some queries, with their names
    seed_reads      chunks  kmers, over, intervals          for every pass: SA intervals,
                    or      kmers, over, sampled ...        a sampled SA row and LF steps for each
                                                            hit,
                    or      kmers, over, hits ...           or positions, from a GPU
    locate_seeds    hits, as `bwarp.seeding.find` gives them

SA rows mean something in one index only, so a file of seeds says in which it was searched.
"""

from collections.abc import Iterator

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import look_up, step_to_sampled
from bwarp.io.chunk_files import ChunkFileReader, ChunkFileWriter
from bwarp.io.names import Names
from bwarp.runtime.compiled_code import read_only
from bwarp.seeding.find_cpu import FoundIntervals, hits_in_order, located, sa_rows_of
from bwarp.seeding.hits import FoundSeeds, SeedHits
from bwarp.seeding.intervals import Intervals, whole_kmers
from bwarp.seeding.kmers import KmerBatch

__all__ = [
    "kmers_of_chunk",
    "read_found",
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
    return batch, Names(read_only(arrays["names"]), arrays["name_bounds"])


def write_intervals(writer: ChunkFileWriter, found: FoundIntervals) -> int:
    """The chunks of a pass, as SA intervals; returns the number of hits, as the next two do."""
    _write_over(writer, found)
    writer.write("intervals", **vars(found.intervals))
    return int(found.intervals.n_rows.sum(dtype=np.int64))


def write_sampled(
    writer: ChunkFileWriter, found: FoundIntervals, index: FMIndex, threads: int = 1
) -> int:
    """The chunks of a pass, every SA row replaced by a sampled one."""
    _write_over(writer, found)
    n_hits = 0
    for part in whole_kmers(found.intervals, HITS_AT_ONCE):
        sampled, steps = step_to_sampled(index, sa_rows_of(part, threads), threads)
        writer.write("sampled", **vars(part), sampled=sampled, steps=steps)
        n_hits += steps.size
    return n_hits


def write_located(writer: ChunkFileWriter, found: FoundSeeds) -> int:
    """The chunks of a pass that is located already, by a GPU."""
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
            to_sampled = [arrays.pop(name) for name in ("sampled", "steps") if name in arrays]
            intervals = Intervals(**arrays)
            if kind == "sampled":
                positions = look_up(index, *to_sampled, threads)
                hits = iter([hits_in_order(intervals, positions, index.reference, threads)])
            else:
                hits = located(index, intervals, threads)
            yield kmers, queries, FoundSeeds(*none, hits)
