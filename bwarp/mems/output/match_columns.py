"""Matches as the columns of their table, for what is not text: Parquet and data frames."""

from typing import NamedTuple

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.io.names import query_names
from bwarp.mems.matches import Matches
from bwarp.mems.query_text import REVERSE
from bwarp.reference import Reference

__all__ = ["MatchColumns", "match_columns"]


class MatchColumns(NamedTuple):
    """Rows of the table of matches, with numbers instead of names.

    Attributes
    ----------
    names : list of str
        Of the queries that have matches, in their order.
    queries : ndarray, shape=(n,), dtype=int64
        Which of `names` a row is of.
    query_starts : ndarray, shape=(n,), dtype=int64
        0-based, on the query's forward strand.
    strands : ndarray, shape=(n,), dtype=int8
        0: forward, 1: reverse.
    contigs : ndarray, shape=(n,), dtype=int64
    positions : ndarray, shape=(n,), dtype=int64
        0-based, in the contig.
    lengths : ndarray, shape=(n,), dtype=int64
    """

    names: list[str]
    queries: np.ndarray
    query_starts: np.ndarray
    strands: np.ndarray
    contigs: np.ndarray
    positions: np.ndarray
    lengths: np.ndarray


def match_columns(
    matches: Matches, batch: SequenceBatch, reference: Reference, strands: tuple[int, ...]
) -> MatchColumns:
    """The columns of matches of a batch of queries, of which `strands` were searched."""
    records = matches.queries.astype(np.int64) // len(strands)
    reverse = np.array(strands)[matches.queries % len(strands)] == REVERSE
    starts, lengths = matches.query_starts.astype(np.int64), matches.lengths.astype(np.int64)
    turned = np.diff(batch.offsets)[records] - starts - lengths
    positions = matches.reference_starts.astype(np.int64)
    contigs = reference.contig_of(positions)
    # Only the names that occur become strings: matches lie query by query.
    first = np.flatnonzero(np.diff(records, prepend=-1))
    queries = query_names(batch)
    return MatchColumns(
        names=[queries.name(record) for record in records[first]],
        queries=np.repeat(np.arange(first.size), np.diff(first, append=records.size)),
        query_starts=np.where(reverse, turned, starts),
        strands=reverse.astype(np.int8),
        contigs=contigs,
        positions=positions - reference.contig_starts[contigs],
        lengths=lengths,
    )
