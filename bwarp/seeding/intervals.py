"""What a search finds: rows of the forward BWT, for a k-mer on a strand."""

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np

from bwarp.runtime.ranges import bounded_ranges

__all__ = [
    "FORWARD",
    "REVERSE",
    "Intervals",
    "concatenate",
    "hits_of_kmers",
    "in_kmer_order",
    "whole_kmers",
]

FORWARD, REVERSE = 0, 1


@dataclass(frozen=True)
class Intervals:
    """Non-empty intervals of rows; every row is one hit, and no hit is there twice.

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

    @property
    def count(self) -> int:
        return len(self.kmers)

    def take(self, chosen: np.ndarray | slice) -> "Intervals":
        """Some of the intervals, by mask, numbers or slice."""
        return Intervals(
            self.kmers[chosen],
            self.strands[chosen],
            self.first_rows[chosen],
            self.n_rows[chosen],
            self.mismatches[chosen],
        )


def concatenate(parts: list[Intervals]) -> Intervals:
    """All intervals of several searches of one batch."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none = np.empty(0, np.uint32)
        return Intervals(none, none.astype(np.uint8), none, none, none.astype(np.uint8))
    return Intervals(
        np.concatenate([part.kmers for part in parts]),
        np.concatenate([part.strands for part in parts]),
        np.concatenate([part.first_rows for part in parts]),
        np.concatenate([part.n_rows for part in parts]),
        np.concatenate([part.mismatches for part in parts]),
    )


def hits_of_kmers(intervals: Intervals, n_kmers: int) -> np.ndarray:
    """How many hits every k-mer has, shape=(n_kmers,), dtype=int64."""
    hits = np.zeros(n_kmers, np.int64)
    _add_hits(intervals.kmers, intervals.n_rows, hits)
    return hits


def in_kmer_order(intervals: Intervals, n_kmers: int) -> Intervals:
    """The same intervals, k-mer by k-mer."""
    places = np.empty(intervals.count, np.int64)
    _counting_sort(intervals.kmers, n_kmers, places)
    return intervals.take(places)


def whole_kmers(intervals: Intervals, most_hits: int) -> Iterator[Intervals]:
    """Intervals that are in k-mer order, in parts of whole k-mers with a bounded number of hits.

    A k-mer that has more hits than that is a part of its own.
    """
    begins_kmer = np.diff(intervals.kmers, prepend=np.uint32(0), append=np.uint32(0)) != 0
    begins_kmer[[0, -1]] = True
    edges = np.flatnonzero(begins_kmer)
    hits_before = np.append(0, np.cumsum(intervals.n_rows, dtype=np.int64))[edges]
    for first, stop in bounded_ranges(hits_before, most_hits):
        yield intervals.take(slice(edges[first], edges[stop]))


@numba.njit(cache=True, nogil=True)
def _add_hits(kmers, n_rows, hits):
    for i in range(kmers.size):
        hits[kmers[i]] += n_rows[i]


@numba.njit(cache=True, nogil=True)
def _counting_sort(kmers, n_kmers, places):
    next_place = np.zeros(n_kmers + 1, np.int64)
    for kmer in kmers:
        next_place[kmer + 1] += 1
    for kmer in range(n_kmers):
        next_place[kmer + 1] += next_place[kmer]
    for i in range(kmers.size):
        places[next_place[kmers[i]]] = i
        next_place[kmers[i]] += 1
