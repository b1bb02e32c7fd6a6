"""Matches as Parquet: one row a match, 0-based positions on the forward strands."""

from contextlib import AbstractContextManager
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from bwarp.io.fastx import SequenceBatch
from bwarp.mems.matches import Matches
from bwarp.mems.output.match_columns import match_columns
from bwarp.reference import Reference

__all__ = ["ParquetMatches"]

ROWS_A_GROUP = 1 << 20

_SCHEMA = pa.schema(
    [
        ("query", pa.string()),
        ("query_start", pa.int64()),
        ("strand", pa.string()),
        ("contig", pa.string()),
        ("position", pa.int64()),
        ("length", pa.int64()),
    ]
)


class ParquetMatches(AbstractContextManager):
    """Writes matches to an open file, in row groups that do not depend on how they come in."""

    def __init__(self, file: IO[bytes], reference: Reference, strands: tuple[int, ...]):
        self._writer = pq.ParquetWriter(file, _SCHEMA)
        self._reference = reference
        self._contigs = pa.array(reference.names, pa.string())
        self._strands = strands
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0

    def __exit__(self, exception_type, *_) -> None:
        if exception_type is None:
            self._write_groups(1)
        self._writer.close()

    def write(self, matches: Matches, batch: SequenceBatch) -> None:
        """Add matches of a batch of queries."""
        rows = match_columns(matches, batch, self._reference, self._strands)
        columns = [
            pa.array(rows.names, pa.string()).take(pa.array(rows.queries)),
            rows.query_starts,
            pa.array(["+", "-"], pa.string()).take(pa.array(rows.strands)),
            self._contigs.take(pa.array(rows.contigs)),
            rows.positions,
            rows.lengths,
        ]
        self._waiting.append(pa.table(columns, schema=_SCHEMA))
        self._n_waiting += matches.n
        self._write_groups(ROWS_A_GROUP)

    def _write_groups(self, least: int) -> None:
        """Write whole row groups while at least so many rows wait."""
        if self._n_waiting < least:
            return
        waiting = pa.concat_tables(self._waiting)
        while waiting.num_rows >= least:
            self._writer.write_table(waiting.slice(0, ROWS_A_GROUP), ROWS_A_GROUP)
            waiting = waiting.slice(ROWS_A_GROUP)
        self._waiting, self._n_waiting = [waiting], waiting.num_rows
