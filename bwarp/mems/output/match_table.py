"""Matches as lines of a table: one row a match, 0-based positions on the forward strands."""

from collections.abc import Iterator

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.io.names import Names, put_name
from bwarp.io.put_text import MOST_DIGITS, put_field
from bwarp.mems.matches import Matches
from bwarp.mems.output.match_rows import match_rows, names_for, row_of
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled

__all__ = ["COLUMNS", "table_lines"]

#: The first line of a table.
COLUMNS = b"query\tquery_start\tstrand\tcontig\tposition\tlength\n"

_NEWLINE, _TAB = 10, 9


def table_lines(
    blocks: Iterator[Matches],
    batch: SequenceBatch,
    reference: Reference,
    strands: tuple[int, ...],
    threads: int = 1,
) -> Iterator[np.ndarray]:
    """The rows of a batch's matches, in order, as `match_rows` gives them."""
    contigs = Names.of(reference.names)
    room = 3 * MOST_DIGITS + len("\t\t+\t\t\t\n")
    return match_rows(
        _write_rows, room, blocks, names_for(batch, reference, contigs, strands), threads
    )


@compiled
def _write_rows(matches, named, lines):
    at = 0
    for i in range(matches.queries.size):
        record, start, length, reverse, contig, position = row_of(matches, named, i)
        at = put_name(lines, at, named.queries, record)
        lines[at] = _TAB
        at = put_field(lines, at + 1, start, _TAB)
        lines[at] = 45 if reverse else 43
        lines[at + 1] = _TAB
        at = put_name(lines, at + 2, named.contigs, contig)
        lines[at] = _TAB
        at = put_field(lines, at + 1, position, _TAB)
        at = put_field(lines, at, length, _NEWLINE)
    return at
