"""MUMmer's lines, PAF and Parquet against formatting one match at a time."""

import io

import numpy as np
import pyarrow.parquet as pq
import pytest

from bwarp.io import parquet_rows
from bwarp.io.fastx import read_sequences
from bwarp.io.parquet_rows import ParquetRows
from bwarp.io.table_writer import TableWriter
from bwarp.mems import match_text
from bwarp.mems.match_text import (
    COLUMNS,
    MummerLayout,
    write_columns,
    write_mummer,
    write_paf,
    write_table,
)
from bwarp.mems.query_text import STRANDS, Matches, take_matches
from tests.helpers.cases.mems_cases import reference_of

FASTA = b">q1 first words\nACGTACGTACGT\n>second\tx\nAC\n>3\n\n>gi|4|x\nACGTACGTACGTACGT\n"
NAMES = ["q1", "second", "3", "gi|4|x"]
LENGTHS = [12, 2, 0, 16]


@pytest.fixture
def batch(tmp_path):
    path = tmp_path / "q.fq"
    records = FASTA[1:-1].decode().split("\n>")
    with path.open("w") as file:
        for header, bases in (record.split("\n") for record in records):
            file.write(f"@{header}\n{bases}\n+\n{'I' * len(bases)}\n")
    # The last record of a FASTA file would be a separate batch.
    batches = list(read_sequences(path))
    assert len(batches) == 1
    return batches[0]


def random_matches(n_strands, contig_lengths):
    rng = np.random.default_rng(1)
    rows = []
    for query in sorted(rng.integers(0, 4 * n_strands, 40)):
        length = LENGTHS[query // n_strands]
        if length:
            start = int(rng.integers(0, length))
            rows.append(
                (query, start, rng.integers(0, sum(contig_lengths)), rng.integers(1, length + 1))
            )
    return Matches(*np.array(rows, np.uint32).T)


def blocks_of(matches, size):
    return (take_matches(matches, slice(i, i + size)) for i in range(0, matches.n, size))


def contigs_of(n_contigs):
    lengths = [1000, 7, 123456][:n_contigs]
    return reference_of([np.zeros(length, np.uint8) for length in lengths]), lengths


def rows_of(matches, strands, contig_lengths):
    """Return record, strand, query start, contig, position and length of each match."""
    starts = np.cumsum([0, *contig_lengths])
    for query, start, position, length in zip(
        matches.queries, matches.query_starts, matches.reference_starts, matches.lengths,
        strict=True,
    ):  # fmt: skip
        contig = int(np.searchsorted(starts, int(position), side="right")) - 1
        record, strand = int(query) // len(strands), strands[int(query) % len(strands)]
        yield record, strand, int(start), contig, int(position) - int(starts[contig]), int(length)


def written(write, threads, blocks, *arguments):
    """Return the text of blocks of matches, which are passed on as they are."""
    parts = []
    with TableWriter(parts.append, threads) as writer:
        passed = list(write(writer, iter(blocks), *arguments))
    assert passed == blocks
    return b"".join(bytes(part) for part in parts).decode()


@pytest.mark.parametrize("size", [1000, 7, 1])
@pytest.mark.parametrize("strands", STRANDS.values())
@pytest.mark.parametrize("n_contigs", [1, 3])
def test_mummer(batch, monkeypatch, n_contigs, strands, size):
    monkeypatch.setattr(match_text, "RANGE", size)
    reference, contig_lengths = contigs_of(n_contigs)
    matches = random_matches(len(strands), contig_lengths)
    for number, (forward, four, lengths) in enumerate(np.ndindex(2, 2, 2)):
        layout = MummerLayout(strands, bool(forward), bool(four), bool(lengths))
        rows = list(rows_of(matches, strands, contig_lengths))
        expected = []
        for record, name in enumerate(NAMES):
            for strand in strands:
                header = f"> {name}" + " Reverse" * strand
                expected.append(header + f"  Len = {LENGTHS[record]}" * lengths)
                for row_record, row_strand, start, contig, at, length in rows:
                    if (row_record, row_strand) == (record, strand):
                        if forward and strand:
                            start = LENGTHS[record] - start - 1
                        line = f"{at + 1:8}  {start + 1:8}  {length:8}"
                        if four or n_contigs > 1:
                            line = f"  {f'contig{contig}':8} {line}"
                        expected.append(line)
        blocks = list(blocks_of(matches, size))
        found = written(write_mummer, 1 + number % 2, blocks, batch, reference, layout)
        assert found.splitlines() == expected


def test_mummer_without_matches(batch):
    reference, _ = contigs_of(1)
    lines = written(write_mummer, 1, [], batch, reference, MummerLayout((0,)))
    assert lines == "> q1\n> second\n> 3\n> gi|4|x\n"


@pytest.mark.parametrize("strands", STRANDS.values())
def test_paf(batch, monkeypatch, strands):
    monkeypatch.setattr(match_text, "RANGE", 7)
    reference, contig_lengths = contigs_of(3)
    matches = random_matches(len(strands), contig_lengths)
    expected = ""
    for record, strand, start, contig, at, length in rows_of(matches, strands, contig_lengths):
        if strand:
            start = LENGTHS[record] - start - length
        expected += (
            f"{NAMES[record]}\t{LENGTHS[record]}\t{start}\t{start + length}\t{'+-'[strand]}\t"
            f"contig{contig}\t{contig_lengths[contig]}\t{at}\t{at + length}\t{length}\t"
            f"{length}\t255\tcg:Z:{length}=\n"
        )
    # A random match may end before its query begins, where no number is correct.
    fits = [start >= 0 for start in starts_of(matches, strands)]
    expected = "".join(
        line for line, fit in zip(expected.splitlines(True), fits, strict=True) if fit
    )
    matches = take_matches(matches, np.array(fits))
    blocks = list(blocks_of(matches, 9))
    assert written(write_paf, 2, blocks, batch, reference, strands) == expected


def test_table(batch, monkeypatch):
    monkeypatch.setattr(match_text, "RANGE", 7)
    reference, contig_lengths = contigs_of(3)
    matches = random_matches(2, contig_lengths)
    # A random match may end before its query begins, where no number is correct.
    matches = take_matches(matches, np.array([start >= 0 for start in starts_of(matches, (0, 1))]))
    expected = "".join(
        f"{NAMES[record]}\t{LENGTHS[record] - start - length if strand else start}\t"
        f"{'+-'[strand]}\tcontig{contig}\t{at}\t{length}\n"
        for record, strand, start, contig, at, length in rows_of(matches, (0, 1), contig_lengths)
    )
    blocks = list(blocks_of(matches, 9))
    assert written(write_table, 2, blocks, batch, reference, (0, 1)) == expected


def starts_of(matches, strands):
    for record, strand, start, _, _, length in rows_of(matches, strands, [1000, 7, 123456]):
        yield LENGTHS[record] - start - length if strand else start


@pytest.mark.parametrize("size", [1000, 3])
def test_parquet(batch, monkeypatch, size):
    monkeypatch.setattr(parquet_rows, "ROWS_A_GROUP", 8)
    reference, contig_lengths = contigs_of(3)
    matches = random_matches(2, contig_lengths)
    file = io.BytesIO()
    monkeypatch.setattr(match_text, "COLUMN_RANGE", size)
    blocks = list(blocks_of(matches, 2 * size))
    with (
        ParquetRows(file, COLUMNS, "int64", reference.names) as table,
        TableWriter(table.write, 2) as writer,
    ):
        assert list(write_columns(writer, iter(blocks), batch, reference, (0, 1))) == blocks
    written = pq.ParquetFile(io.BytesIO(file.getvalue()))
    sizes = [written.metadata.row_group(i).num_rows for i in range(written.num_row_groups)]
    assert set(sizes[:-1]) == {8}
    expected = [
        (
            NAMES[record],
            LENGTHS[record] - start - length if strand else start,
            "+-"[strand],
            f"contig{contig}",
            at,
            length,
        )
        for record, strand, start, contig, at, length in rows_of(matches, (0, 1), contig_lengths)
    ]
    assert [tuple(row.values()) for row in written.read().to_pylist()] == expected
