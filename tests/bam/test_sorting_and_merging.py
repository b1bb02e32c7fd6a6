"""Sorting and merging BAM records: the order of samtools, with any memory and threads."""

import gzip
import threading

import numpy as np
import pysam
import pytest

from bwarp.bam import external_sort
from bwarp.bam import sort_keys as sort_order
from bwarp.bam.bgzf import read_bgzf
from bwarp.bam.external_sort import RecordSorter, whole_records
from bwarp.bam.header import BamHeader, header_bytes, merged_header, split_header, with_program
from bwarp.bam.sort_keys import NO_POSITION, sorted_order
from bwarp.bam.sorted_file import bam_file, indexed_bam_file
from bwarp.errors import InputError
from bwarp.io.compressed_files import read_binary_blocks
from tests.helpers.cases.small_bam_records import header_of, joined, random_record, record

CONTIGS = {"one": 2_000_000, "two": 300, "three": 70_000}


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(4)
    header = header_of(CONTIGS)
    return [random_record(rng, number, header) for number in range(6000)]


@pytest.mark.parametrize("largest", [0, 1, 2047, 2048, 1 << 40])
def test_sorted_order_is_stable(largest, monkeypatch):
    monkeypatch.setattr(sort_order, "_LEAST_A_PART", 300)
    monkeypatch.setattr(sort_order, "_SAMPLED", 4)
    rng = np.random.default_rng(largest)
    keys = rng.integers(0, largest + 1, 3000).astype(np.uint64)
    keys[rng.random(3000) < 0.1] = NO_POSITION
    for some in (keys, keys[:1], keys[:0], np.full(5, NO_POSITION)):
        for threads in (1, 3):
            assert np.array_equal(sorted_order(some, threads), np.argsort(some, kind="stable"))


def sort_into(folder, records, most_bytes, threads=1, parts=7):
    header = header_of(CONTIGS, "coordinate")
    with RecordSorter(folder, header.contig_starts, most_bytes, threads) as sorter:
        for part in np.array_split(np.arange(len(records)), parts):
            sorter.add(joined([records[number] for number in part]))
        with indexed_bam_file(folder / "out.bam", header, threads) as writer:
            sorter.finish(writer)


def sort(records, folder, most_bytes, threads, parts=7):
    """Return the bytes of a sorted file and of its index."""
    folder.mkdir()
    sort_into(folder, records, most_bytes, threads, parts)
    return (folder / "out.bam").read_bytes(), (folder / "out.bam.bai").read_bytes()


def test_order_is_that_of_samtools(records, tmp_path):
    header = header_of(CONTIGS)
    with (
        open(tmp_path / "in.bam", "wb") as file,
        bam_file(file, header, 2) as writer,
    ):
        for part in (records[:10], records[10:11], records[11:]):
            some = joined(part)
            writer.write(some.data, some.starts)
    found = gzip.decompress((tmp_path / "in.bam").read_bytes())
    assert found == header_bytes(header) + b"".join(data for data, _ in records)
    pysam.sort("--no-PG", "-o", str(tmp_path / "sorted.bam"), str(tmp_path / "in.bam"))
    expected = gzip.decompress((tmp_path / "sorted.bam").read_bytes())
    data, index = sort(records, tmp_path / "a", 1 << 24, 1)
    assert gzip.decompress(data) == expected
    # The bytes do not depend on memory or threads.
    total = sum(len(data) for data, _ in records)
    for number, most_bytes in enumerate((total // 2, total // 9)):
        folder = tmp_path / str(number)
        assert sort(records, folder, most_bytes, 1 + number, parts=11) == (data, index)
        assert (folder / "run1").exists()


def test_memory_for_a_record_at_a_time_is_enough(records, tmp_path):
    few = records[:300]  # each is written separately
    assert sort(few, tmp_path / "a", 1, 3, parts=11) == sort(few, tmp_path / "b", 1 << 24, 1)
    assert (tmp_path / "a/run1").exists()


@pytest.mark.parametrize("size", [0xFEFF, 0xFFFE])
def test_a_run_may_begin_with_a_byte_order_mark(size, tmp_path):
    """The sizes of such records equal the byte order marks of UTF-16."""
    filling = b"x" * (size + 5 - len(record("r0", 0, 0, 0, [], b"x")))
    long = [(record("r0", 0, at, 0, [], filling), 2 * at) for at in (9, 5)]
    assert int.from_bytes(long[0][0][:4], "little") == size
    assert sort(long, tmp_path / "runs", 1000, 1) == sort(long, tmp_path / "memory", 1 << 24, 1)


@pytest.mark.parametrize("threads", [1, 4, 64])
def test_merging_fits_into_memory(records, threads, tmp_path, monkeypatch):
    pieces = []

    def read(path, piece, its_threads):
        pieces.append(piece * (2 * its_threads if its_threads > 1 else 1))
        return read_binary_blocks(path, piece, its_threads)

    monkeypatch.setattr(external_sort, "read_binary_blocks", read)
    most = sum(len(data) for data, _ in records) // 2
    sort(records, tmp_path / "a", most, threads)
    assert len(pieces) > 1
    assert sum(pieces) <= most


def test_a_run_that_cannot_be_written_is_an_error(records, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/run0").mkdir()
    with pytest.raises(IsADirectoryError):
        sort_into(tmp_path / "a", records, 1)
    assert not list(tmp_path.glob("a/run[1-9]"))


def test_nothing_is_written_after_an_error(records, tmp_path, monkeypatch):
    """The folder of runs is removed at the end of a program."""
    begun, end = threading.Event(), threading.Event()

    def write_slowly(sorter, path, *_):
        begun.set()
        end.wait(30)
        path.write_bytes(b"a run")

    monkeypatch.setattr(RecordSorter, "_write_run", write_slowly)
    threading.Timer(0.3, end.set).start()

    def fail() -> None:
        starts = header_of(CONTIGS, "coordinate").contig_starts
        with RecordSorter(tmp_path, starts, 1, 2) as sorter:
            for record in records[:2]:
                sorter.add(joined([record]))
            assert begun.wait(30)
            raise ValueError("the reads end")

    with pytest.raises(ValueError, match="the reads end"):
        fail()
    assert (tmp_path / "run0").read_bytes() == b"a run"


def test_nothing_to_sort(tmp_path):
    data, _ = sort([], tmp_path / "a", 1 << 20, 1)
    assert gzip.decompress(data) == header_bytes(header_of(CONTIGS, "coordinate"))


def test_reading_a_file_back(records, tmp_path):
    sort(records, tmp_path / "a", 1 << 24, 1)
    path = tmp_path / "a" / "out.bam"
    with open(path, "rb") as file:
        header, blocks = split_header(path, read_bgzf(file, path, 2, blocks_at_once=1))
        assert header == header_of(CONTIGS, "coordinate")
        found = list(whole_records(path, blocks, header.contig_starts))
    assert len(found) > 3
    keys = np.concatenate([part.keys for part in found])
    assert np.array_equal(keys, np.sort([key for _, key in records]))


def test_merged_headers():
    lines = b"@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:c\tLN:9\n"
    one = BamHeader(lines + b"@RG\tID:1\tSM:s\n@PG\tID:x\n@CO\thello\n", (b"c",), (9,))
    two = BamHeader(lines + b"@RG\tSM:s\tID:2\n@RG\tID:1\tSM:s\n@PG\tID:x\n", (b"c",), (9,))
    together = b"@RG\tID:1\tSM:s\n@RG\tSM:s\tID:2\n@PG\tID:x\n@CO\thello\n"
    assert merged_header(["1", "2"], [one, two]) == BamHeader(lines + together, (b"c",), (9,))
    assert merged_header(["1"], [one]) == one
    for other, message in (
        (
            BamHeader(lines, (b"c",), (8,)),
            "2: its contigs differ from those of 1: map all units to",
        ),
        (BamHeader(b"@HD\tVN:1.6\n", (b"c",), (9,)), "2: not sorted: write it with bwarp map"),
        (
            BamHeader(lines + b"@RG\tID:1\tSM:t\n", (b"c",), (9,)),
            "2: read group '1' has a different header line in an earlier unit: give each unit its",
        ),
    ):
        with pytest.raises(InputError) as error:
            merged_header(["1", "2"], [one, other])
        assert str(error.value).startswith(message)


def test_units_of_other_options_keep_program_records_of_their_own():
    def header(*programs) -> BamHeader:
        lines = b"@HD\tVN:1.6\tSO:coordinate\n" + b"".join(b"@PG\t%b\n" % p for p in programs)
        return BamHeader(lines, (b"c",), (9,))

    units = [header(b"ID:bwarp\tCL:map --clip %d" % clip) for clip in (5, 6, 5, 7)]
    assert merged_header(list("abcd"), units) == header(
        b"ID:bwarp\tCL:map --clip 5", b"ID:bwarp.1\tCL:map --clip 6", b"ID:bwarp.2\tCL:map --clip 7"
    )


def test_programs_of_renumbered_chains_keep_their_predecessors():
    def header(*programs) -> BamHeader:
        lines = b"@HD\tVN:1.6\tSO:coordinate\n" + b"".join(b"@PG\t%b\n" % p for p in programs)
        return BamHeader(lines, (b"c",), (9,))

    # The last records are equal, except for the program before them; order does not matter.
    marked = b"ID:mark\tPP:bwarp\tCL:mark"
    units = [
        header(b"ID:bwarp\tCL:map x\tID:r", marked),
        header(marked, b"ID:bwarp\tCL:map y"),
        header(b"ID:bwarp\tCL:map x\tID:r", marked, b"ID:sort\tPP:mark"),
        # Predecessors that are missing, and in a circle.
        header(b"ID:bwarp\tPP:none", b"ID:a\tPP:b", b"ID:b\tPP:a"),
    ]
    assert merged_header(list("abcd"), units) == header(
        b"ID:bwarp\tCL:map x\tID:r", marked,
        b"ID:mark.1\tPP:bwarp.1\tCL:mark", b"ID:bwarp.1\tCL:map y",
        b"ID:sort\tPP:mark",
        b"ID:bwarp.2\tPP:none", b"ID:a\tPP:b", b"ID:b\tPP:a",
    )  # fmt: skip


def test_the_merge_has_a_program_record():
    def header(*lines) -> BamHeader:
        text = b"".join(line + b"\n" for line in (b"@HD\tVN:1.6", *lines, b"@CO\thello"))
        return BamHeader(text, (b"c",), (9,))

    record = "@PG\tID:bwarp\tCL:merge"
    merge = record.encode()
    assert with_program(header(), record) == header(merge)
    mapped = b"@PG\tID:bwarp\tCL:map"
    once = header(mapped, b"@PG\tID:bwarp.1\tPP:bwarp\tCL:merge")
    assert with_program(header(mapped), record) == once
    twice = header(
        mapped, b"@PG\tID:bwarp.1\tPP:bwarp\tCL:merge", b"@PG\tID:bwarp.2\tPP:bwarp.1\tCL:merge"
    )
    assert with_program(once, record) == twice
    other = b"@PG\tPN:x\tID:x"
    assert with_program(header(mapped, other), record) == header(
        mapped, other, b"@PG\tID:bwarp.1\tPP:x\tCL:merge"
    )


def test_numbers_of_program_records_are_free():
    sorted_by = b"@HD\tVN:1.6\tSO:coordinate\n"
    lines = [b"@PG\tID:bwarp\tCL:%b\n@PG\tID:bwarp.1\tCL:%b\n" % (one, one) for one in (b"x", b"y")]
    units = [BamHeader(sorted_by + two, (b"c",), (9,)) for two in lines]
    text = merged_header(["a", "b"], units).text
    names = [line.split(b"\t")[1] for line in text.splitlines() if line.startswith(b"@PG")]
    assert names == [b"ID:bwarp", b"ID:bwarp.1", b"ID:bwarp.2", b"ID:bwarp.1.1"]


def test_not_a_bam_file():
    for data, message in (
        (b"@HD\tVN:1.6\n", "x: not a BAM file: give one that bwarp map --sort wrote"),
        (b"", "x: the file is truncated in its header: write it again"),
        (b"BAM\1\0\0\0\0\1\0\0", "x: the file is truncated in its header: write it again"),
    ):
        with pytest.raises(InputError) as error:
            split_header("x", iter([data]))
        assert str(error.value) == message


def test_damaged_records():
    header = header_of(CONTIGS)
    good = record("r", 0, 5, 0, [(10, 0)])
    for at, value in ((0, 31), (3, 255), (4, 3), (7, 255), (8, 44), (11, 255), (12, 200), (16, 99)):
        bad = bytearray(good + record("s", 0, 6, 0, [(10, 0)]) + good)
        bad[at + len(good)] = value
        if at == 8:
            bad[4 + len(good)] = 1
            bad[9 + len(good)] = 1
        with pytest.raises(InputError) as error:
            list(whole_records("x", iter([bytes(bad)]), header.contig_starts))
        assert str(error.value) == "x: a record is damaged: write the file again"
    with pytest.raises(InputError) as error:
        list(whole_records("x", iter([record("r", 1, 0, 0, []) + good]), header.contig_starts))
    assert str(error.value) == "x: the records are not sorted as the header states: sort the file"
    for stop in (1, 3, 10, len(good) - 1):
        with pytest.raises(InputError) as error:
            list(whole_records("x", iter([good, good[:stop]]), header.contig_starts))
        assert str(error.value) == "x: the file is truncated in a record: write it again"


def test_a_record_beyond_its_contig(tmp_path):
    records = joined([(record("r", 2, 69_990, 0, [(100_000, 0)]), 1)])
    with indexed_bam_file(tmp_path / "x.bam", header_of(CONTIGS), 1) as writer:
        writer.write(records.data, records.starts)
    with pysam.AlignmentFile(tmp_path / "x.bam") as file:
        assert [found.query_name for found in file.fetch("three", 69_999)] == ["r"]
