"""Hits as the columns of their table, for what is not text: Parquet and data frames."""

from typing import NamedTuple

import numpy as np

from bwarp.io.names import Names
from bwarp.reference import Reference
from bwarp.seeding.hits import SeedHits
from bwarp.seeding.kmers import KmerBatch

__all__ = ["HitColumns", "hit_columns"]


class HitColumns(NamedTuple):
    """Rows of the table of hits, with numbers in place of names.

    Attributes
    ----------
    names : list of str
        Of the queries that have hits, in their order.
    queries : ndarray, shape=(n,), dtype=int64
        Which of `names` a row is of.
    kmer_starts : ndarray, shape=(n,), dtype=int64
    strands : ndarray, shape=(n,), dtype=uint8
        0: forward, 1: reverse.
    contigs : ndarray, shape=(n,), dtype=int64
    positions : ndarray, shape=(n,), dtype=int64
        0-based, in the contig.
    mismatches : ndarray, shape=(n,), dtype=uint8
    """

    names: list[str]
    queries: np.ndarray
    kmer_starts: np.ndarray
    strands: np.ndarray
    contigs: np.ndarray
    positions: np.ndarray
    mismatches: np.ndarray


def hit_columns(
    hits: SeedHits, kmers: KmerBatch, queries: Names, reference: Reference
) -> HitColumns:
    """The columns of hits of a batch of k-mers."""
    numbers = kmers.queries[hits.kmers]
    # Only the names that occur become strings: hits are in the order of their queries.
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    positions = hits.positions.astype(np.int64)
    contigs = reference.contig_of(positions)
    return HitColumns(
        names=[queries.name(number) for number in numbers[first]],
        queries=np.repeat(np.arange(first.size), np.diff(first, append=numbers.size)),
        kmer_starts=kmers.starts[hits.kmers],
        strands=hits.strands,
        contigs=contigs,
        positions=positions - reference.contig_starts[contigs],
        mismatches=hits.mismatches,
    )
