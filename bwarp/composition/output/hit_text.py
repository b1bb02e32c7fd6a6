"""Rows of hits as lines of text, TSV or BED, written by jitted code into one array of bytes.

    TSV          query  reference  position    distance  similarity
    TSV, joined  query  reference  start  end  windows  distance  similarity
    BED          reference  start  end  query  score  .           score = 1000 x similarity

Positions are 0-based, ends exclusive; a joined row gives its nearest window's distance.
"""

import numpy as np

from bwarp.composition.output.hit_rows import HitRows
from bwarp.composition.similarity import format_similarity
from bwarp.io.names import Names, put_name
from bwarp.io.put_text import MOST_DIGITS, put_field
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range

__all__ = ["COUNT_HEADER", "bed_lines", "tsv_header", "tsv_lines"]

#: The first line of a TSV of how many windows queries hit.
COUNT_HEADER = b"query\tlength\thits\n"

_TAB = 9
_NEWLINE = 10
_HITS = 0
_REGIONS = 1
_BED = 2


def tsv_header(joined: bool) -> bytes:
    """The first line of a TSV of hits, or of regions."""
    if joined:
        return b"query\treference\tstart\tend\twindows\tdistance\tsimilarity\n"
    return b"query\treference\tposition\tdistance\tsimilarity\n"


def tsv_lines(rows: HitRows, queries: Names, references: Names, threads: int):
    """The rows as TSV: a list of uint8 arrays to be written one after the other."""
    tails = [
        f"{distance}\t{format_similarity(distance, rows.length)}\n"
        for distance in range(int(rows.distances.max(initial=0)) + 1)
    ]
    return _lines(rows, queries, references, tails, _REGIONS if rows.joined else _HITS, threads)


def bed_lines(rows: HitRows, queries: Names, references: Names, threads: int):
    """The rows as BED6: a list of uint8 arrays to be written one after the other."""
    tails = [
        f"{1000 * (rows.length - distance) // rows.length}\t.\n"
        for distance in range(int(rows.distances.max(initial=0)) + 1)
    ]
    return _lines(rows, queries, references, tails, _BED, threads)


def _lines(rows, queries, references, tails, layout, threads):
    tail = Names.of(tails)
    room = queries.longest + references.longest + tail.longest + 3 * (MOST_DIGITS + 1) + 2

    def work(first, last):
        text = np.empty((last - first) * room, np.uint8)
        used = _write_lines(
            rows.queries, rows.references, rows.positions, rows.windows, rows.ends, rows.distances,
            queries, references, tail, layout, first, last, text,
        )  # fmt: skip
        return text[:used]

    return for_each_range(work, rows.queries.size, threads, smallest=1 << 14)


@compiled
def _put_column(text, at, names, number):
    at = put_name(text, at, names, number)
    text[at] = _TAB
    return at + 1


@compiled
def _write_lines(
    row_queries, row_references, positions, windows, ends, distances, queries, references, tails,
    layout, first, last, text,
):  # fmt: skip
    at = 0
    for row in range(first, last):
        if layout != _BED:
            at = _put_column(text, at, queries, row_queries[row])
        at = _put_column(text, at, references, row_references[row])
        at = put_field(text, at, positions[row], _TAB)
        if layout != _HITS:
            at = put_field(text, at, ends[row], _TAB)
        if layout == _REGIONS:
            at = put_field(text, at, windows[row], _TAB)
        if layout == _BED:
            at = _put_column(text, at, queries, row_queries[row])
        at = put_name(text, at, tails, distances[row])
    return at
