"""Tables of hits or matches as Parquet, in row groups of a fixed number of rows.

Row groups do not depend on the parts in which rows arrive, so the file does not depend on how the
work was divided.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from bwarp.io.numbered_rows import NumberedRows

ROWS_A_GROUP = 1 << 20


class ParquetRows(AbstractContextManager):
    """Writes rows to an open file; the remaining rows are written on exit.

    Parameters
    ----------
    header : bytes
        The first line of the same table as TSV: query, start, strand, contig, position, value.
    value : str
        The dtype of the last column, such as "int64".
    contigs : sequence of str
    """

    def __init__(self, file: IO[bytes], header: bytes, value: str, contigs: Sequence[str]):
        text, number = pa.string(), pa.int64()
        types = [text, number, text, text, number, pa.from_numpy_dtype(value)]
        self._schema = pa.schema(list(zip(header.decode().split(), types, strict=True)))
        self._writer = pq.ParquetWriter(file, self._schema)
        self._contigs, self._strands = pa.array(contigs, text), pa.array(["+", "-"], text)
        self._waiting = [self._schema.empty_table()]
        self._n_waiting = 0

    def __exit__(self, exception_type, *_) -> None:
        if exception_type is None:
            self._write_groups(1)
        self._writer.close()

    def write(self, rows: NumberedRows) -> None:
        """Add rows."""
        names, queries, starts, strands, contigs, positions, values = rows
        columns = [
            pa.array(names, pa.string()).take(pa.array(queries)),
            starts,
            self._strands.take(pa.array(strands)),
            self._contigs.take(pa.array(contigs)),
            positions,
            values,
        ]
        self._waiting.append(pa.table(columns, schema=self._schema))
        self._n_waiting += len(positions)
        if self._n_waiting >= ROWS_A_GROUP:
            self._write_groups(ROWS_A_GROUP)

    def _write_groups(self, least: int) -> None:
        """Write groups until fewer than `least` rows wait."""
        waiting = pa.concat_tables(self._waiting)
        while waiting.num_rows >= least:
            # Combine the chunks: pages of Parquet may end at chunk boundaries.
            group = waiting.slice(0, ROWS_A_GROUP).combine_chunks()
            self._writer.write_table(group, row_group_size=ROWS_A_GROUP)
            waiting = waiting.slice(ROWS_A_GROUP)
        self._waiting, self._n_waiting = [waiting], waiting.num_rows
