"""What a search finds: SA intervals of the forward BWT, for a k-mer on a strand."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.ranges import bounded_ranges
from bwarp.seeding.columns import taken

__all__ = ["FORWARD", "REVERSE", "Intervals", "hits_of_kmers", "in_kmer_order", "whole_kmers"]

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
