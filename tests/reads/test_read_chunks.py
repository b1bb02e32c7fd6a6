"""Chunks of any size contain the reads of the files in order; malformed files are errors."""

import gzip

import numpy as np
import pytest

from bwarp.errors import InputError
from bwarp.io.compressed_files import CHUNK_BYTES
from bwarp.reads import read_chunks as counted_records
from bwarp.reads import read_chunks as file_pieces
from bwarp.reads.read_chunks import (
    interleaved_chunks,
    paired_chunks,
    pairs_alone,
    single_chunks,
)
from bwarp.sequence import decode

READS = [(f"r{i}", "ACGTN"[i % 5] * (i * 7 % 13), i) for i in range(50)]


def fastq(records, suffix="") -> str:
    return "".join(
        f"@{name}{suffix} more words\n{letters}\n+\n{chr(40 + i % 9) * len(letters)}\n"
        for name, letters, i in records
    )


@pytest.fixture
def file(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def records_of(chunks):
    """Return (name, letters, qualities) of all reads; check that chunks are consecutive."""
    found, first = [], 0
    for chunk in chunks:
        assert chunk.first_template == first
        assert chunk.n_reads == chunk.n_templates * chunk.ends
        first += chunk.n_templates
        for read in range(chunk.n_reads):
            part = slice(chunk.offsets[read], chunk.offsets[read + 1])
            name = chunk.name(read // chunk.ends)
            letters = decode(chunk.codes[part]).decode()
            found.append((name, letters, chunk.qualities[part].tobytes().decode()))
    return found


def expected(records):
    return [(name, letters, chr(40 + i % 9) * len(letters)) for name, letters, i in records]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block_bytes", [100, 1000, CHUNK_BYTES])
@pytest.mark.parametrize("size", [2, 6, 10, 50, 100, 1000])
def test_reads_come_back(file, monkeypatch, size, block_bytes, threads):
    monkeypatch.setattr(counted_records, "_block_bytes", lambda count: block_bytes)
    monkeypatch.setattr(file_pieces, "_RECORDS_AT_A_TIME", 7)
    pairs = [record for record in READS for _ in range(2)]
    one, two = file("1.fq", fastq(READS, "/1")), file("2.fq", fastq(READS, "/2"))
    mixed = file("both.fq", fastq(pairs))
    assert records_of(single_chunks(one, size, threads)) == expected(READS)
    assert records_of(paired_chunks(one, two, size, threads)) == expected(pairs)
    assert records_of(interleaved_chunks(mixed, size, threads)) == expected(pairs)
    assert {chunk.ends for chunk in paired_chunks(one, two, size, threads)} == {2}


def test_empty_files(file):
    empty = file("empty.fq", "")
    assert list(single_chunks(empty)) == []
    assert list(paired_chunks(empty, empty)) == []
    assert list(interleaved_chunks(empty)) == []


def message(chunks) -> str:
    with pytest.raises(InputError) as error:
        list(chunks)
    return str(error.value)


@pytest.mark.parametrize("before", [0, 2])
def test_errors_are_reported_after_the_end_of_the_other_file(file, before):
    short = file("short.fq", fastq(READS[:before]))
    bad = file("bad.fq", fastq(READS[:before]) + "@last\nACG")
    for pair in ((short, bad), (bad, short)):
        said = message(paired_chunks(*pair, 4))
        assert said.startswith(f"{bad}, line {4 * before + 1}: the last FASTQ record is truncated")


@pytest.mark.parametrize("size", [4, 20, 1000])
def test_files_of_different_lengths(file, size):
    long, short = file("long.fq", fastq(READS)), file("short.fq", fastq(READS[:40]))
    tail = "but {} has more: both files must contain the same reads in the same order"
    said = f"{short}: the file ends after 40 reads, " + tail.format(long)
    assert message(paired_chunks(long, short, size)) == said
    assert message(paired_chunks(short, long, size)) == said


@pytest.mark.parametrize("size", [4, 1000])
def test_names_that_disagree(file, size):
    other = [*READS[:30], ("r31", "ACGT", 0), *READS[31:]]
    one, two = file("1.fq", fastq(READS)), file("2.fq", fastq(other))
    assert message(paired_chunks(one, two, size)) == (
        f"read 31 is 'r30' in {one}, but 'r31' in {two}: "
        "both files must contain the same reads in the same order"
    )


EXCHANGED = [
    ("x/2", "x/1"),
    ("x/2 a", "x/1 b"),
    ("x 2:N:0:AC", "x 1:N:0:AC"),
    ("x\t2:Y:1:", "x\t1:Y:1:"),
]
FINE = [
    ("x/1", "x/2"), ("x/2", "x/2"), ("x/1", "x/1"), ("x/2", "x"), ("x", "x/1"), ("x 2", "x 1"),
    ("x 2 length=4", "x 1 length=4"), ("x 1:N:0:AC", "x 2:N:0:AC"), ("x BC:Z:2", "x BC:Z:1"),
]  # fmt: skip


def text_of(header, count=3) -> str:
    """Return FASTQ with this header, numbered."""
    return "".join(f"@{i}{header}\nACGT\n+\nIIII\n" for i in range(count))


@pytest.mark.parametrize("size", [2, 1000])
@pytest.mark.parametrize(("first", "second"), EXCHANGED)
def test_exchanged_mates(file, size, first, second):
    one, two = file("1.fq", text_of(first)), file("2.fq", text_of(second))
    assert message(paired_chunks(one, two, size)) == (
        f"{one} begins with the second read of a pair ({'0' + first!r}), and {two} with the "
        f"first ({'0' + second!r}): swap the two files"
    )
    both = file("both.fq", text_of(first, 1) + text_of(second, 1) + text_of("y"))
    assert message(interleaved_chunks(both, size)) == (
        f"{both}: the second read of a pair ({'0' + first!r}) precedes the first "
        f"({'0' + second!r}): write the first read of each pair first"
    )


@pytest.mark.parametrize(("first", "second"), FINE)
def test_mates_that_are_not_exchanged(file, first, second):
    one, two = file("1.fq", text_of(first)), file("2.fq", text_of(second))
    assert sum(chunk.n_reads for chunk in paired_chunks(one, two)) == 6
    both = file("both.fq", text_of(first, 1) + text_of(second, 1) + text_of("y"))
    assert sum(chunk.n_reads - chunk.n_orphans for chunk in interleaved_chunks(both)) == 5


def test_orphans_are_not_exchanged_mates(file):
    both = file("both.fq", text_of("x/2", 2) + text_of("y/1", 1))
    assert sum(chunk.n_orphans for chunk in interleaved_chunks(both)) == 3


def templates_of(names):
    """Return templates: two consecutive reads with the same name are a pair."""
    read = 0
    while read < len(names):
        both = names[read : read + 2]
        ends = 2 if len(both) == 2 and both[0] == both[1] else 1
        yield read, ends
        read += ends


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block_bytes", [100, CHUNK_BYTES])
@pytest.mark.parametrize("size", [2, 4, 10, 1000])
@pytest.mark.parametrize("runs", [(1, 1, 2, 2), (1,), (1, 2, 3, 4, 5), (50,), (49,), (2, 2, 2, 1)])
def test_orphans_among_pairs(file, monkeypatch, runs, size, block_bytes, threads):
    monkeypatch.setattr(counted_records, "_block_bytes", lambda count: block_bytes)
    rng = np.random.default_rng(len(runs))
    names = []
    while len(names) < 120:
        names += [f"r{len(names)}"] * rng.choice(runs)
    records = [(name, "ACGTN"[i % 5] * (i * 7 % 13), i) for i, name in enumerate(names)]
    path = file("mixed.fq", fastq(records, "/1"))
    found, first = [], 0
    for chunk in interleaved_chunks(path, size, threads):
        assert chunk.first_template == first
        assert chunk.n_reads == 2 * chunk.n_templates
        assert (chunk.orphans is None) == (chunk.n_orphans == 0)
        assert chunk.n_reads - chunk.n_orphans <= size + 1
        first += chunk.n_templates
        for template in range(chunk.n_templates):
            alone = chunk.n_orphans and chunk.orphans[template]
            reads = []
            for read in (2 * template, 2 * template + 1):
                part = slice(chunk.offsets[read], chunk.offsets[read + 1])
                comment = chunk.text[slice(*chunk.comments[read])].tobytes()
                letters = decode(chunk.codes[part]).decode()
                reads.append((comment, letters, chunk.qualities[part].tobytes().decode()))
            if alone:
                assert reads.pop() == (b"", "", "")
            found.append((chunk.name(template), reads))
    every = [(b"more words", letters, quality) for _, letters, quality in expected(records)]
    assert found == [(names[read], every[read : read + ends]) for read, ends in templates_of(names)]


@pytest.mark.parametrize("size", [2, 1000])
def test_orphans_are_refused_where_pairs_alone_are_wanted(file, size):
    pairs = [record for record in READS for _ in range(2)]
    path = file("both.fq", fastq(pairs))
    assert records_of(pairs_alone(path, interleaved_chunks(path, size))) == expected(pairs)
    path = file("mixed.fq", fastq(pairs[:31] + pairs[32:]))
    assert message(pairs_alone(path, interleaved_chunks(path, size))) == (
        f"{path}, read 31: 'r15' has no mate next to it: put pairs and single reads in separate "
        "files"
    )


def test_fasta_with_fastq(file):
    one, two = file("1.fq", fastq(READS[1:2])), file("2.fa", ">r1\nACGT\n")
    assert message(paired_chunks(one, two)) == (
        f"{one} and {two}: one file is FASTA, the other FASTQ: use the same format"
    )
    (chunk,) = single_chunks(two)
    assert chunk.qualities is None


def test_damage_is_named(file, tmp_path):
    cut = tmp_path / "cut.fq.gz"
    cut.write_bytes(gzip.compress(fastq(READS * 50).encode())[:-30])
    assert message(single_chunks(cut)) == (
        f"{cut}: the compressed file is truncated: download or write it again"
    )
    uneven = file("uneven.fq", "@a\nACGT\n+\nIIII\n@b\nACGT\n+\nIII\n")
    assert message(single_chunks(uneven)).startswith(f"{uneven}, line 8: ")


BAD = fastq(READS[:30]) + "@bad\nAC!T\n+\nIIII\n"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block_bytes", [100, 1000, CHUNK_BYTES])
@pytest.mark.parametrize("size", [2, 20, 1000])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BAD + fastq(READS[:9]), ", line 122: '!' is not a valid sequence letter"),
        (BAD + "@last\nACG", ", line 122: '!' is not a valid sequence letter"),
        (
            # Its number of reads is unknown, so the message does not say that the other has more.
            fastq(READS[:40]) + "@last\nACG",
            ", line 161: the last FASTQ record is truncated: a record has four lines (@name, "
            "bases, +, qualities)",
        ),
    ],
)
def test_the_first_of_several_errors_is_reported(
    file, monkeypatch, text, said, size, block_bytes, threads
):
    monkeypatch.setattr(counted_records, "_block_bytes", lambda count: block_bytes)
    wrong, fine = file("wrong.fq", text), file("fine.fq", fastq(READS * 60))
    said = f"{wrong}{said}"
    assert message(single_chunks(wrong, size, threads)) == said
    assert message(paired_chunks(wrong, fine, size, threads)) == said
    assert message(paired_chunks(fine, wrong, size, threads)) == said


def test_the_error_of_the_first_of_two_files_is_reported(file, monkeypatch):
    monkeypatch.setattr(file_pieces, "_RECORDS_AT_A_TIME", 7)
    one, two = file("1.fq", BAD), file("2.fq", "@bad\nA!\n+\nII\n" + fastq(READS[:30]))
    assert message(paired_chunks(one, two)).startswith(f"{one}, line 122: ")
    assert message(paired_chunks(two, one)).startswith(f"{two}, line 2: ")
    # The same if one of them is truncated, or has fewer reads.
    for text in (fastq(READS[:30]) + "@last\nACG", fastq(READS)):
        assert message(paired_chunks(one, file("3.fq", text))).startswith(f"{one}, line 122: ")


@pytest.mark.parametrize("size", [2, 20, 1000])
def test_an_error_before_a_damaged_block_is_reported_first(file, tmp_path, monkeypatch, size):
    monkeypatch.setattr(counted_records, "_block_bytes", lambda count: 100)
    damaged, fine = tmp_path / "damaged.fq.gz", file("fine.fq", fastq(READS * 60))
    damaged.write_bytes(gzip.compress((BAD + fastq(READS * 50)).encode())[:-30])
    said = f"{damaged}, line 122: '!' is not a valid sequence letter"
    assert message(single_chunks(damaged, size, 2)) == said
    assert message(paired_chunks(damaged, fine, size, 2)) == said
    assert message(paired_chunks(fine, damaged, size, 2)) == said


def test_names_longer_than_a_record_can_hold(file):
    short, long = "n" * 254, "n" * 255
    fine = file("fine.fq", fastq([("a", "A", 0), (short, "A", 0)], "/1"))
    too_long = file("long.fq", fastq([("a", "A", 0), (long, "A", 0)]))
    records = records_of(single_chunks(fine))
    assert [name for name, *_ in records] == ["a", short]
    message = (
        f"{too_long}, read 2: the name has 255 characters, but SAM allows at most 254: shorten it"
    )
    for chunks in (
        single_chunks(too_long, 1),
        interleaved_chunks(too_long),
        paired_chunks(too_long, too_long),
    ):
        with pytest.raises(InputError) as error:
            list(chunks)
        assert str(error.value) == message


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"a\x00b", r"'a\x00b'"),
        (b"a\x01b", r"'a\x01b'"),
        (b"\x7f", r"'\x7f'"),
        ("caf\u00e9".encode(), r"'caf\xc3\xa9'"),
        (b"caf\xe9/1", r"'caf\xe9/1'"),
        (b"@a", "'@a'"),
        (b"a" * 70 + b"\x1f", r"'" + "a" * 70 + r"\x1f'"),
        (b"\x1f" + b"a" * 70, r"'\x1f" + "a" * 70 + "'"),
    ],
)
def test_names_that_sam_does_not_allow(tmp_path, name, shown):
    bad, fine = tmp_path / "bad.fq", tmp_path / "fine.fq"
    text = b"@first\nA\n+\nI\n@%b \x00\xff in a comment\nA\n+\nI\n"
    bad.write_bytes(text % name)
    fine.write_bytes(text % b"~!a@b")
    said = (
        f"{bad}, read 2: SAM does not allow the read name {shown} (printable ASCII, no @ at the "
        "start): rename it"
    )
    for size in (1, 100):
        assert message(single_chunks(bad, size)) == said
    assert message(interleaved_chunks(bad)) == said
    assert message(paired_chunks(bad, bad)) == said
    assert message(paired_chunks(fine, bad)) == said
    assert [name for name, *_ in records_of(single_chunks(fine))] == ["first", "~!a@b"]


def test_reads_longer_than_are_mapped(file):
    fine = file("fine.fq", fastq([("a", "A", 0), ("b", "A" * 10_000, 0)]))
    too_long = file("long.fq", fastq([("a", "A", 0), ("b/1", "A" * 10_001, 0)]))
    assert len(records_of(single_chunks(fine))) == 2
    said = (
        f"{too_long}, read 2 ('b/1') has 10,001 bases, but the maximum is 10,000: use a mapper "
        "for long reads, such as minimap2"
    )
    for size in (1, 100):
        assert message(single_chunks(too_long, size)) == said
    assert message(interleaved_chunks(too_long)) == said
    assert message(paired_chunks(fine, too_long)) == said
