"""Rows of tables of hits or matches with numbers in place of names, for Parquet and data frames."""

from typing import NamedTuple

import numpy as np

from bwarp.io.names import Names
from bwarp.reference import Reference


class NumberedRows(NamedTuple):
    """Columns of a table, with numbers in place of names.

    Attributes
    ----------
    names : list of str
        Names of the queries that have rows, in their order.
    queries : ndarray, shape=(n,), dtype=int64
        The index in `names` of each row.
    starts : ndarray, shape=(n,), dtype=int64
        0-based, in the query.
    strands : ndarray, shape=(n,), dtype=int8 or uint8
        0: forward, 1: reverse.
    contigs : ndarray, shape=(n,), dtype=int64
    positions : ndarray, shape=(n,), dtype=int64
        0-based, in the contig.
    values : ndarray, shape=(n,)
        The last column: mismatches of hits, or lengths of matches.
    """

    names: list[str]
    queries: np.ndarray
    starts: np.ndarray
    strands: np.ndarray
    contigs: np.ndarray
    positions: np.ndarray
    values: np.ndarray

    @classmethod
    def of(
        cls, names: Names, queries: np.ndarray, hits: tuple[np.ndarray, ...], reference: Reference
    ) -> "NumberedRows":
        """Return the rows of `hits`: starts, strands, positions in the genome, and values.

        Parameters
        ----------
        queries : ndarray, shape=(n,), dtype=int64
            The index in all `names` of each row, sorted.
        """
        starts, strands, positions, values = hits
        # Convert only the names that occur to strings.
        first = np.flatnonzero(np.diff(queries, prepend=-1))
        positions = positions.astype(np.int64)
        contigs = reference.contig_of(positions)
        return cls(
            names.listed(queries[first]),
            np.repeat(np.arange(first.size), np.diff(first, append=queries.size)),
            starts, strands, contigs, positions - reference.contig_starts[contigs], values,
        )  # fmt: skip
