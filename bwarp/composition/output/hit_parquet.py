"""Rows of hits as Parquet: names as dictionaries, so that a row costs a few bytes."""

import numpy as np
import pyarrow as pa

from bwarp.composition.output.hit_rows import HitRows

__all__ = ["count_table", "hit_schema", "hit_table"]

_NAME = pa.dictionary(pa.int32(), pa.string())


def hit_schema(joined: bool) -> pa.Schema:
    """The columns of a table of hits, or of regions."""
    where = [("position", pa.int64())]
    if joined:
        where = [("start", pa.int64()), ("end", pa.int64()), ("windows", pa.uint32())]
    return pa.schema(
        [("query", _NAME), ("reference", _NAME), *where]
        + [("distance", pa.uint16()), ("similarity", pa.float64())]
    )


def hit_table(rows: HitRows, queries: pa.Array, references: pa.Array) -> pa.Table:
    """The rows as a table; `queries` and `references` are the names, as string arrays."""
    where = [rows.positions]
    if rows.joined:
        where = [rows.positions, rows.ends, rows.windows]
    similarity = 1 - rows.distances / np.float64(rows.length)
    columns = [
        pa.DictionaryArray.from_arrays(rows.queries, queries),
        pa.DictionaryArray.from_arrays(rows.references, references),
        *where,
        rows.distances,
        similarity,
    ]
    return pa.Table.from_arrays(
        [column if isinstance(column, pa.Array) else pa.array(column) for column in columns],
        schema=hit_schema(rows.joined),
    )


def count_table(queries: list[str], lengths: np.ndarray, hits: np.ndarray) -> pa.Table:
    """How many windows each query hits, as a table."""
    return pa.table({"query": queries, "length": lengths, "hits": hits})
