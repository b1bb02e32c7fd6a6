"""Matches as Parquet: one row a match, 0-based positions on the forward strands."""

from contextlib import AbstractContextManager
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bwarp.io.fastx import SequenceBatch
from bwarp.mems.matches import Matches
from bwarp.mems.output.labels import query_names
from bwarp.mems.query_text import REVERSE
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
        self._strands = np.array(strands)
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0

    def __exit__(self, exception_type, *_) -> None:
        if exception_type is None:
            self._write_groups(1)
        self._writer.close()

    def write(self, matches: Matches, batch: SequenceBatch) -> None:
        """Add matches of a batch of queries."""
        records = matches.queries.astype(np.int64) // len(self._strands)
        reverse = self._strands[matches.queries % len(self._strands)] == REVERSE
        starts, lengths = matches.query_starts.astype(np.int64), matches.lengths.astype(np.int64)
        turned = np.diff(batch.offsets)[records] - starts - lengths
        positions = matches.reference_starts.astype(np.int64)
        contigs = self._reference.contig_of(positions)
        # Only the names that occur become strings: matches are in the order of their queries.
        first = np.flatnonzero(np.diff(records, prepend=-1))
        labels = query_names(batch)
        names = pa.array(
            [labels[record].decode("utf-8", "replace") for record in records[first]], pa.string()
        )
        which = np.repeat(np.arange(first.size), np.diff(first, append=records.size))
        columns = [
            names.take(pa.array(which)),
            np.where(reverse, turned, starts),
            pa.array(["+", "-"], pa.string()).take(pa.array(reverse.astype(np.int8))),
            self._contigs.take(pa.array(contigs)),
            positions - self._reference.contig_starts[contigs],
            lengths,
        ]
        self._waiting.append(pa.table(columns, schema=_SCHEMA))
        self._n_waiting += len(matches)
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
