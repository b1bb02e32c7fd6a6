"""Hits as Parquet: the same columns as in TSV, in row groups of a fixed number of rows.

Row groups are filled from whatever parts the hits come in, so that the file does not depend on
how the work was divided.
"""

from contextlib import AbstractContextManager
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from bwarp.io.names import Names
from bwarp.reference import Reference
from bwarp.seeding.hits import SeedHits
from bwarp.seeding.kmers import KmerBatch
from bwarp.seeding.output.hit_columns import hit_columns

__all__ = ["ParquetHits"]

ROWS_A_GROUP = 1 << 20

_SCHEMA = pa.schema(
    [
        ("query", pa.string()),
        ("kmer_start", pa.int64()),
        ("strand", pa.string()),
        ("contig", pa.string()),
        ("position", pa.int64()),
        ("mismatches", pa.uint8()),
    ]
)


class ParquetHits(AbstractContextManager):
    """Writes hits to an open file; what is left over is written when the block ends."""

    def __init__(self, file: IO[bytes], reference: Reference):
        self._writer = pq.ParquetWriter(file, _SCHEMA)
        self._reference = reference
        self._contigs = pa.array(reference.names, pa.string())
        self._strands = pa.array(["+", "-"], pa.string())
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0

    def __exit__(self, exception_type, *_) -> None:
        if exception_type is None:
            self._write_groups(1)
        self._writer.close()

    def write(self, hits: SeedHits, kmers: KmerBatch, queries: Names) -> None:
        """Add hits of a batch of k-mers."""
        rows = hit_columns(hits, kmers, queries, self._reference)
        columns = [
            pa.array(rows.names, pa.string()).take(pa.array(rows.queries)),
            pa.array(rows.kmer_starts),
            self._strands.take(pa.array(rows.strands)),
            self._contigs.take(pa.array(rows.contigs)),
            pa.array(rows.positions),
            pa.array(rows.mismatches),
        ]
        self._waiting.append(pa.Table.from_arrays(columns, schema=_SCHEMA))
        self._n_waiting += hits.count
        if self._n_waiting >= ROWS_A_GROUP:
            self._write_groups(ROWS_A_GROUP)

    def _write_groups(self, least: int) -> None:
        """Write groups until fewer than `least` rows wait."""
        waiting = pa.concat_tables([_SCHEMA.empty_table(), *self._waiting])
        start = 0
        while waiting.num_rows - start >= least:
            group = waiting.slice(start, ROWS_A_GROUP).combine_chunks()
            self._writer.write_table(group, row_group_size=ROWS_A_GROUP)
            start += group.num_rows
        self._waiting = [waiting.slice(start)]
        self._n_waiting = waiting.num_rows - start
