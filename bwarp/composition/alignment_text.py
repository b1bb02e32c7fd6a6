"""Write the alignments of a scan as TSV, BED or Parquet.

    TSV   query  reference  start  end  strand  score  edits  identity  cigar
    BED   reference  start  end  query  score  strand             score = 1000 x identity

Positions are 0-based, ends exclusive. The identity is the fraction of the columns of the alignment
with equal bases.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from bwarp.composition.alignments import WindowAlignments
from bwarp.composition.histogram import format_similarity
from bwarp.composition.hit_text import NAME

ALIGNMENT_HEADER = b"query\treference\tstart\tend\tstrand\tscore\tedits\tidentity\tcigar\n"

#: The columns of Parquet files.
ALIGNMENT_SCHEMA = pa.schema(
    [("query", NAME), ("reference", NAME), ("start", pa.int64()), ("end", pa.int64())]
    + [("strand", pa.string()), ("score", pa.int32()), ("edits", pa.int32())]
    + [("identity", pa.float64()), ("cigar", pa.string())]
)


def unnamed_columns(rows: WindowAlignments) -> tuple[np.ndarray, ...]:
    """Return the columns of `ALIGNMENT_SCHEMA` after the names of query and reference."""
    return (
        rows.starts, rows.ends, _strands_of(rows), rows.scores, rows.edits,
        rows.matches / rows.columns, rows.cigars,
    )  # fmt: skip


def _strands_of(rows: WindowAlignments) -> np.ndarray:
    return np.where(rows.reverse, "-", "+")


def alignment_lines(
    rows: WindowAlignments, queries: Sequence[str], references: Sequence[str]
) -> bytes:
    """Return the rows as TSV; `queries` and `references` are the names."""
    identities = map(_identity, rows.matches.tolist(), rows.columns.tolist())
    lines = zip(
        *_positions(rows, queries, references), rows.scores.tolist(), rows.edits.tolist(),
        identities, rows.cigars.tolist(), strict=True,
    )  # fmt: skip
    return "".join(
        f"{q}\t{r}\t{start}\t{end}\t{strand}\t{score}\t{edits}\t{identity}\t{cigar}\n"
        for q, r, start, end, strand, score, edits, identity, cigar in lines
    ).encode()


def alignment_bed_lines(
    rows: WindowAlignments, queries: Sequence[str], references: Sequence[str]
) -> bytes:
    """Return the rows as BED6; `queries` and `references` are the names."""
    scores = (1000 * rows.matches // rows.columns).tolist()
    lines = zip(*_positions(rows, queries, references), scores, strict=True)
    return "".join(
        f"{r}\t{start}\t{end}\t{q}\t{score}\t{strand}\n"
        for q, r, start, end, strand, score in lines
    ).encode()


def alignment_table(rows: WindowAlignments, queries: pa.Array, references: pa.Array) -> pa.Table:
    """Return the rows as a table; `queries` and `references` are the names, as string arrays."""
    columns = [
        pa.DictionaryArray.from_arrays(rows.queries.astype(np.int32), queries),
        pa.DictionaryArray.from_arrays(rows.references.astype(np.int32), references),
        *unnamed_columns(rows),
    ]
    return pa.Table.from_arrays(
        [
            column if isinstance(column, pa.Array) else pa.array(column, kind)
            for column, kind in zip(columns, ALIGNMENT_SCHEMA.types, strict=True)
        ],
        schema=ALIGNMENT_SCHEMA,
    )


def _positions(rows: WindowAlignments, queries, references) -> tuple:
    return (
        [queries[query] for query in rows.queries.tolist()],
        [references[reference] for reference in rows.references.tolist()],
        rows.starts.tolist(),
        rows.ends.tolist(),
        _strands_of(rows).tolist(),
    )


def _identity(matches: int, columns: int) -> str:
    return format_similarity(columns - matches, columns)
