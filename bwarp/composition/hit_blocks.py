"""Hits as arrays: some queries' hits in one block, the best of them, and regions of them."""

from dataclasses import dataclass, replace

import numpy as np

__all__ = ["HitBlock", "best_hits", "join_regions"]


@dataclass(frozen=True)
class HitBlock:
    """The hits, or regions of hits, of some queries of one length.

    Queries with the same base counts have the same hits, which stand here once:

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
        Where the (first) window begins in the references laid end to end.
    distances : ndarray, shape=(edges[-1],), dtype=uint16
        The distance of the window, or the smallest one of the region.
    windows : ndarray, shape=(edges[-1],), dtype=uint32, or None
        How many windows a region joins; None where rows are single windows.
    """

    length: int
    queries: np.ndarray
    group_of_query: np.ndarray
    edges: np.ndarray
    positions: np.ndarray
    distances: np.ndarray
    windows: np.ndarray | None = None


def best_hits(hits, positions, distances, wanted):
    """The `wanted` nearest hits of each group, ties by position, nearest first.

    Parameters
    ----------
    hits : ndarray, shape=(n_groups,), dtype=int64
        How many of the rows belong to each group, group after group.
    positions : ndarray, shape=(hits.sum(),), dtype=uint32
    distances : ndarray, shape=(hits.sum(),), dtype=uint16
    wanted : int

    Returns
    -------
    hits, positions, distances
        The same, with at most `wanted` rows a group.
    """
    groups = np.repeat(np.arange(len(hits)), hits)
    order = np.lexsort((positions, distances, groups))
    rank = np.arange(len(groups)) - np.repeat(np.cumsum(hits) - hits, hits)
    order = order[rank < wanted]
    return np.minimum(hits, wanted), positions[order], distances[order]


def join_regions(block: HitBlock, starts: np.ndarray) -> HitBlock:
    """Join windows of a query that begin at neighbouring positions of one reference.

    Parameters
    ----------
    block : HitBlock
        With each group's hits in order of position.
    starts : ndarray, shape=(n_references + 1,), dtype=int64
        Where the references begin, laid end to end.
    """
    positions = block.positions.astype(np.int64)
    begins = np.diff(positions, prepend=-2) != 1
    begins[block.edges[:-1][block.edges[:-1] < positions.size]] = True
    begins |= np.isin(positions, starts)
    first = np.flatnonzero(begins)
    nearest = block.distances
    if first.size:
        nearest = np.minimum.reduceat(block.distances, first)
    return replace(
        block,
        edges=np.searchsorted(first, block.edges),
        positions=block.positions[first],
        distances=nearest,
        windows=np.diff(first, append=positions.size).astype(np.uint32),
    )
