"""Rows of hits as text and Parquet have the content of the blocks."""

import numpy as np
import pyarrow as pa

from bwarp.composition.hit_text import (
    bed_lines,
    hit_schema,
    hit_table,
    rows_of_block,
    tsv_header,
    tsv_lines,
)
from bwarp.composition.references import HitBlock, join_regions
from bwarp.io.names import Names

QUERIES = ["q0", "a-longer-name", "q2", "ü"]
REFERENCES = ["r0", "empty", "chr1"]
STARTS = np.array([0, 10, 10, 2_000_000_010])


def text_of(lines_of, n_rows, size=100):
    parts = [lines_of(at, min(at + size, n_rows)) for at in range(0, n_rows, size)]
    return b"".join(part.tobytes() for part in parts).decode()


def rows(block, most):
    return list(rows_of_block(block, STARTS, most))


def whole_block():
    """Return a block: queries 1 and 3 share the first group's hits, query 2 has the second's."""
    return HitBlock(
        7,
        np.array([1, 2, 3]),
        np.array([0, 1, 0]),
        np.array([0, 4, 5]),
        np.array([0, 3, 10, 2_000_000_002, 9], np.uint32),
        np.array([0, 2, 1, 3, 6], np.uint16),
    )


HITS = [
    ("r0", 0, 0, "1.000000", 1000),
    ("r0", 3, 2, "0.714285", 714),
    ("chr1", 0, 1, "0.857142", 857),
    ("chr1", 1_999_999_992, 3, "0.571428", 571),
]
LAST = ("r0", 9, 6, "0.142857", 142)
EXPECTED = [
    *(("a-longer-name", *hit) for hit in HITS),
    ("q2", *LAST),
    *(("ü", *hit) for hit in HITS),
]


def test_tsv_has_a_line_per_hit_for_any_pieces_and_ranges():
    expected = "".join(f"{q}\t{r}\t{p}\t{d}\t{s}\n" for q, r, p, d, s, _ in EXPECTED)
    names = Names.of(QUERIES), Names.of(REFERENCES)
    for most in (1, 2, 4, 100):
        for size in (1, 3, 100):
            pieces = rows(whole_block(), most)
            texts = [text_of(tsv_lines(one, *names), one.queries.size, size) for one in pieces]
            assert "".join(texts) == expected
    assert tsv_header(False) == b"query\treference\tposition\tdistance\tsimilarity\n"


def test_bed_has_the_window_and_a_score_of_a_thousand():
    names = Names.of(QUERIES), Names.of(REFERENCES)
    (piece,) = rows(whole_block(), 100)
    expected = "".join(f"{r}\t{p}\t{p + 7}\t{q}\t{c}\t.\n" for q, r, p, _, _, c in EXPECTED)
    assert text_of(bed_lines(piece, *names), piece.queries.size) == expected


def test_regions_have_ends_and_windows():
    given = HitBlock(
        5,
        np.array([0]),
        np.array([0]),
        np.array([0, 4]),
        np.array([1, 2, 3, 12], np.uint32),
        np.array([2, 1, 2, 0], np.uint16),
    )
    (piece,) = rows(join_regions(given, STARTS), 100)
    names = Names.of(QUERIES), Names.of(REFERENCES)
    assert text_of(tsv_lines(piece, *names), piece.queries.size) == (
        "q0\tr0\t1\t8\t3\t1\t0.800000\nq0\tchr1\t2\t7\t1\t0\t1.000000\n"
    )
    assert text_of(bed_lines(piece, *names), piece.queries.size) == (
        "r0\t1\t8\tq0\t800\t.\nchr1\t2\t7\tq0\t1000\t.\n"
    )
    assert tsv_header(True) == b"query\treference\tstart\tend\twindows\tdistance\tsimilarity\n"
    table = hit_table(piece, pa.array(QUERIES), pa.array(REFERENCES))
    assert table.to_pydict() == {
        "query": ["q0", "q0"],
        "reference": ["r0", "chr1"],
        "start": [1, 2],
        "end": [8, 7],
        "windows": [3, 1],
        "distance": [1, 0],
        "similarity": [0.8, 1.0],
    }


def test_parquet_says_what_tsv_says():
    (piece,) = rows(whole_block(), 100)
    table = hit_table(piece, pa.array(QUERIES), pa.array(REFERENCES))
    assert table.schema == hit_schema(False)
    assert [tuple(row.values())[:4] for row in table.to_pylist()] == [row[:4] for row in EXPECTED]
    assert table["similarity"].to_pylist() == [1 - row[3] / 7 for row in EXPECTED]


def test_no_hits_are_no_rows():
    empty = np.zeros(0, np.uint32)
    given = HitBlock(
        3, np.array([0]), np.array([0]), np.array([0, 0]), empty, empty.astype(np.uint16)
    )
    assert rows(given, 10) == []
