"""Tables of seeds: formats, further tables, when they appear, and completeness."""

import gzip
import hashlib

import numpy as np
import pyarrow.parquet as pq
import pytest

import bwarp.seeding.find as find
import bwarp.seeding.find_cpu as find_cpu
from bwarp.io import parquet_rows, table_writer
from bwarp.io.fastx import read_sequences
from bwarp.io.names import query_names
from bwarp.seeding import seed_tables
from bwarp.seeding.find import find_in_passes, kmer_batches
from bwarp.seeding.hits import SeedOptions
from bwarp.seeding.seed_tables import open_seed_tables, sibling
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.oracles.seed_hits_oracle import (
    GENOMES,
    hits_by_comparing,
    index_of_genome,
    kmers_like,
    random_bases,
)


def write_tables(path, index, queries, options, k=None, step=1, chunk_bytes=1 << 20, threads=1):
    """Find and write all seeds of a file, as the program does; return the counts."""
    with open_seed_tables(path, index.reference, threads) as tables:
        for sequences in read_sequences(queries, chunk_bytes=chunk_bytes):
            names = query_names(sequences)
            for kmers in kmer_batches(sequences, k, step):
                tables.add_kmers(kmers, names)
                for found in find_in_passes(index, kmers, options, "cpu", threads):
                    for _ in tables.add_found(found, kmers, names):
                        pass
    return tables.counts


def md5_of_tables(path) -> list[str]:
    paths = [path, sibling(path, "over"), sibling(path, "skipped")]
    return [hashlib.md5(p.read_bytes()).hexdigest() for p in paths]


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    """Write reads of the genome with repeats, some with N, some short."""
    path = tmp_path_factory.mktemp("reads") / "reads.fa"
    genome = b"".join(GENOMES["repeats"])
    rng = np.random.default_rng(8)
    with path.open("w") as file:
        for i in range(120):
            start, length = int(rng.integers(0, len(genome) - 70)), int(rng.integers(5, 70))
            read = bytearray(genome[start : start + length])
            if i % 7 == 0:
                read[int(rng.integers(length))] = ord("N")
            file.write(f">read{i} of many\n{read.decode()}\n")
    return path


def test_the_same_bytes_however_the_work_is_divided(monkeypatch, reads, tmp_path):
    index = index_of_genome("repeats")
    # Passes of one or three k-mers are slow.
    few = tmp_path / "few.fa"
    few.write_text("".join(reads.read_text().splitlines(keepends=True)[:80]))
    monkeypatch.setattr(parquet_rows, "ROWS_A_GROUP", 300)
    for ending in ("tsv", "bed.gz", "parquet"):
        for k, step in ((None, 1), (11, 2)):
            digests = set()
            for threads, chunk_bytes, windows, hits, intervals in (
                (1, 1 << 20, 1 << 20, 10**6, 10**6),
                (2, 1000, 50, 90, 500),
                (4, 150, 3, 1, 20),
            ):
                monkeypatch.setattr(find, "WINDOWS_AT_ONCE", windows)
                monkeypatch.setattr(find_cpu, "HITS_AT_ONCE", hits)
                monkeypatch.setattr(seed_tables, "_PARQUET_ROWS", hits)
                monkeypatch.setattr(table_writer, "ROWS_AT_ONCE", hits)
                monkeypatch.setitem(find._INTERVALS_AT_ONCE, "cpu", intervals)
                path = tmp_path / f"hits.{ending}"
                options = SeedOptions(1, 40)
                counts = write_tables(path, index, few, options, k, step, chunk_bytes, threads)
                digests.add(tuple(md5_of_tables(path)))
            assert len(digests) == 1, (ending, k)
    assert counts.hits > 900


def test_formats_have_the_same_content(reads, tmp_path):
    index = index_of_genome("repeats")
    options = SeedOptions(1, 0)
    for ending in ("tsv", "tsv.gz", "bed", "bed.gz", "parquet"):
        counts = write_tables(tmp_path / f"hits.{ending}", index, reads, options, 10, 5)
    rows = [line.split("\t") for line in (tmp_path / "hits.tsv").read_text().splitlines()]
    assert rows[0] == ["query", "kmer_start", "strand", "contig", "position", "mismatches"]
    assert len(rows) == counts.hits + 1 > 1000
    compressed = gzip.decompress((tmp_path / "hits.tsv.gz").read_bytes())
    assert compressed == (tmp_path / "hits.tsv").read_bytes()
    bed = [line.split("\t") for line in (tmp_path / "hits.bed").read_text().splitlines()]
    for row, line in zip(rows[1:], bed, strict=True):
        query, start, strand, contig, position, mismatches = row
        name = query if start == "0" else f"{query}:{start}"
        assert line == [contig, position, str(int(position) + 10), name, mismatches, strand]
    table = pq.read_table(tmp_path / "hits.parquet")
    assert table.column_names == rows[0]
    columns = [map(str, table[name].to_pylist()) for name in rows[0]]
    assert [list(row) for row in zip(*columns, strict=True)] == rows[1:]


def test_every_kmer_is_somewhere(reads, tmp_path):
    """Each k-mer has hits, is over the limit, is skipped, or has no hit."""
    index = index_of_genome("repeats")
    path = tmp_path / "hits.tsv"
    for k, step, mismatches, max_hits in ((None, 1, 0, 1), (9, 1, 1, 20), (30, 7, 2, 3)):
        counts = write_tables(path, index, reads, SeedOptions(mismatches, max_hits), k, step)
        tables = [path, sibling(path, "over"), sibling(path, "skipped")]
        rows = [[line.split("\t") for line in t.read_text().splitlines()[1:]] for t in tables]
        hits, over, skipped = ({tuple(row[:2]) for row in table} for table in rows)
        assert len(hits | over | skipped) == len(hits) + len(over) + len(skipped)
        wanted = set()
        kmers = {}
        for i, line in enumerate(reads.read_text().splitlines()[1::2]):
            last = len(line) - k if k else 0
            for start in range(0, max(last, 0) + 1, step):
                wanted.add((f"read{i}", str(start)))
                kmer = line[start : start + k] if k else line
                if 8 <= len(kmer) <= 64 and len(kmer) >= (k or 0) and "N" not in kmer:
                    kmers[f"read{i}", str(start)] = kmer.encode()
        assert wanted - skipped == set(kmers)
        assert (counts.searched, counts.skipped) == (len(kmers), len(skipped))
        assert (counts.with_hits, counts.over) == (len(hits), len(over))
        assert counts.without_hits == len(kmers) - len(hits) - len(over)
        expected = dict.fromkeys(kmers, 0)
        names = list(kmers)
        for hit in hits_by_comparing(GENOMES["repeats"], list(kmers.values()), mismatches):
            expected[names[hit[0]]] += 1
        assert {name for name, n in expected.items() if 0 < n <= max_hits} == hits
        assert {tuple(row[:2]): int(row[2]) for row in rows[1]} == {
            name: n for name, n in expected.items() if n > max_hits
        }
        assert counts.hits == len(rows[0])


def test_many_queries_and_hits_in_parquet(monkeypatch, tmp_path):
    monkeypatch.setattr(parquet_rows, "ROWS_A_GROUP", 64)
    genome = [random_bases(500, 1), random_bases(300, 2)]
    kmers = kmers_like(genome, 8, 0, 300, 3)
    queries = tmp_path / "q.fa"
    queries.write_text("".join(f">q{i}\n{kmer.decode()}\n" for i, kmer in enumerate(kmers)))
    counts = write_tables(tmp_path / "hits.parquet", index_of(genome), queries, SeedOptions())
    file = pq.ParquetFile(tmp_path / "hits.parquet")
    groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    assert sum(groups) == counts.hits == len(hits_by_comparing(genome, kmers, 0))
    assert set(groups[:-1]) == {64}


def test_no_hits_in_any_format(tmp_path):
    (tmp_path / "q.fa").write_text(">q\nACGTACGTNN\n")
    for ending in ("tsv", "bed", "parquet"):
        path = tmp_path / f"hits.{ending}"
        write_tables(path, index_of_genome("random"), tmp_path / "q.fa", SeedOptions())
    assert (tmp_path / "hits.tsv").read_text().count("\n") == 1
    assert (tmp_path / "hits.bed").read_text() == ""
    assert pq.read_table(tmp_path / "hits.parquet").num_rows == 0
    assert (tmp_path / "hits.over.tsv").read_text() == "query\tkmer_start\thits\n"
    assert (tmp_path / "hits.skipped.tsv").read_text() == (
        "query\tkmer_start\treason\nq\t0\tambiguous base\n"
    )


@pytest.mark.parametrize("ending", ["tsv", "bed.gz", "parquet"])
def test_nothing_appears_when_something_goes_wrong(ending, reads, tmp_path):
    index = index_of_genome("repeats")

    def stop_in_the_middle():
        with open_seed_tables(tmp_path / f"hits.{ending}", index.reference) as tables:
            sequences = next(read_sequences(reads))
            for kmers in kmer_batches(sequences, 8, 1):
                tables.add_kmers(kmers, query_names(sequences))
                for found in find_in_passes(index, kmers, SeedOptions(0, 0), "cpu"):
                    for _ in tables.add_found(found, kmers, query_names(sequences)):
                        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_in_the_middle()
    assert list(tmp_path.iterdir()) == []


def test_further_tables():
    names = {"a.tsv": "a", "x/a.b.tsv.gz": "x/a.b", "a.bed.gz": "a", "a.parquet": "a"}
    for path, stem in names.items():
        assert str(sibling(path, "over")) == f"{stem}.over.tsv"
