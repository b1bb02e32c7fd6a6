"""The concatenated references of a scan, prefix counts for their windows, and blocks of hits.

`prefix[x, i]` is the number of bases x before position i, modulo 256 (or 65,536): the difference of
two of them is exact for a window of up to 255 (or 65,535) bases, at one byte per base and position
instead of four.

    codes      A C A N | G A            two references of 4 and 2 bases
    prefix[A]  0 1 1 2 2 2 3            window [0, 4): prefix[A, 4] - prefix[A, 0] = 2
    starts     0         4   6
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.runtime.compiled_code import compiled


@dataclass(frozen=True)
class References:
    """Concatenated reference sequences.

    Attributes
    ----------
    names : list of str
    codes : ndarray, shape=(total,), dtype=uint8
    starts : ndarray, shape=(n + 1,), dtype=int64
        Reference i is ``codes[starts[i]:starts[i + 1]]``.
    """

    names: list[str]
    codes: np.ndarray
    starts: np.ndarray


def gather_references(batches: Iterable[SequenceBatch]) -> References:
    """Read all records of a file into memory, concatenated."""
    names: list[str] = []
    codes = []
    lengths = []
    for batch in batches:
        names += batch.names()
        codes.append(batch.codes)
        lengths.append(np.diff(batch.offsets))
    return References(
        names,
        np.concatenate(codes) if codes else np.zeros(0, np.uint8),
        np.concatenate([[0], *lengths]).cumsum().astype(np.int64),
    )


def prefix_counts(codes: np.ndarray, dtype) -> np.ndarray:
    """Compute prefix counts of the four bases.

    Parameters
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
    dtype : numpy.uint8 or numpy.uint16

    Returns
    -------
    prefix : ndarray, shape=(4, total + 1), dtype=dtype
    """
    prefix = np.zeros((4, codes.size + 1), dtype)
    _prefix_counts(codes, prefix)
    return prefix


def window_count(references: References, length: int) -> int:
    """Count the windows of `length` bases within the references."""
    return int(np.maximum(np.diff(references.starts) - length + 1, 0).sum())


@compiled
def _prefix_counts(codes, prefix):
    for base in range(4):
        count = 0
        for i in range(codes.size):
            count += codes[i] == base
            # Storing keeps the low 8 or 16 bits.
            prefix[base, i + 1] = count


# Hits as arrays: blocks of hits, the best of them, and regions of them.


class HitBlock(NamedTuple):
    """The hits, or regions of hits, of queries of one length.

    Queries with the same base counts have the same hits, which are stored once:

        queries    7  9  12           group_of_query   0  1  0
        edges      0        4     6   group 0: rows 0 to 3, group 1: rows 4 and 5
        positions  3  4  5  9  2  8

    Attributes
    ----------
    length : int
    queries : ndarray, shape=(n_queries,), dtype=int64
        Numbers of the queries, ascending.
    group_of_query : ndarray, shape=(n_queries,), dtype=int64
    edges : ndarray, shape=(n_groups + 1,), dtype=int64
    positions : ndarray, shape=(edges[-1],), dtype=uint32
        Where the (first) window begins in the concatenated references.
    distances : ndarray, shape=(edges[-1],), dtype=uint16
        The distance of the window, or the minimum distance of the region.
    windows : ndarray, shape=(edges[-1],), dtype=uint32, or None
        The number of windows that a region joins; None if rows are single windows.
    """

    length: int
    queries: np.ndarray
    group_of_query: np.ndarray
    edges: np.ndarray
    positions: np.ndarray
    distances: np.ndarray
    windows: np.ndarray | None = None


def best_hits(hits, positions, distances, wanted):
    """Return the `wanted` nearest hits of each group, nearest first, ties by position.

    Parameters
    ----------
    hits : ndarray, shape=(n_groups,), dtype=int64
        The number of rows of each group, group after group.
    positions : ndarray, shape=(hits.sum(),), dtype=uint32
    distances : ndarray, shape=(hits.sum(),), dtype=uint16
    wanted : int

    Returns
    -------
    hits, positions, distances
        The same, with at most `wanted` rows per group.
    """
    groups = np.repeat(np.arange(len(hits)), hits)
    order = np.lexsort((positions, distances, groups))
    rank = np.arange(len(groups)) - np.repeat(np.cumsum(hits) - hits, hits)
    order = order[rank < wanted]
    return np.minimum(hits, wanted), positions[order], distances[order]


def join_regions(block: HitBlock, starts: np.ndarray) -> HitBlock:
    """Join windows of a query that begin at consecutive positions of one reference.

    Parameters
    ----------
    block : HitBlock
        With the hits of each group in order of position.
    starts : ndarray, shape=(n_references + 1,), dtype=int64
        Where the references begin when concatenated.
    """
    positions = block.positions.astype(np.int64)
    begins = np.diff(positions, prepend=-2) != 1
    begins[block.edges[:-1][block.edges[:-1] < positions.size]] = True
    begins |= np.isin(positions, starts)
    first = np.flatnonzero(begins)
    nearest = block.distances
    if first.size:
        nearest = np.minimum.reduceat(block.distances, first)
    return block._replace(
        edges=np.searchsorted(first, block.edges),
        positions=block.positions[first],
        distances=nearest,
        windows=np.diff(first, append=positions.size).astype(np.uint32),
    )
