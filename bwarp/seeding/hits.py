"""Hits: where k-mers lie, and which k-mers have too many to list."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bwarp.errors import UsageError
from bwarp.options.finding import SEEDS
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import bounded_ranges

# --------------------------------------------------------------------------------------------------
# Tables that are dataclasses of columns: some rows of one, and several joined.


Table = TypeVar("Table")


def taken(table: Table, rows: np.ndarray | slice) -> Table:
    """Some rows of a table, by mask, numbers or slice."""
    return type(table)(*(column[rows] for column in vars(table).values()))


def joined(tables: Sequence[Table]) -> Table:
    """The rows of one table after the other; there is at least one table."""
    if len(tables) == 1:
        return tables[0]
    columns = zip(*(vars(table).values() for table in tables), strict=True)
    return type(tables[0])(*map(np.concatenate, columns))


def with_kmers(table: Table, numbers: np.ndarray) -> Table:
    """A table whose k-mer i is called numbers[i]; `kmers` is its first column."""
    _, *others = vars(table).values()
    return type(table)(numbers.astype(np.uint32)[table.kmers], *others)


@dataclass(frozen=True)
class SeedOptions:
    """What is searched for.

    Attributes
    ----------
    mismatches : int
        The most substitutions, at any position, from 0 to 4.
    max_hits : int
        A k-mer with more hits on both strands together is counted but not located; 0: no limit.
    algorithm : str
        How inexact matches are found: ``"schemes"``, or the paper's ``"backtracking"``.
    locate : str
        Where SA rows become positions: ``"cpu"``, ``"gpu"``, the paper's ``"hybrid"`` (LF steps on
        the GPU, look-ups on the CPU), or ``"auto"``.
    """

    mismatches: int = 0
    max_hits: int = 128
    algorithm: str = "schemes"
    locate: str = "auto"


@dataclass(frozen=True)
class SeedHits:
    """Hits in the order of their k-mers, strands and positions.

    Attributes
    ----------
    kmers : ndarray, shape=(n,), dtype=uint32
        The number of the k-mer in its batch.
    strands : ndarray, shape=(n,), dtype=uint8
        0: the k-mer itself lies there; 1: its reverse complement.
    positions : ndarray, shape=(n,), dtype=uint32
        Genome position of the hit's leftmost base.
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
    """The outcome of a search of k-mers of one length.

    Attributes
    ----------
    over_kmers : ndarray, dtype=uint32
        The k-mers over the limit, in order.
    over_counts : ndarray, dtype=int64
        How many hits each of them has.
    hits : iterator of SeedHits
        All hits of the others, a part at a time: they may be far too many to hold at once.
    """

    over_kmers: np.ndarray
    over_counts: np.ndarray
    hits: Iterator[SeedHits]


def check_options(options: SeedOptions, backend: str) -> None:
    """Refuse what cannot be searched for with a backend, ``"cpu"`` or ``"cuda"``."""
    for name in ("mismatches", "max_hits", "algorithm", "locate"):
        SEEDS[name].check(getattr(options, name))
    if backend == "cpu" and options.locate in ("gpu", "hybrid"):
        raise UsageError(
            f"locate {options.locate} needs a GPU, and the backend is cpu: use --locate cpu"
        )


def over_limit(counts: np.ndarray, max_hits: int) -> np.ndarray:
    """The numbers of the k-mers with more hits than the limit, if there is one, dtype int64."""
    return np.flatnonzero(counts > max_hits) if max_hits else np.empty(0, np.int64)


def merge_hits(streams: list[Iterator[SeedHits]]) -> Iterator[SeedHits]:
    """The hits of searches of different k-mers, each in order, as one stream in order.

    Holds one part of every stream at a time.
    """
    streams = list(streams)
    heads = [_next_part(stream) for stream in streams]
    while any(head is not None for head in heads):
        # Nothing of the k-mers up to this one can be in a part still to come.
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
        yield taken(merged, np.argsort(merged.kmers, kind="stable"))


def _next_part(stream: Iterator[SeedHits]) -> SeedHits | None:
    return next((part for part in stream if part.count), None)


# --------------------------------------------------------------------------------------------------
# What a search finds: SA intervals of the forward BWT, for a k-mer on a strand.


FORWARD, REVERSE = 0, 1


@dataclass(frozen=True)
class Intervals:
    """Non-empty SA intervals; every row is one hit, and no hit is there twice.

    Attributes
    ----------
    kmers : ndarray, shape=(n,), dtype=uint32
        The number of the k-mer in its batch.
    strands : ndarray, shape=(n,), dtype=uint8
        0 where the k-mer itself lies in the text, 1 where its reverse complement does.
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
        """Those of items: item 2 i is k-mer i, item 2 i + 1 its reverse complement."""
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
    """How many hits every k-mer has, shape=(n_kmers,), dtype=int64."""
    hits = np.zeros(n_kmers, np.int64)
    _add_hits(intervals.kmers, intervals.n_rows, hits)
    return hits


def in_kmer_order(intervals: Intervals, n_kmers: int) -> Intervals:
    """The same intervals, k-mer by k-mer."""
    order = np.empty(intervals.count, np.int64)
    _counting_sort(intervals.kmers, n_kmers, order)
    return taken(intervals, order)


def whole_kmers(intervals: Intervals, most_hits: int) -> Iterator[Intervals]:
    """Intervals that are in k-mer order, in parts of whole k-mers with a bounded number of hits.

    A k-mer that has more hits than that is a part of its own.
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
