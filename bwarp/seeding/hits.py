"""Search options, SA intervals and hits of k-mers, as tables of columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bwarp.errors import UsageError
from bwarp.options.finding import SEEDS
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import bounded_ranges

#: No limit on the hits of a k-mer.
NO_LIMIT = 1 << 62

# Tables (dataclasses of columns): selecting and joining rows.


Table = TypeVar("Table")


def taken(table: Table, rows: np.ndarray | slice) -> Table:
    """Select rows of a table by mask, numbers or slice."""
    return type(table)(*(column[rows] for column in vars(table).values()))


def joined(tables: Sequence[Table]) -> Table:
    """Concatenate the rows of one or more tables."""
    if len(tables) == 1:
        return tables[0]
    columns = zip(*(vars(table).values() for table in tables), strict=True)
    return type(tables[0])(*map(np.concatenate, columns))


def with_kmers(table: Table, numbers: np.ndarray) -> Table:
    """Rename k-mer i of a table to numbers[i]; `kmers` is the first column."""
    _, *others = vars(table).values()
    return type(table)(numbers.astype(np.uint32)[table.kmers], *others)


@dataclass(frozen=True)
class SeedOptions:
    """Options of `bwarp seeds` (`bwarp.options.finding`).

    Attributes
    ----------
    count_all : bool
        Never stop at the limit, so that the counts of all k-mers are complete.
    """

    mismatches: int = 0
    max_hits: int = 128
    algorithm: str = "schemes"
    locate: str = "auto"
    count_all: bool = False

    @property
    def stops(self) -> bool:
        """Return whether the search of a k-mer stops when it has more hits than the limit."""
        inexact = self.mismatches > 0 and self.algorithm == "backtracking"
        return inexact and self.max_hits > 0 and not self.count_all

    @property
    def stops_after(self) -> int:
        """Return the number of hits of a k-mer above which its search stops."""
        return self.max_hits if self.stops else NO_LIMIT


@dataclass(frozen=True)
class SeedHits:
    """Hits ordered by k-mer, strand and position.

    Attributes
    ----------
    kmers : ndarray, shape=(n,), dtype=uint32
        The number of the k-mer within its batch.
    strands : ndarray, shape=(n,), dtype=uint8
        0 if the k-mer itself matches, 1 if its reverse complement does.
    positions : ndarray, shape=(n,), dtype=uint32
        The genome position of the leftmost base of the hit.
    mismatches : ndarray, shape=(n,), dtype=uint8
    """

    kmers: np.ndarray
    strands: np.ndarray
    positions: np.ndarray
    mismatches: np.ndarray

    @property
    def count(self) -> int:
        return len(self.kmers)


@dataclass(frozen=True)
class FoundSeeds:
    """The result of a search of k-mers of one length.

    Attributes
    ----------
    over_kmers : ndarray, dtype=uint32
        The k-mers over the limit, in order.
    over_counts : ndarray, dtype=int64
        The number of hits of each of them. If the search stops at the limit, one more than the
        limit, which each of them has at least.
    hits : iterator of SeedHits
        All hits of the other k-mers, in parts, as there may be too many for memory.
    """

    over_kmers: np.ndarray
    over_counts: np.ndarray
    hits: Iterator[SeedHits]


def check_options(options: SeedOptions, backend: str) -> None:
    """Raise an error for options that a backend, ``"cpu"`` or ``"cuda"``, cannot search with."""
    for name in ("mismatches", "max_hits", "algorithm", "locate"):
        SEEDS[name].check(getattr(options, name))
    if backend == "cpu" and options.locate in ("gpu", "hybrid"):
        raise UsageError(
            f"locate {options.locate} requires a GPU, but the backend is cpu: use --locate cpu"
        )


def over_limit(counts: np.ndarray, options: SeedOptions) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the k-mers with more hits than the limit, and their counts, int64."""
    if not options.max_hits:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    over = np.flatnonzero(counts > options.max_hits)
    # How many more are found depends on the order of the search.
    return over, np.minimum(counts[over], options.max_hits + 1) if options.stops else counts[over]


def merge_hits(streams: list[Iterator[SeedHits]]) -> Iterator[SeedHits]:
    """Merge the hits of several searches, each in order, into one ordered stream.

    The searches are of different k-mers, or of one stretch of the reference after the other. Holds
    one part of each stream at a time.
    """
    streams = list(streams)
    heads = [_next_part(stream) for stream in streams]
    while any(head is not None for head in heads):
        # No later part can contain hits of k-mers up to this one.
        last = min(int(head.kmers[-1]) for head in heads if head is not None)
        ready = []
        for i, head in enumerate(heads):
            if head is None:
                continue
            cut = int(np.searchsorted(head.kmers, last, side="right"))
            ready.append(taken(head, slice(0, cut)))
            whole = cut == head.count
            heads[i] = _next_part(streams[i]) if whole else taken(head, slice(cut, None))
        merged = joined(ready)
        on_strands = merged.kmers.astype(np.uint64) << np.uint64(1) | merged.strands
        yield taken(merged, np.argsort(on_strands, kind="stable"))


def _next_part(stream: Iterator[SeedHits]) -> SeedHits | None:
    return next((part for part in stream if part.count), None)


# Search results: SA intervals of the forward BWT, per k-mer and strand.


FORWARD, REVERSE = 0, 1


@dataclass(frozen=True)
class Intervals:
    """Non-empty SA intervals; every row is one hit, and each hit occurs once.

    Attributes
    ----------
    kmers : ndarray, shape=(n,), dtype=uint32
        The number of the k-mer within its batch.
    strands : ndarray, shape=(n,), dtype=uint8
        0 if the k-mer itself occurs in the text, 1 if its reverse complement does.
    first_rows, n_rows : ndarray, shape=(n,), dtype=uint32
    mismatches : ndarray, shape=(n,), dtype=uint8
    """

    kmers: np.ndarray
    strands: np.ndarray
    first_rows: np.ndarray
    n_rows: np.ndarray
    mismatches: np.ndarray

    @classmethod
    def of_items(cls, items, first_rows, n_rows, mismatches) -> "Intervals":
        """Make intervals of items: item 2 i is k-mer i, item 2 i + 1 its reverse complement."""
        return cls(
            (items >> 1).astype(np.uint32),
            (items & 1).astype(np.uint8),
            first_rows.copy(),
            n_rows.copy(),
            mismatches.astype(np.uint8),
        )

    @property
    def count(self) -> int:
        return len(self.kmers)


def hits_of_kmers(intervals: Intervals, n_kmers: int) -> np.ndarray:
    """Count the hits of every k-mer, shape=(n_kmers,), dtype=int64."""
    hits = np.zeros(n_kmers, np.int64)
    _add_hits(intervals.kmers, intervals.n_rows, hits)
    return hits


def in_kmer_order(intervals: Intervals, n_kmers: int) -> Intervals:
    """Sort the intervals by k-mer."""
    order = np.empty(intervals.count, np.int64)
    _counting_sort(intervals.kmers, n_kmers, order)
    return taken(intervals, order)


def whole_kmers(intervals: Intervals, most_hits: int) -> Iterator[Intervals]:
    """Split intervals in k-mer order into parts of whole k-mers with a bounded number of hits.

    A k-mer with more hits forms a part of its own.
    """
    begins_kmer = np.diff(intervals.kmers, prepend=np.uint32(0), append=np.uint32(0)) != 0
    begins_kmer[[0, -1]] = True
    edges = np.flatnonzero(begins_kmer)
    hits_before = np.append(0, np.cumsum(intervals.n_rows, dtype=np.int64))[edges]
    for first, stop in bounded_ranges(hits_before, most_hits):
        yield taken(intervals, slice(edges[first], edges[stop]))


@compiled
def _add_hits(kmers, n_rows, hits):
    for i in range(kmers.size):
        hits[kmers[i]] += n_rows[i]


@compiled
def _counting_sort(kmers, n_kmers, order):
    following = np.zeros(n_kmers + 1, np.int64)
    for kmer in kmers:
        following[kmer + 1] += 1
    for kmer in range(n_kmers):
        following[kmer + 1] += following[kmer]
    for i in range(kmers.size):
        order[following[kmers[i]]] = i
        following[kmers[i]] += 1
