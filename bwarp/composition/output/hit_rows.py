"""Hits as rows of a table: a query, a reference, a position, and how near it is."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.composition.hit_blocks import HitBlock
from bwarp.runtime.compiled_code import compiled

__all__ = ["HitRows", "rows_of_block"]


@dataclass(frozen=True)
class HitRows:
    """Consecutive rows of the table, all of queries of one length.

    Attributes
    ----------
    length : int
    queries, references : ndarray, shape=(n_rows,), dtype=int32
    positions : ndarray, shape=(n_rows,), dtype=int64
        0-based, in the reference.
    windows : ndarray, shape=(n_rows,), dtype=uint32
        How many windows the row joins.
    distances : ndarray, shape=(n_rows,), dtype=uint16
    joined : bool
        Whether rows are regions.
    """

    length: int
    queries: np.ndarray
    references: np.ndarray
    positions: np.ndarray
    windows: np.ndarray
    distances: np.ndarray
    joined: bool

    @property
    def ends(self) -> np.ndarray:
        """Where the last window of each row ends, exclusive (dtype int64)."""
        return self.positions + self.windows - 1 + self.length


def rows_of_block(block: HitBlock, starts: np.ndarray, most: int = 1 << 20) -> Iterator[HitRows]:
    """The rows of a block, query after query, at most so many at a time.

    Parameters
    ----------
    starts : ndarray, shape=(n_references + 1,), dtype=int64
        Where the references begin, laid end to end.
    """
    left = int(np.diff(block.edges)[block.group_of_query].sum())
    windows = block.windows
    if windows is None:
        windows = np.ones(1, np.uint32)
    at = (0, 0)
    while left:
        n_rows = min(left, most)
        rows = HitRows(
            block.length,
            np.empty(n_rows, np.int32),
            np.empty(n_rows, np.int32),
            np.empty(n_rows, np.int64),
            np.empty(n_rows, np.uint32),
            np.empty(n_rows, np.uint16),
            block.windows is not None,
        )
        at = _expand(
            block.queries, block.group_of_query, block.edges, block.positions, block.distances,
            windows, starts, *at, rows.queries, rows.references, rows.positions, rows.windows,
            rows.distances,
        )  # fmt: skip
        left -= n_rows
        yield rows


@compiled
def _expand(
    queries, group_of_query, edges, positions, distances, windows, starts, query, row,
    row_queries, row_references, row_positions, row_windows, row_distances,
):  # fmt: skip
    """Fill rows from a query's given row on; return where to go on."""
    used = 0
    reference = 0
    while used < row_queries.size:
        group = group_of_query[query]
        hit = edges[group] + row
        if hit == edges[group + 1]:
            query += 1
            row = 0
            continue
        position = np.int64(positions[hit])
        # Mostly the same reference as the row before.
        if not starts[reference] <= position < starts[reference + 1]:
            reference = np.searchsorted(starts, position, side="right") - 1
        row_queries[used] = queries[query]
        row_references[used] = reference
        row_positions[used] = position - starts[reference]
        row_windows[used] = windows[min(hit, windows.size - 1)]
        row_distances[used] = distances[hit]
        used += 1
        row += 1
    return query, row
