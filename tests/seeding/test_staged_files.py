"""The steps of a staged run as functions: parts, rows, order, and hits as in one run."""

import numpy as np
import pytest

import bwarp.seeding.find as find
from bwarp.index.locate_cpu import locate
from bwarp.io.chunk_files import open_chunk_file, write_chunk_file
from bwarp.io.names import Names
from bwarp.seeding import staged_files
from bwarp.seeding.find import find_in_passes, kmer_batches
from bwarp.seeding.find_cpu import hits_in_order, sa_rows_of, search_in_passes
from bwarp.seeding.hits import SeedOptions
from bwarp.seeding.intervals import Intervals, whole_kmers
from bwarp.seeding.staged_files import (
    kmers_of_chunk,
    read_found,
    write_intervals,
    write_kmers,
    write_located,
    write_sampled,
)
from tests.helpers.oracles.seed_hits_oracle import (
    GENOMES,
    batch_of,
    hits_of_parts,
    index_of_genome,
    kmers_like,
)


def intervals_of(kmers, n_rows) -> Intervals:
    n = len(kmers)
    return Intervals(
        np.array(kmers, np.uint32),
        np.zeros(n, np.uint8),
        np.arange(100, 100 + 10 * n, 10).astype(np.uint32),
        np.array(n_rows, np.uint32),
        np.zeros(n, np.uint8),
    )


def test_rows():
    intervals = intervals_of([0, 0, 2], [3, 1, 2])
    rows = sa_rows_of(intervals)
    assert rows.dtype == np.uint32
    assert rows.tolist() == [100, 101, 102, 110, 120, 121]
    assert sa_rows_of(intervals_of([], [])).size == 0


@pytest.mark.parametrize(
    ("at_once", "expected"),
    [
        (1, [[0], [1, 1], [4], [5], [9, 9, 9]]),
        (5, [[0, 1, 1], [4], [5], [9, 9, 9]]),
        (9, [[0, 1, 1], [4, 5], [9, 9, 9]]),
        (13, [[0, 1, 1, 4, 5], [9, 9, 9]]),
        (100, [[0, 1, 1, 4, 5, 9, 9, 9]]),
    ],
)
def test_parts_are_whole_kmers(at_once, expected):
    intervals = intervals_of([0, 1, 1, 4, 5, 9, 9, 9], [1, 2, 2, 7, 1, 3, 3, 3])
    assert [part.kmers.tolist() for part in whole_kmers(intervals, at_once)] == expected
    assert list(whole_kmers(intervals_of([], []), 9)) == []


def batches(k, step):
    kmers = [kmers_like(GENOMES["repeats"], 8 + 5 * i, 1, 4, i)[-1] for i in range(11)]
    queries = {f"query{i}": kmer for i, kmer in enumerate([*kmers, b"AC" * 20, b"ACGTN", b""])}
    sequences = batch_of(queries)
    names = Names.of(list(queries))
    return [(batch, names) for batch in kmer_batches(sequences, k, step)]


@pytest.mark.parametrize("form", ["intervals", "sampled", "hits"])
@pytest.mark.parametrize(("k", "step"), [(None, 1), (9, 2)])
def test_staged_is_as_in_one(monkeypatch, tmp_path, form, k, step):
    monkeypatch.setattr(find, "WINDOWS_AT_ONCE", 20)
    monkeypatch.setattr(staged_files, "HITS_AT_ONCE", 30)
    monkeypatch.setitem(find._INTERVALS_AT_ONCE, "cpu", 300)
    index = index_of_genome("repeats")
    for options in (SeedOptions(1, 25), SeedOptions(0, 0), SeedOptions(2, 0, "backtracking")):
        with write_chunk_file(tmp_path / "kmers", holds="k-mers") as writer:
            for kmers, names in batches(k, step):
                write_kmers(writer, kmers, names)
        with (
            open_chunk_file(tmp_path / "kmers", "k-mers") as reader,
            write_chunk_file(tmp_path / "seeds", holds="seeds") as writer,
        ):
            for _, arrays in reader:
                kmers, names = kmers_of_chunk(arrays)
                write_kmers(writer, kmers, names)
                if form == "hits":
                    for found in find_in_passes(index, kmers, options, "cpu"):
                        write_located(writer, found)
                    continue
                for found in search_in_passes(index, kmers, options, 2):
                    if form == "sampled":
                        write_sampled(writer, found, index, 2)
                    else:
                        write_intervals(writer, found)
        assert outcome(staged(tmp_path / "seeds", index), index) == outcome(
            in_one(batches(k, step), index, options), index
        )


def staged(path, index):
    with open_chunk_file(path, "seeds") as reader:
        yield from read_found(reader, index)


def in_one(batches, index, options):
    for kmers, names in batches:
        yield kmers, names, None
        for found in find_in_passes(index, kmers, options, "cpu"):
            yield kmers, names, found


def outcome(found, index) -> tuple[list, list, list]:
    """What is skipped, over and hit, with names for numbers."""
    skipped, over, hits = [], [], []
    for kmers, names, seeds in found:
        if seeds is None:
            skipped += [
                (names.name(query), start, reason) for query, start, reason in kmers.skipped
            ]
            continue

        def called(kmer, kmers=kmers, names=names):
            return (
                names.name(kmers.queries[kmer]),
                int(kmers.starts[kmer]),
                int(kmers.lengths[kmer]),
            )

        counts = zip(seeds.over_kmers, seeds.over_counts.tolist(), strict=True)
        over += [(*called(kmer), count) for kmer, count in counts]
        hits += [(*called(hit[0]), *hit[1:]) for hit in hits_of_parts(seeds.hits, index.reference)]
    return skipped, over, hits


def test_hits_in_order():
    index = index_of_genome("gaps")
    (batch,) = kmer_batches(batch_of({"a": b"ACGTACGT", "b": b"CGTACGTA", "c": b"ACGTTGCA"}))
    (found,) = search_in_passes(index, batch, SeedOptions(2, 0))
    positions = locate(index, sa_rows_of(found.intervals))
    hits = hits_in_order(found.intervals, positions, index.reference)
    expected = hits_of_parts(
        [part for f in find_in_passes(index, batch, SeedOptions(2, 0), "cpu") for part in f.hits],
        index.reference,
    )
    assert hits_of_parts([hits], index.reference) == expected
    assert [a.dtype for a in vars(hits).values()] == [np.uint32, np.uint8, np.uint32, np.uint8]
