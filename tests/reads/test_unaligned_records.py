"""Reads from BAM and CRAM equal the output of samtools fastq; aligned records are errors."""

import gzip
import lzma
import os
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pysam
import pytest

from bwarp.bam.bgzf import compressed_block
from bwarp.errors import InputError, UsageError
from bwarp.io import standard_streams
from bwarp.io.compressed_files import read_blocks
from bwarp.reads import read_chunks as counted_records
from bwarp.reads import record_files
from bwarp.reads import record_files as unaligned_records
from bwarp.reads.read_chunks import read_chunks
from bwarp.reads.read_files import ReadFiles, chunks_of_files
from bwarp.reads.record_files import has_pairs, holds_records, read_groups, read_unaligned

#: Tags of alignments, and RG, whose group must be in the header.
TAGS = [
    "RX:Z:ACGT-TT",
    "BC:Z:AC GT",
    "MI:i:-70000",
    "CB:A:!",
    "qs:f:12.5",
    "mv:B:c,5,1,-1",
    "xx:H:0A",
]
FIRST, SECOND, SINGLE = 77, 141, 4


def line(name, flag, letters="ACGT", qualities=None, *tags) -> str:
    qualities = qualities or "I" * len(letters)
    return "\t".join([name, str(flag), *"*00**00", letters, qualities, *tags]) + "\n"


def random_lines(seed) -> list[str]:
    """Return pairs, some with the second end first, single reads, and pairs without one end."""
    random, lines = np.random.default_rng(seed), []
    for number in range(60):
        flags = [[FIRST, SECOND], [SECOND, FIRST], [SINGLE], [FIRST], [SECOND]][random.integers(5)]
        for flag in flags:
            length = int(random.integers(1, 40))
            letters = "".join(random.choice(list("ACGTN"), length))
            qualities = "".join(map(chr, random.integers(43, 127, length)))
            tags = [tag for tag in TAGS if random.random() < 0.3]
            bare = random.random() < 0.1
            lines.append(line(f"r{number}", flag, letters, "*" if bare else qualities, *tags))
    return lines


@pytest.fixture
def write(tmp_path):
    def written(lines, ending="bam", header="@HD\tVN:1.6\tSO:unsorted\n"):
        (tmp_path / "in.sam").write_text(header + "".join(lines))
        path = tmp_path / f"in.{ending}"
        pysam.view(
            "-O", ending, "--no-PG", "-o", str(path), f"{tmp_path}/in.sam", catch_stdout=False
        )
        return path

    return written


def text_of(path, block_bytes=1 << 20, threads=1) -> str:
    return b"".join(map(bytes, read_unaligned(path, block_bytes, threads))).decode()


def in_order(text: str) -> list[tuple[str, ...]]:
    """Return the FASTQ records written by samtools, first ends first."""
    lines = text.splitlines()
    found = [tuple(lines[i : i + 4]) for i in range(0, len(lines), 4)]
    for i in range(1, len(found)):
        names = [record[0].split("\t")[0] for record in found[i - 1 : i + 1]]
        if names[0].endswith("/2") and names[1] == names[0][:-1] + "1":
            found[i - 1], found[i] = found[i], found[i - 1]
    return found


def without_ends(records) -> list[tuple[str, ...]]:
    def named(header):
        name, *tags = header.split("\t")
        return "\t".join([name.removesuffix("/1").removesuffix("/2"), *tags])

    return [(named(header), *rest) for header, *rest in records]


@pytest.mark.parametrize("ending", ["bam", "cram"])
@pytest.mark.parametrize("seed", range(3))
def test_reads_are_those_of_samtools_fastq(write, ending, seed):
    path = write(random_lines(seed), ending)
    fastq = str(path.with_suffix(".fq"))
    pysam.fastq("-N", "-T", "*", "-o", fastq, "-0", fastq, str(path))
    by_samtools = without_ends(in_order(Path(fastq).read_text()))
    for block_bytes, threads in ((7, 1), (300, 2), (1 << 20, 4)):
        text = text_of(path, block_bytes, threads).splitlines()
        assert [tuple(text[i : i + 4]) for i in range(0, len(text), 4)] == by_samtools


def test_tags_of_alignments_and_the_group_are_left_out(write):
    tags = ["NM:i:3", "RX:Z:A", "RG:Z:g", "AS:i:5", "BC:Z:C", "SA:Z:x", "MC:Z:*"]
    groups = "@RG\tID:g\tSM:s\n@RG\tID:h\tSM:s\n"
    path = write([line("r", SINGLE, "A", "I", *tags)], header="@HD\tVN:1.6\n" + groups)
    assert text_of(path) == "@r\tRX:Z:A\tBC:Z:C\nA\n+\nI\n"
    assert read_groups(path) == groups.splitlines()
    with_groups = b"".join(map(bytes, read_unaligned(path, 1 << 20, with_groups=True)))
    assert with_groups == b"@r\tRX:Z:A\tRG:Z:g\tBC:Z:C\nA\n+\nI\n"


@contextmanager
def sent(data: bytes, monkeypatch, pipe: bool):
    """Send bytes to standard input, as a pipe or a file."""
    if pipe:
        reading, writing = os.pipe()
        writer = threading.Thread(target=_write_all, args=(writing, data))
        writer.start()
    else:
        reading = os.memfd_create("in")
        os.write(reading, data)
        os.lseek(reading, 0, os.SEEK_SET)
    monkeypatch.setattr(standard_streams, "_STDIN", reading)
    monkeypatch.setattr(standard_streams, "_looked_at", {})
    try:
        yield
    finally:
        os.close(reading)
        if pipe:
            writer.join()


def _write_all(number: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(number, "wb") as file:
        file.write(data)


@pytest.mark.parametrize("pipe", [True, False])
@pytest.mark.parametrize(
    ("ending", "start_bytes"), [("bam", 70_000), ("bam", 1 << 24), ("cram", 1 << 24)]
)
def test_standard_input(write, monkeypatch, ending, pipe, start_bytes):
    monkeypatch.setattr(record_files, "_START_BYTES", start_bytes)
    monkeypatch.setattr(record_files, "_KIND_BYTES", 300)
    path = write(random_lines(1) * 60, ending, "@HD\tVN:1.6\n@RG\tID:g\n")
    with sent(path.read_bytes(), monkeypatch, pipe):
        assert holds_records("-")
        assert read_groups("-") == read_groups(path)
        assert has_pairs("-")
        assert text_of("-") == text_of(path)


@pytest.mark.parametrize("ending", ["bam", "cram"])
def test_a_named_pipe(write, tmp_path, ending):
    path = write(random_lines(1) * 600, ending, "@HD\tVN:1.6\n@RG\tID:g\n")
    pipe = tmp_path / "pipe"
    with into_pipe(pipe, path.read_bytes()):
        assert holds_records(pipe)
        assert read_groups(pipe) == read_groups(path)
        assert has_pairs(pipe)
        assert text_of(pipe) == text_of(path)


def test_a_named_pipe_that_is_cut_off(write, tmp_path):
    data = write(random_lines(1) * 500).read_bytes()[:-28]
    pipe = tmp_path / "pipe"
    with into_pipe(pipe, data), pytest.raises(InputError, match=r"pipe: the file is truncated"):
        text_of(pipe)


@pytest.mark.parametrize("ending", ["fq", "fa", "gz", "bgz", "xz"])
def test_a_named_pipe_that_holds_no_records(tmp_path, ending):
    text = b"@r\nACGT\n+\nIIII\n" * 9000 if ending != "fa" else b">r\nACGT\n" * 9000
    made = {"gz": gzip.compress, "xz": lzma.compress, "bgz": bgzip}
    pipe = tmp_path / "pipe"
    with into_pipe(pipe, made.get(ending, bytes)(text)):
        assert not holds_records(pipe)
        assert b"".join(map(bytes, read_blocks(pipe, 1 << 14))) == text


def bgzip(text: bytes) -> bytes:
    """Compress a text into gzip blocks that record their length."""
    return b"".join(compressed_block(text[at : at + 60_000]) for at in range(0, len(text), 60_000))


@contextmanager
def into_pipe(path, data: bytes):
    """Return a named pipe to which a thread writes."""
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: _write_all(path, data))
    writer.start()
    try:
        yield
    finally:
        writer.join()


def test_pipes_that_are_written_in_turn(tmp_path):
    """The second is not available before the first one is read."""
    text = b"@r\nACGT\n+\nIIII\n" * 9000
    pipes = [tmp_path / "1", tmp_path / "2"]
    for pipe in pipes:
        os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: [_write_all(pipe, text) for pipe in pipes])
    writer.start()
    chunks = chunks_of_files(ReadFiles(tuple(map(str, pipes))))
    assert sum(chunk.n_reads for chunk in chunks) == 18_000
    writer.join()


def test_standard_input_that_is_fastq(monkeypatch):
    text = b"@r\nACGT\n+\nIIII\n" * 9000
    with sent(text, monkeypatch, True):
        assert not holds_records("-")
        assert b"".join(map(bytes, read_blocks("-", 1 << 14))) == text


@pytest.mark.parametrize("pipe", [True, False])
@pytest.mark.parametrize("cut", [28, 29, 200])
def test_standard_input_that_is_cut_off(write, monkeypatch, pipe, cut):
    data = write(random_lines(1) * 500).read_bytes()[:-cut]
    with sent(data, monkeypatch, pipe), pytest.raises(InputError) as error:
        text_of("-")
    assert str(error.value).startswith(
        "-: the file is truncated: download or write it again"
        if cut == 28
        else "-: samtools could not read the file ("
    )


def test_a_read_without_bases(write):
    assert text_of(write([line("r", SINGLE, "*", "*")])) == "@r\n\n+\n\n"


def test_no_reads(write):
    assert text_of(write([])) == ""


@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
def test_chunks(write, monkeypatch, block_bytes):
    monkeypatch.setattr(counted_records, "_block_bytes", lambda count: block_bytes)
    path = write(
        [line("a", SECOND, "GG"), line("a", FIRST, "AA"), line("b", SINGLE, "C", "I", "RX:Z:T")]
    )
    pairs, orphan = read_chunks(path, None, False)
    assert (pairs.ends, pairs.n_orphans, pairs.codes.tolist()) == (2, 0, [0, 0, 2, 2])
    assert (orphan.ends, orphan.n_orphans, orphan.codes.tolist()) == (2, 1, [1])
    assert (orphan.name(0), orphan.first_template) == ("b", 1)
    assert orphan.text[slice(*orphan.comments[0])].tobytes() == b"RX:Z:T"


@pytest.mark.parametrize("number", [0, 3, 4, 6])
def test_a_pair_among_single_reads(write, monkeypatch, number):
    monkeypatch.setattr(record_files, "FIRST_RECORDS", 4)
    monkeypatch.setattr(unaligned_records, "FIRST_RECORDS", 4)
    path = write(line(f"r{i}", FIRST if i == number else SINGLE) for i in range(7))
    chunks = read_chunks(path, None, False, 2)
    if number < 4:
        assert sum(chunk.n_orphans for chunk in chunks) == 7
        return
    with pytest.raises(InputError) as error:
        list(chunks)
    assert str(error.value) == (
        f"{path}: the read 'r{number}' is from a pair, but the first 4 are single: put pairs "
        "(samtools view -b -f 1) and single reads (-F 1) in separate files"
    )


@pytest.mark.parametrize("flag", [0, 16, 83, 99, 4 | 16, 4 | 256, 4 | 2048])
@pytest.mark.parametrize("before", [0, 1])
def test_alignments_are_refused(write, flag, before):
    aligned = f"b\t{flag}\tc\t1\t9\t4M\t*\t0\t0\tACGT\tIIII\n"
    header = "@HD\tVN:1.6\n@SQ\tSN:c\tLN:9\n"
    path = write([line("b" if before else "a", FIRST), aligned], header=header)
    with pytest.raises(InputError) as error:
        text_of(path)
    assert str(error.value) == (
        f"{path}: the read 'b' is aligned: remove the alignments first (samtools collate -u -O "
        f"{path} | samtools reset -o unaligned.bam)"
    )


@pytest.mark.parametrize(
    "flags", [(SINGLE, SINGLE), (FIRST, FIRST), (SECOND, SECOND), (FIRST, SINGLE)]
)
def test_names_that_are_no_pairs_are_refused(write, flags):
    path = write([line("a", FIRST), *(line("b", flag) for flag in flags)])
    with pytest.raises(InputError) as error:
        text_of(path)
    assert str(error.value) == (
        f"{path}: two consecutive reads are named 'b' but are not the two ends of a pair: rename "
        "one"
    )


@pytest.mark.parametrize("ending", ["bam", "cram"])
def test_truncated_and_damaged_files_are_refused(write, capfd, ending):
    path = write(random_lines(1), ending)
    whole = path.read_bytes()
    for content in (
        whole[:-38], whole[:-28], whole[: len(whole) // 2], whole[:100],
        whole[:200] + b"?" * 50 + whole[250:], whole[:30] + b"?" * 50 + whole[80:],
    ):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"{path}: "):
            text_of(path)
        assert capfd.readouterr().err == ""


@pytest.mark.parametrize("ending", ["bam", "cram"])
def test_changed_files_lose_no_reads(write, ending):
    """Changed or truncated files are errors, or no read is missing."""
    lines = random_lines(2)
    path, random = write(lines, ending), np.random.default_rng(3)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    for _ in range(15):
        changed = whole.copy()
        changed[random.integers(4, whole.size, random.integers(1, 5))] = random.integers(256)
        if random.random() < 0.3:
            changed = changed[: random.integers(4, whole.size)]
        path.write_bytes(changed.tobytes())
        try:
            found = sum(chunk.n_reads - chunk.n_orphans for chunk in read_chunks(path, None, False))
        except InputError:
            continue
        assert found == len(lines)


def test_which_files_hold_records(write, tmp_path):
    assert all(holds_records(write([], ending)) for ending in ("bam", "cram"))
    for content in (b"", b"@r\nA\n+\nI\n", b"\x1f\x8b\x08\x04", b"\x1f\x8b\x08\x04" + b"x" * 99):
        (tmp_path / "other").write_bytes(content)
        assert not holds_records(tmp_path / "other")
    assert not any(map(holds_records, (tmp_path, "-", "none")))


@pytest.mark.parametrize("others", [("2.fq", False), (None, True)])
def test_records_stand_alone(write, others):
    path = write([line("a", SINGLE)])
    with pytest.raises(UsageError) as error:
        read_chunks(path, *others)
    assert str(error.value) == (
        f"{path}: BAM and CRAM may contain pairs: give the file with -1, without -2 or "
        "--interleaved"
    )
