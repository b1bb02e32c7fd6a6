"""Write hits as TSV, BED or Parquet; text is written by jitted code into one array of bytes.

    TSV          query  reference  position    distance  similarity
    TSV, joined  query  reference  start  end  windows  distance  similarity
    BED          reference  start  end  query  score  .           score = 1000 x similarity

Positions are 0-based, ends exclusive; a joined row has the distance of its nearest window.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bwarp.composition.histogram import format_similarity
from bwarp.composition.references import HitBlock
from bwarp.io.names import MOST_DIGITS, Names, put_field, put_name
from bwarp.runtime.compiled_code import compiled

# Hits as rows of a table: a query, a reference, a position, and a distance.


class HitRows(NamedTuple):
    """Consecutive rows of the table, all from queries of one length.

    Attributes
    ----------
    length : int
    queries, references : ndarray, shape=(n_rows,), dtype=int32
    positions : ndarray, shape=(n_rows,), dtype=int64
        0-based, in the reference.
    windows : ndarray, shape=(n_rows,), dtype=uint32
        The number of windows that the row joins.
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
        """Return the exclusive end of the last window of each row (dtype int64)."""
        return self.positions + self.windows - 1 + self.length


def rows_of_block(block: HitBlock, starts: np.ndarray, most: int = 1 << 20) -> Iterator[HitRows]:
    """Yield the rows of a block, by query, at most `most` at a time.

    Parameters
    ----------
    starts : ndarray, shape=(n_references + 1,), dtype=int64
        Where the references begin when concatenated.
    """
    left = int(np.diff(block.edges)[block.group_of_query].sum())
    joined = block.windows is not None
    if not joined:
        block = block._replace(windows=np.ones(1, np.uint32))
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
            joined,
        )
        at = _expand(block, starts, *at, rows)
        left -= n_rows
        yield rows


@compiled
def _expand(block, starts, query, row, rows):
    """Fill rows from a given row of a query on; return where to continue."""
    _, queries, group_of_query, edges, positions, distances, windows = block
    _, row_queries, row_references, row_positions, row_windows, row_distances, _ = rows
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
        # Usually the same reference as the previous row.
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


#: The header line of a TSV of hit counts.
COUNT_HEADER = b"query\tlength\thits\n"

_TAB = 9
_NEWLINE = 10
_HITS = 0
_REGIONS = 1
_BED = 2


def tsv_header(joined: bool) -> bytes:
    """Return the header line of a TSV of hits, or of regions."""
    if joined:
        return b"query\treference\tstart\tend\twindows\tdistance\tsimilarity\n"
    return b"query\treference\tposition\tdistance\tsimilarity\n"


def tsv_lines(rows: HitRows, queries: Names, references: Names) -> Callable[[int, int], np.ndarray]:
    """Return a function that formats a range of the rows as TSV: an array of bytes."""
    tails = [
        f"{distance}\t{format_similarity(distance, rows.length)}\n"
        for distance in range(int(rows.distances.max(initial=0)) + 1)
    ]
    return _lines(rows, queries, references, tails, _REGIONS if rows.joined else _HITS)


def bed_lines(rows: HitRows, queries: Names, references: Names) -> Callable[[int, int], np.ndarray]:
    """Return a function that formats a range of the rows as BED6: an array of bytes."""
    tails = [
        f"{1000 * (rows.length - distance) // rows.length}\t.\n"
        for distance in range(int(rows.distances.max(initial=0)) + 1)
    ]
    return _lines(rows, queries, references, tails, _BED)


def _lines(rows, queries, references, tails, layout):
    tail = Names.of(tails)
    room = queries.longest + references.longest + tail.longest + 3 * (MOST_DIGITS + 1) + 2

    def lines_of(first: int, last: int) -> np.ndarray:
        text = np.empty((last - first) * room, np.uint8)
        used = _write_lines(rows, queries, references, tail, layout, first, last, text)
        return text[:used]

    return lines_of


@compiled
def _put_column(text, at, names, number):
    at = put_name(text, at, names, number)
    text[at] = _TAB
    return at + 1


@compiled
def _write_lines(rows, queries, references, tails, layout, first, last, text):
    length, row_queries, row_references, positions, windows, distances, _ = rows
    at = 0
    for row in range(first, last):
        if layout != _BED:
            at = _put_column(text, at, queries, row_queries[row])
        at = _put_column(text, at, references, row_references[row])
        at = put_field(text, at, positions[row], _TAB)
        if layout != _HITS:
            end = positions[row] + np.int64(windows[row]) - 1 + length
            at = put_field(text, at, end, _TAB)
        if layout == _REGIONS:
            at = put_field(text, at, windows[row], _TAB)
        if layout == _BED:
            at = _put_column(text, at, queries, row_queries[row])
        at = put_name(text, at, tails, distances[row])
    return at


# Hits as Parquet: names are dictionary-encoded, so that a row takes a few bytes.


#: The type of columns of names.
NAME = pa.dictionary(pa.int32(), pa.string())


def string_array(names: Sequence[str]) -> pa.Array:
    return pa.array(names, pa.string())


def hit_schema(joined: bool) -> pa.Schema:
    """Return the columns of a table of hits, or of regions."""
    where = [("position", pa.int64())]
    if joined:
        where = [("start", pa.int64()), ("end", pa.int64()), ("windows", pa.uint32())]
    return pa.schema(
        [("query", NAME), ("reference", NAME), *where]
        + [("distance", pa.uint16()), ("similarity", pa.float64())]
    )


def hit_table(rows: HitRows, queries: pa.Array, references: pa.Array) -> pa.Table:
    """Return the rows as a table; `queries` and `references` are the names, as string arrays."""
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
    """Return a table of the number of hits per query."""
    return pa.table({"query": queries, "length": lengths, "hits": hits})
