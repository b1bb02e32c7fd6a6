"""Matches as lines of a table: one row a match, 0-based positions on the forward strands."""

from collections.abc import Iterator

import numba
import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.mems.matches import Matches
from bwarp.mems.output.labels import labels_of, put_label, put_number, query_names
from bwarp.mems.packed_extension import segment_of
from bwarp.mems.query_text import REVERSE
from bwarp.reference import Reference
from bwarp.runtime.threads import for_each_range

__all__ = ["COLUMNS", "table_lines"]

#: The first line of a table.
COLUMNS = b"query\tquery_start\tstrand\tcontig\tposition\tlength\n"

_NEWLINE, _TAB = 10, 9
_NUMBER = 20  # the longest a number gets
_RANGE = 1 << 15  # matches a thread takes on at a time


def table_lines(
    blocks: Iterator[Matches],
    batch: SequenceBatch,
    reference: Reference,
    strands: tuple[int, ...],
    threads: int = 1,
) -> Iterator[np.ndarray]:
    """The rows of a batch's matches, in order.

    Yields
    ------
    lines : ndarray, dtype=uint8
        To be written one after the other.
    """
    names = query_names(batch)
    contigs = labels_of([name.encode() for name in reference.names])
    query_lengths = np.diff(batch.offsets)
    room = names.longest + contigs.longest + 3 * _NUMBER + len("\t\t+\t\t\t\n")
    for matches in blocks:

        def write(first: int, last: int, matches=matches):
            lines = np.empty((last - first) * room, np.uint8)
            used = _write_rows(
                matches.queries[first:last],
                matches.query_starts[first:last],
                matches.reference_starts[first:last],
                matches.lengths[first:last],
                names.text,
                names.edges,
                query_lengths,
                np.array(strands),
                contigs.text,
                contigs.edges,
                reference.contig_starts,
                lines,
            )
            return lines[:used]

        yield from for_each_range(write, len(matches), threads, smallest=_RANGE)


@numba.njit(cache=True, nogil=True)
def _write_rows(
    queries,
    query_starts,
    reference_starts,
    lengths,
    names,
    name_edges,
    query_lengths,
    strands,
    contigs,
    contig_edges,
    contig_starts,
    lines,
):
    at = 0
    for i in range(queries.size):
        record = np.int64(queries[i]) // strands.size
        reverse = strands[np.int64(queries[i]) % strands.size] == REVERSE
        length = np.int64(lengths[i])
        start = np.int64(query_starts[i])
        if reverse:
            start = query_lengths[record] - start - length
        contig = np.int64(segment_of(contig_starts, np.uint64(reference_starts[i])))
        at = put_label(lines, at, names, name_edges, record)
        lines[at] = _TAB
        at = put_number(lines, at + 1, start, 1)
        lines[at] = _TAB
        lines[at + 1] = 45 if reverse else 43
        lines[at + 2] = _TAB
        at = put_label(lines, at + 3, contigs, contig_edges, contig)
        lines[at] = _TAB
        at = put_number(lines, at + 1, np.int64(reference_starts[i]) - contig_starts[contig], 1)
        lines[at] = _TAB
        at = put_number(lines, at + 1, length, 1)
        lines[at] = _NEWLINE
        at += 1
    return at
